"""Random valid functions: views, versions, states, streams, dims, constants, loops."""

import numpy as np

from gputensor._arrays.element_types import DTYPES
from gputensor.programs import dims as forms
from gputensor.programs.dims import Dim
from gputensor.programs.function import Argument, Call, Function, Number, Operand, Value

SIZES = {row.name: row.itemsize for row in DTYPES}
BINARY = ("add", "mul", "sub", "maximum")
TYPES = ("float32", "float64", "int32", "int64")


class Builder:
    """Makes one function; `pool` are operands that later calls may read, on first versions."""

    def __init__(self, rng, name="f", with_dims=False, depth=0, dim=None):
        self.rng, self.depth = rng, depth
        self.function = Function(name)
        self.latest = {}  # root -> version
        self.pool = []  # operands on roots
        self.constant = set()  # roots computed from constants alone
        self.arrays = {}  # of weights and constants
        self.states = {}
        self.dim = dim
        if with_dims:
            self.function.dims = {"n": Dim("n", rng.randint(2, 4), rng.randint(5, 40))}
            self.dim = ("dim", "n")

    def value(self, kind, shape, dtype, name=""):
        nbytes = forms.mul(*shape, SIZES[dtype])
        self.function.values.append(Value(kind, nbytes, name))
        number = len(self.function.values) - 1
        self.latest[number] = number
        return Operand(number, dtype, tuple(shape), forms.row_major(shape))

    def shape(self):
        shape = [self.rng.choice((1, 2, 3, 5)) for _ in range(self.rng.randint(0, 3))]
        if self.dim and shape and self.rng.random() < 0.7:
            shape[0] = self.dim
        return tuple(shape)

    def sources(self):
        rng = self.rng
        for index in range(rng.randint(1, 3)):
            operand = self.value("input", self.shape(), rng.choice(TYPES), f"x{index}")
            self.function.inputs.append(Argument(f"x{index}", operand))
            self.pool.append(operand)
        for kind, most in (("weight", 2), ("constant", 2), ("state", 2 - 2 * bool(self.depth))):
            for index in range(rng.randint(0, most)):
                shape = [e if type(e) is int else 4 for e in self.shape()]
                name = f"{kind}{self.depth}.{index}"
                operand = self.value(kind, shape, rng.choice(TYPES), name)
                array = np.array(np.random.RandomState(rng.randrange(2**31)).randint(-9, 9, shape))
                array = array.astype(operand.dtype)
                if kind == "state":
                    self.states[name] = array
                    self.function.states[name] = (operand.value, operand.value)
                else:
                    self.arrays[name] = array
                if kind == "constant":
                    self.constant.add(operand.value)
                self.pool.append(operand)

    def now(self, operand):
        return operand._replace(value=self.latest[operand.value])

    def view(self, operand):
        """Return a random view of an operand."""
        rng, offset = self.rng, operand.offset
        shape, strides = list(operand.shape), list(operand.strides)
        itemsize = SIZES[operand.dtype]
        for _turn in range(rng.randint(0, 2)):
            if not shape:
                break
            axis, kind = rng.randrange(len(shape)), rng.randrange(4)
            if kind == 0 and len(shape) > 1:
                other = rng.randrange(len(shape))
                shape[axis], shape[other] = shape[other], shape[axis]
                strides[axis], strides[other] = strides[other], strides[axis]
            elif kind == 1 and type(shape[axis]) is int and shape[axis] > 1:
                start = rng.randrange(shape[axis])
                step = rng.choice((1, 2))
                offset = forms.add(offset, forms.mul(start, strides[axis], itemsize))
                shape[axis] = (shape[axis] - start + step - 1) // step
                strides[axis] = forms.mul(strides[axis], step)
            elif kind == 2:
                last = forms.mul(forms.add(shape[axis], -1), strides[axis], itemsize)
                offset = forms.add(offset, last)
                strides[axis] = forms.mul(strides[axis], -1)
            elif kind == 3 and type(shape[axis]) is int:
                at = rng.randrange(shape[axis])
                offset = forms.add(offset, forms.mul(at, strides[axis], itemsize))
                del shape[axis], strides[axis]
        return operand._replace(shape=tuple(shape), strides=tuple(strides), offset=offset)

    def call(self, name, attributes, out, reads, into=None, regions=()):
        line = f"model.py:{len(self.function.calls) + 1}"
        writes = out if type(out) is tuple else (out,)
        into = (into,) * len(writes)
        stream = self.rng.choice((0, 0, 0, 1, 2))
        reads = tuple(reads)
        call = Call(name, attributes, writes, reads, into, stream, line, tuple(regions))
        self.function.calls.append(call)

    def fresh(self, shape, dtype):
        return self.value("temporary", shape, dtype)

    def elementwise(self, a, operation=None):
        rng = self.rng
        a = self.view(a)
        fitting = [p for p in self.pool if p.shape == a.shape] or [a]
        kind = rng.randrange(4)
        if kind == 0:
            reads = [a, Number(rng.randint(-3, 3), a.dtype)]
        elif kind == 1 and a.shape:
            row = self.view(rng.choice(fitting))
            row = row if row.shape == a.shape else a
            axis = rng.randrange(len(a.shape))
            strides = tuple(0 if i == axis else s for i, s in enumerate(row.strides))
            reads = [a, row._replace(strides=strides, offset=row.offset)]
            if any(type(s) is tuple or s < 0 for s in row.strides):
                reads = [a, a]
        else:
            reads = [a, rng.choice(fitting)]
        name = operation or rng.choice((*BINARY, "neg", "copy"))
        if name in ("neg", "copy"):
            reads = reads[:1]
        compute = a.dtype
        return {"op": name, "compute": compute}, a.shape, reads

    def step(self):
        rng = self.rng
        a = rng.choice(self.pool)
        kind = rng.randrange(12)
        if kind < 5:
            attributes, shape, reads = self.elementwise(a)
            out = self.fresh(shape, rng.choice((a.dtype, a.dtype, rng.choice(TYPES))))
            if all(isinstance(r, Number) or r.value in self.constant for r in reads):
                self.constant.add(out.value)
            self.call("elementwise", attributes, out, map(self.current, reads))
            self.pool.append(out)
        elif kind < 7:
            self.write_part()
        elif kind == 7 and a.shape:
            axes = tuple(i for i in range(len(a.shape)) if rng.random() < 0.5)
            kept = tuple(e for i, e in enumerate(a.shape) if i not in axes)
            out = self.fresh(kept, a.dtype)
            attributes = {"op": "sum", "compute": a.dtype, "axes": axes}
            self.call("reduce", attributes, out, [self.now(a)])
            self.pool.append(out)
        elif kind == 8:
            out = self.fresh((rng.choice((self.dim or 3, 2)),), "int64")
            self.call("arange", {"start": rng.randint(-2, 2), "step": rng.randint(1, 3)}, out, [])
            self.constant.add(out.value)
            self.pool.append(out)
        elif kind == 9:
            self.index()
        elif kind == 10 and self.function.calls and not self.depth:
            self.again()
        elif kind == 11 and self.depth < 2:
            self.control()

    def current(self, read):
        return read if isinstance(read, Number) else self.now(read)

    def write_part(self):
        """Write to a part of a temporary or state, which makes its next version."""
        values = self.function.values
        owned = [p for p in self.pool if values[p.value].kind in ("temporary", "state")]
        if not owned:
            return
        a = self.view(self.rng.choice(owned))
        attributes, shape, reads = self.elementwise(a)
        b = self.view(a)
        if b.shape != shape:
            reads, b = [self.rng.choice(self.pool)], None
            b = next((p for p in owned if p.shape == reads[0].shape), None)
            if b is None:
                return
            attributes = {"op": "copy", "compute": reads[0].dtype}
        reads = [self.current(read) for read in reads]
        self.constant.discard(b.value)
        self.call("elementwise", attributes, self.version(b), reads, self.latest[b.value])
        self.advance(b)

    def version(self, operand):
        """Return the operand on the next version of its memory, for a call that writes it."""
        base = self.latest[operand.value]
        value = self.function.values[base]
        self.function.values.append(Value(value.kind, value.nbytes, "", base))
        return operand._replace(value=len(self.function.values) - 1)

    def advance(self, operand):
        self.latest[operand.value] = len(self.function.values) - 1
        first = self.function.values[operand.value]
        if first.kind == "state":
            self.function.states[first.name] = (operand.value, self.latest[operand.value])

    def index(self):
        rng = self.rng
        sources = [p for p in self.pool if p.shape and type(p.shape[0]) is int]
        if not sources:
            return
        source = rng.choice(sources)
        indices = self.fresh((2,), "int64")
        step = -1 if source.shape[0] > 1 else 0
        self.call("arange", {"start": 0, "step": step}, indices, [])
        self.constant.add(indices.value)
        if rng.random() < 0.5 or self.function.values[source.value].kind not in (
            "temporary",
            "state",
        ):
            out = self.fresh((2, *source.shape[1:]), source.dtype)
            reads = [self.now(source), self.now(indices)]
            self.call("gather", {"first_axis": 0}, out, reads)
            self.pool.append(out)
            return
        values = [p for p in self.pool if p.shape == (2, *source.shape[1:])]
        values = [p for p in values if p.dtype == source.dtype and p.value != source.value]
        if values:
            self.constant.discard(source.value)
            reads = [self.now(rng.choice(values)), self.now(indices)]
            self.call("scatter", {"first_axis": 0}, self.version(source), reads,
                      self.latest[source.value])  # fmt: skip
            self.advance(source)

    def again(self):
        """Repeat an earlier call into new values, so that `clean` can merge them."""
        call = self.rng.choice(self.function.calls)
        if any(i is not None for i in call.into) or call.regions:
            return
        if call.writes[0].dtype == "bool":
            return
        root = {}
        for number, value in enumerate(self.function.values):
            root[number] = number if value.base is None else root[value.base]
        (written,) = call.writes
        out = self.fresh(written.shape, written.dtype)
        if out.strides != written.strides:
            return
        reads = []
        for read in call.reads:
            is_view = isinstance(read, Operand)
            reads.append(self.now(read._replace(value=root[read.value])) if is_view else read)
        self.call(call.name, call.attributes, out, reads)
        self.pool.append(out)

    def dense(self, operand):
        """Return a row-major copy."""
        out = self.fresh(operand.shape, operand.dtype)
        attributes = {"op": "copy", "compute": operand.dtype}
        self.call("elementwise", attributes, out, [self.now(operand)])
        return out

    def region(self, name, takes, gives):
        """Return a region with inputs like `takes` and outputs like `gives`."""
        inner = Builder(self.rng, name, depth=self.depth + 1, dim=self.dim)
        inner.arrays = self.arrays
        for index, operand in enumerate(takes):
            taken = inner.value("input", operand.shape, operand.dtype, f"in{index}")
            inner.function.inputs.append(Argument(f"in{index}", taken))
            inner.pool.append(taken)
        for _turn in range(self.rng.randint(0, 3)):
            inner.step()
        for index, operand in enumerate(gives):
            same = [p for p in inner.pool if p.shape == operand.shape]
            source = self.rng.choice(same) if same else Number(1, operand.dtype)
            out = inner.fresh(operand.shape, operand.dtype)
            attributes = {"op": "copy", "compute": source.dtype}
            inner.call("elementwise", attributes, out, [inner.current(source)])
            inner.function.outputs.append(Argument(str(index), out))
        return inner.function

    def control(self):
        rng = self.rng
        carry = self.dense(rng.choice(self.pool))
        capture = self.dense(rng.choice(self.pool))
        out = self.fresh(carry.shape, carry.dtype)
        reads = [carry, capture]
        if rng.random() < 0.4:
            index = Operand(0, "int64", (), ())
            body = self.region("body", [index, *reads], [carry])
            attributes = {"lower": 0, "upper": rng.choice((0, 2, self.dim or 3))}
            self.call("fori_loop", attributes, out, reads, regions=[body])
        elif rng.random() < 0.5:
            flag = self.fresh((), "bool")
            self.call("elementwise", {"op": "copy", "compute": "bool"}, flag,
                      [Number(rng.random() < 0.5, "bool")])  # fmt: skip
            branches = [self.region(name, reads, [carry]) for name in ("yes", "no")]
            self.call("cond", {}, out, [flag, *reads], regions=branches)
        else:
            length = 3
            array = self.fresh((length, 2), "float32")
            self.call("elementwise", {"op": "copy", "compute": "float32"}, array,
                      [Number(2, "float32")])  # fmt: skip
            stacked = self.fresh((length, 5), "int32")
            element, result = (
                array._replace(shape=(2,), strides=(1,)),
                stacked._replace(shape=(5,), strides=(1,)),
            )
            body = self.region("body", [carry, element, capture], [carry, result])
            attributes = {"length": length, "reverse": rng.random() < 0.5, "carry": 1, "arrays": 1}
            self.call("scan", attributes, (out, stacked), [carry, array, capture], regions=[body])
            self.pool.append(stacked)
        self.pool.append(out)

    def outputs(self):
        for index in range(self.rng.randint(1, 3)):
            out = self.dense(self.rng.choice(self.pool))
            self.function.outputs.append(Argument(str(index), out))


def random_function(rng, steps=None):
    """Return (function, weights, states) of a random function; arrays by name."""
    builder = Builder(rng, with_dims=rng.random() < 0.4)
    builder.sources()
    for _turn in range(rng.randint(0, 14) if steps is None else steps):
        builder.step()
    builder.outputs()
    return builder.function, builder.arrays, builder.states


def random_inputs(rng, function, sizes):
    """Return arrays for the inputs of a function."""
    arrays = []
    for item in function.inputs:
        shape = [forms.evaluate(extent, sizes) for extent in item.operand.shape]
        state = np.random.RandomState(rng.randrange(2**31))
        arrays.append(state.randint(-9, 9, shape).astype(item.operand.dtype))
    return arrays


def random_sizes(rng, function):
    """Return sizes within the ranges of the dims."""
    found = {}
    for dim in function.dims.values():
        found[dim.name] = rng.randrange(dim.low, dim.high + 1, dim.multiple)
    return found
