"""Builds a program's functions call by call, as tracing would make them."""

from math import prod

from gputensor._arrays.element_types import DTYPES
from gputensor.programs.dims import add, mul
from gputensor.programs.function import (
    Argument,
    Call,
    Function,
    Number,
    Operand,
    ProgramData,
    Value,
    Weight,
)
from tests.support.programs.example_function import dense

ITEMSIZES = {row.name: row.itemsize for row in DTYPES}


class Builder:
    """Adds values and calls to a function. Operands are whole values."""

    def __init__(self, name, dims=()):
        self.function = Function(name, dims={dim.name: dim for dim in dims})
        self.weights = {}
        self.states = {}

    def value(self, kind, dtype, shape, name="", base=None):
        nbytes = mul(ITEMSIZES[dtype], *shape)
        self.function.values.append(Value(kind, nbytes, name, base))
        return dense(len(self.function.values) - 1, shape, dtype)

    def input(self, name, dtype, shape):
        operand = self.value("input", dtype, shape, name)
        self.function.inputs.append(Argument(name, operand))
        return operand

    def weight(self, name, array):
        self.weights[name] = Weight(name, array.dtype.name, array.shape, array)
        return self.value("weight", array.dtype.name, array.shape, name)

    def state(self, name, dtype, shape):
        operand = self.value("state", dtype, shape, name)
        self.states[name] = (dtype, shape)
        self.function.states[name] = (operand.value, operand.value)
        return operand

    def call(self, name, attributes, writes, reads, into=None, regions=()):
        into = into or (None,) * len(writes)
        line = f"model.py:{len(self.function.calls) + 1}"
        call = Call(name, attributes, tuple(writes), tuple(reads), into, 0, line, tuple(regions))
        self.function.calls.append(call)

    def elementwise(self, op, *reads, dtype="float32", shape=None):
        """Return a new value: `op` of operands and numbers."""
        reads = [r if isinstance(r, Operand) else Number(r, dtype) for r in reads]
        shape = shape if shape is not None else reads[0].shape
        is_test = op in ("lt", "le", "gt", "ge", "eq", "ne")
        out = self.value("temporary", "bool" if is_test else dtype, shape)
        reads = [broadcast(r, shape) if isinstance(r, Operand) else r for r in reads]
        self.call("elementwise", {"op": op, "compute": dtype}, [out], reads)
        return out

    def product(self, a, b):
        out = self.value("temporary", a.dtype, (*a.shape[:-1], b.shape[-1]))
        attributes = {
            "alpha": 1.0, "beta": 0.0, "activation": None,
            "conj_a": False, "conj_b": False, "precision": 0,
        }  # fmt: skip
        self.call("product", attributes, [out], [a, b, None, None, None, None])
        return out

    def reduce(self, op, x, axes):
        shape = tuple(extent for axis, extent in enumerate(x.shape) if axis not in axes)
        out = self.value("temporary", x.dtype, shape)
        attributes = {"op": op, "compute": x.dtype, "axes": axes}
        self.call("reduce", attributes, [out], [x])
        return out

    def write(self, target, source, offset=0, shape=None):
        """Return a new version of `target`, with `source` in a row-major part of it."""
        shape = target.shape if shape is None else shape
        kind = self.function.values[target.value].kind
        version = self.value(kind, target.dtype, target.shape, "", target.value)
        part = dense(version.value, shape, target.dtype, offset)
        if not isinstance(source, Operand):
            source = Number(source, target.dtype)
        attributes = {"op": "copy", "compute": target.dtype}
        self.call("elementwise", attributes, [part], [source], (target.value,))
        for name, (first, last) in self.function.states.items():
            if last == target.value:
                self.function.states[name] = (first, version.value)
        return version

    def output(self, *operands):
        for number, operand in enumerate(operands):
            self.function.outputs.append(Argument(str(number), operand))
        return self.function

    def region(self, name):
        return Builder(name)


def broadcast(operand, shape):
    """Return the operand broadcast to a shape, with stride 0 along broadcast axes."""
    missing = len(shape) - len(operand.shape)
    strides = [0] * missing
    for extent, stride in zip(operand.shape, operand.strides, strict=True):
        strides.append(0 if extent == 1 and shape[len(strides)] != 1 else stride)
    return operand._replace(shape=tuple(shape), strides=tuple(strides))


def program_data(*builders):
    """Return a ProgramData of functions that share weights and states by name."""
    data = ProgramData()
    for builder in builders:
        data.functions[builder.function.name] = builder.function
        data.weights.update(builder.weights)
        data.states.update(builder.states)
    return data


def nbytes_of(dtype, shape):
    return ITEMSIZES[dtype] * prod(shape)


__all__ = ["Builder", "add", "broadcast", "nbytes_of", "program_data"]
