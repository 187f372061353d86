"""Random functions of tensors, traced and run beside themselves: the bits of both are equal.

A function is a list of steps on a list of tensors: element-wise work, reductions, products, views,
writes through views, ``out=``, aliases, tensors from outside, streams, state and loops. Steps are
drawn while they are tried eagerly, so that those which do not fit are left out. The trace runs in a
session on a host device that runs at once or one that defers, with new inputs, and at times in the
interpreter of tests/support on a poisoned arena. NaNs are equal, whatever their bits.

    python -m tests.conformance.programs.random_programs --count 1000 --seed 1
"""

from __future__ import annotations

import argparse
import random
import sys
import time
import warnings

import numpy as np

import gputensor as gt
from gputensor._driver.registry import close_host, open_host
from gputensor.errors import TraceError
from gputensor.programs.compile import data_of, sources_of
from gputensor.programs.passes.plan import plan
from gputensor.programs.passes.plan_check import check_plan
from gputensor.programs.program import Program
from tests.support.programs.call_by_call import Interpreter

DTYPES = "float32 float64 float16 bfloat16 int32 int64 int8 uint8 bool complex64".split()
UNARY = "negative abs square sqrt exp tanh floor sin cos logical_not sign relu".split()
UNARY = [name for name in UNARY if hasattr(gt, name)]
BINARY = "add subtract multiply maximum minimum divide less equal where pow".split()
REDUCTIONS = "sum max min mean any argmax prod all".split()
MOST = 4096  # elements of a tensor


class Outside:
    """What a function takes from outside: tensors and streams, made when it is drawn."""

    def __init__(self, rng):
        self.numbers = np.random.default_rng(rng.getrandbits(32))
        self.tensors = []

    def values(self, shape, dtype):
        return random_values(self.numbers, shape, dtype)

    def tensor(self, shape, dtype):
        self.tensors.append(gt.asarray(self.values(shape, dtype), device="host"))
        return self.tensors[-1]


def random_values(numbers, shape, dtype):
    made = numbers.integers(-4, 9, shape) / (2 if "float" in dtype or "complex" in dtype else 1)
    if dtype == "bool":
        made = made > 1
    if dtype.startswith("u"):
        made = np.abs(made)
    return made.astype(gt.asarray(0, dtype=dtype, device="host").dtype)


# ---- steps: each draws what it needs and returns a function of the list of tensors, or None


def unary(rng, values, given):
    i, name = rng.randrange(len(values)), rng.choice(UNARY)
    return lambda v: v.append(getattr(gt, name)(v[i]))


def partner(rng, values, i):
    """Another tensor that broadcasts with the i-th, by its shape."""
    shape = values[i].shape
    fitting = [
        k
        for k, one in enumerate(values)
        if all(a == b or 1 in (a, b) for a, b in zip(one.shape[::-1], shape[::-1], strict=False))
    ]
    return rng.choice(fitting)


def binary(rng, values, given):
    i, name = rng.randrange(len(values)), rng.choice(BINARY)
    k, number = partner(rng, values, i), rng.choice([None, None, 2, 0.5, -1, True])
    is_left = rng.random() < 0.5

    def step(v):
        x, y = v[i], v[k] if number is None else number
        if name == "where":
            return v.append(gt.where(v[k] > 1, x, y))
        v.append(
            getattr(gt, name)(x, y) if is_left or number is not None else getattr(gt, name)(y, x)
        )

    return step


def output(rng, values, given):
    i, name = rng.randrange(len(values)), rng.choice(["add", "multiply", "maximum", "negative"])
    k, is_view = partner(rng, values, i), rng.random() < 0.5

    def step(v):
        target = gt.empty_like(v[i]) if not is_view else gt.zeros((*v[i].shape, 2))[..., 1]
        others = (v[i],) if name == "negative" else (v[i], v[k])
        v.append(getattr(gt, name)(*others, out=target.astype(v[i].dtype, copy=False)))

    return step


def in_place(rng, values, given):
    """A write to a tensor that a step made: all of it, through a view, or through an alias."""
    i, k = rng.randrange(len(values)), rng.randrange(len(values))
    how, number = rng.randrange(6), rng.choice([1, 2, 0])
    is_copied = how < 3 or i < given.inputs
    key = random_key(rng, values[i])

    def step(v):
        x = gt.copy(v[i]) if is_copied else v[i]
        view = x[key]
        if how % 3 == 0:
            view += number
        elif how % 3 == 1:
            x[key] = v[k] if v[k].ndim <= view.ndim else number
        else:
            gt.add(view, view[..., ::-1], out=view)
        v.append(x)
        v.append(view)

    return step


def random_key(rng, tensor):
    slices = [slice(None), slice(1, None), slice(None, -1), slice(None, None, 2), slice(1, 3)]
    slices += [slice(None, None, -1), 0, -1]
    return tuple(rng.choice(slices) for _axis in range(rng.randint(0, tensor.ndim)))


def view(rng, values, given):
    i, how = rng.randrange(len(values)), rng.randrange(6)
    key = random_key(rng, values[i])
    order = rng.sample(range(values[i].ndim), values[i].ndim)
    axis = rng.randint(0, values[i].ndim)

    def step(v):
        x = v[i]
        if how == 0:
            x = gt.permute_dims(x, order)
        elif how == 1:
            x = gt.reshape(x, (-1,))
        elif how == 2:
            x = gt.expand_dims(x, axis=axis)
        elif how == 3:
            x = gt.broadcast_to(x, (2, *x.shape))
        else:
            x = x[key]
        v.append(x)

    return step


def reduction(rng, values, given):
    i, name = rng.randrange(len(values)), rng.choice(REDUCTIONS)
    axis = rng.choice([None, 0, -1])
    keep = rng.random() < 0.5
    return lambda v: v.append(getattr(gt, name)(v[i], axis=axis, keepdims=keep))


def product(rng, values, given):
    i, k = rng.randrange(len(values)), rng.randrange(len(values))
    activation = rng.choice([None, None, "relu", "gelu"])

    def step(v):
        a, b = v[i], v[k]
        if a.ndim >= 1 and b.ndim == 2 and a.shape[-1] != b.shape[0]:
            b = b.T
        v.append(gt.matmul(a, b, activation=activation))

    return step


def rows(rng, values, given):
    i, how = rng.randrange(len(values)), rng.randrange(3)
    names = ("softmax", "layer_norm", "logsumexp")

    def step(v):
        x = v[i]
        if how == 1:
            return v.append(gt.layer_norm(x))
        v.append(getattr(gt, names[how])(x, axis=-1))

    return step


def casting(rng, values, given):
    i, dtype = rng.randrange(len(values)), rng.choice(DTYPES)
    return lambda v: v.append(gt.astype(v[i], dtype))


def joining(rng, values, given):
    i, axis = rng.randrange(len(values)), rng.choice([0, -1])
    k, how = partner(rng, values, i), rng.randrange(3)

    def step(v):
        if how == 0:
            return v.append(gt.concat([v[i], v[k]], axis=axis))
        if how == 1:
            return v.append(gt.stack([v[i], v[i]], axis=axis))
        v.append(gt.roll(v[i], 1, axis=0))

    return step


def indexing(rng, values, given):
    i = rng.randrange(len(values))
    picks = [rng.randint(0, 1) for _pick in range(rng.randint(1, 4))]
    how = rng.randrange(4)

    def step(v):
        x = v[i]
        if how == 0:
            return v.append(x[picks])
        index = gt.asarray(picks, dtype="int32")
        if how == 1:
            return v.append(gt.take(x, index, axis=0))
        x = gt.copy(x)
        if how == 2:
            x[sorted(set(picks))] = 1
        else:
            x[x > 1] = 0
        v.append(x)

    return step


def creation(rng, values, given):
    i, how, number = rng.randrange(len(values)), rng.randrange(5), rng.choice([0, 1, 2.5])

    def step(v):
        x = v[i]
        if how == 0:
            made = gt.full(x.shape, number)
        elif how == 1:
            made = gt.arange(x.shape[0] if x.ndim else 3)
        elif how == 2:
            made = gt.asarray([[1.0, 2.0], [3.0, number]])
        elif how == 3:
            made = x * x.shape[0] if x.ndim else x
        else:
            made = gt.empty(x.shape)
            made[...] = x.astype("float32")
        v.append(made)

    return step


def outside(rng, values, given):
    i = rng.randrange(len(values))
    made = given.tensor(values[i].shape if given.fixed else (), rng.choice(DTYPES))
    how = rng.randrange(3)

    def step(v):
        other = made.T if how and made.ndim == 2 else made
        folded = other + other if how == 2 else other
        v.append(v[i] + (folded.T if how and made.ndim == 2 else folded))

    return step


# ---- control flow; bodies have steps of their own, on copies of the list


def body_of(rng, values, given):
    """Steps that end in a tensor like `c`; applied to a list that begins with the carry."""
    steps = [rng.choice(PURE)(rng, values, given) for _step in range(rng.randint(1, 3))]

    def body(c, v):
        local = [c, *v]
        for step in steps:
            step(local)
        new = local[-1] if local[-1].shape == c.shape else c * 2 if c.dtype.kind != "b" else ~c
        return gt.astype(new, c.dtype)

    return body


def loop(rng, values, given):
    i, how = rng.randrange(len(values)), rng.randrange(4)
    body, other = body_of(rng, values, given), body_of(rng, values, given)
    turns, reverse = rng.randint(0, 3), rng.random() < 0.5

    def step(v):
        x, before = v[i], list(v)
        if how == 0:
            return v.append(gt.fori_loop(0, turns, lambda n, c: body(c, before), x))
        if how == 1:
            carry = (x, 0)
            carry = gt.while_loop(
                lambda c: c[1] < turns, lambda c: (body(c[0], before), c[1] + 1), carry
            )
            return v.append(carry[0])
        if how == 2:
            return v.append(
                gt.cond(gt.any(x), lambda c: body(c, before), lambda c: other(c, before), x)
            )
        last, made = gt.scan(
            lambda c, n: (body(c, before), gt.sum(c.astype("float32")) + n),
            x,
            gt.arange(turns + 1, dtype="float32"),
            reverse=reverse,
        )
        v += [last, made]

    def check(v):
        """Bodies that no turn runs, and branches not taken, have to fit, too."""
        body(v[i], v)
        other(v[i], v)

    step.check = check
    return step


def on_stream(rng, values, given):
    inner = rng.choice(PURE)(rng, values, given)
    is_outer = rng.random() < 0.5
    made = []

    def step(v):
        if not made and is_outer:
            made.append(gt.Stream("host"))
        with gt.stream(made[0] if is_outer else gt.Stream()):
            inner(v)

    return step


PURE = [unary, binary, binary, reduction, view, casting, product, creation]
STEPS = [*PURE, view, output, in_place, in_place, in_place, joining, indexing, rows]
STEPS += [outside, loop, on_stream]


# ---- programs


class Case:
    """One drawn function: `model(*inputs, state)`, with its specs."""

    def __init__(self, seed):
        rng = random.Random(seed)
        self.rng = rng
        self.given = Outside(rng)
        self.has_dim = rng.random() < 0.2
        self.given.fixed = not self.has_dim
        self.shapes = [self.shape() for _input in range(rng.randint(1, 3))]
        self.given.inputs = len(self.shapes)
        self.dtypes = [rng.choice(DTYPES) for _shape in self.shapes]
        self.states = [
            (rng.choice(DTYPES), (rng.randint(2, 4), 3)) for _s in range(rng.randint(0, 2))
        ]
        self.writes = []
        self.steps = []
        self.draw(rng.randint(2, 10))
        self.outputs = rng.sample(range(self.total), min(self.total, rng.randint(1, 4)))

    def shape(self):
        extents = [self.rng.randint(2, 5) for _axis in range(self.rng.randint(0, 3))]
        if self.has_dim and extents:
            extents[0] = "n"
        return tuple(extents)

    def inputs(self, size, numbers):
        return [
            random_values(numbers, tuple(size if e == "n" else e for e in shape), dtype)
            for shape, dtype in zip(self.shapes, self.dtypes, strict=True)
        ]

    def draw(self, count):
        """Try steps on eager tensors of two sizes; keep those that work."""
        numbers = np.random.default_rng(0)
        lists = []
        for size in (5, 8) if self.has_dim else (5,):
            arrays = self.inputs(size, numbers)
            states = [gt.zeros(shape, dtype=dtype, device="host") for dtype, shape in self.states]
            lists.append([*(gt.asarray(a, device="host") for a in arrays), *states])
        fixed = len(self.shapes)
        for _step in range(count):
            step = self.rng.choice(STEPS)(self.rng, lists[0], self.given)
            if self.states and self.rng.random() < 0.2:
                step = self.state_step(fixed, lists[0])
            lengths = [len(one) for one in lists]
            try:
                with gt.Device("host"):
                    for one, length in zip(lists, lengths, strict=True):
                        getattr(step, "check", len)(one)
                        step(one)
                        if any(tensor.size > MOST for tensor in one[length:]):
                            raise ValueError
            except (ValueError, TypeError, IndexError, OverflowError, RuntimeError):
                for one, length in zip(lists, lengths, strict=True):
                    del one[length:]
                continue
            self.steps.append(step)
        self.total = len(lists[0])

    def state_step(self, fixed, values):
        place = fixed + self.rng.randrange(len(self.states))
        key = random_key(self.rng, values[place])
        i, how = self.rng.randrange(len(values)), self.rng.randrange(3)

        def step(v):
            state = v[place]
            if how == 0:
                state[key] = 1
            elif how == 1:
                state[key] = gt.sum(v[i].astype("float32")) if v[i].dtype.kind != "c" else 2
            else:
                gt.maximum(state, state[::-1], out=state)

        return step

    def model(self, inputs, state):
        values = [*inputs, *state]
        for step in self.steps:
            step(values)
        return [values[i] for i in self.outputs]

    def specs(self):
        dim = gt.Dim("n", 4, 40)
        return [
            gt.spec([dim if e == "n" else e for e in shape], dtype)
            for shape, dtype in zip(self.shapes, self.dtypes, strict=True)
        ]

    def eager(self, arrays, states):
        """The results as arrays; writes to arguments are refused by the trace alone."""
        with gt.Device("host"):
            made = self.model([gt.asarray(a, device="host") for a in arrays], states)
            return [tensor.numpy() for tensor in made]


def canonical(array):
    """The bytes of an array, with one kind of NaN."""
    array = np.array(array, order="C")
    kind = array.dtype.kind
    if kind in "fcV":
        parts = np.atleast_1d(array)
        parts = parts.view(parts.real.dtype) if kind == "c" else parts
        is_nan = np.isnan(parts)
        if is_nan.any():
            parts[is_nan] = np.nan
        return np.atleast_1d(parts).tobytes()
    return array.tobytes()


def differ(one, other):
    return [
        index
        for index, (a, b) in enumerate(zip(one, other, strict=True))
        if (a.dtype, a.shape) != (b.dtype, b.shape) or canonical(a) != canonical(b)
    ]


def checked_plan(function, sizes):
    made = plan(function, sizes)
    check_plan(function, sizes, made)
    return made.nbytes, made.offsets


def run_one(seed, devices, interpret):
    """Check one program; gives "ran", "refused" or a description of what differs."""
    case = Case(seed)
    source = sources_of(case.model_source(), tuple(case.tree()), None, case.state_specs(), {})
    device = case.rng.choice(devices)
    try:
        data = data_of(source, device)
    except TraceError as error:
        return f"refused: {error}"
    except (ValueError, TypeError, IndexError, OverflowError) as error:
        if case.has_dim:
            return f"refused: {error}"
        raise
    numbers = np.random.default_rng(seed)
    states = [gt.zeros(shape, dtype=dtype, device="host") for dtype, shape in case.states]
    program = Program(data, device)
    interpreter = Interpreter(data, device, checked_plan) if interpret else None
    with program.session() as session:
        for turn in range(2):
            arrays = case.inputs(case.rng.randint(4, 40), numbers)
            wanted = case.eager(arrays, states)
            tensors = [gt.asarray(a, device=device) for a in arrays]
            made = [tensor.numpy() for tensor in session.model(tensors)]
            found = differ(made, wanted)
            kept = [session.state[i].numpy() for i in range(len(states))]
            found += differ(kept, [state.numpy() for state in states])
            if found:
                return f"session differs in {found}, turn {turn}"
            if interpreter is not None:
                found = differ([t.numpy() for t in interpreter.run("model", tensors)], wanted)
                if found:
                    return f"interpreter differs in {found}, turn {turn}"
    return "ran"


def model_source(self):
    def model(inputs, state):
        return self.model(inputs, state)

    return model


def tree_of(self):
    return [self.specs()]


def state_specs(self):
    return [gt.spec(shape, dtype) for dtype, shape in self.states]


Case.model_source, Case.tree, Case.state_specs = model_source, tree_of, state_specs


def campaign(count, seed, seconds=None, show=print):
    """Run `count` programs; returns (ran, refused, failures)."""
    devices = [-1, open_host(capacity=1 << 30), open_host(capacity=1 << 30, seed=seed)]
    ran, refused, failures = 0, {}, []
    stop = None if seconds is None else time.monotonic() + seconds
    try:
        for index in range(count):
            one = seed * 1_000_003 + index
            try:
                result = run_one(one, devices, index % 8 == 0)
            except Exception as error:
                result = f"{type(error).__name__}: {error}"
            if result == "ran":
                ran += 1
            elif result.startswith("refused: "):
                reason = result.split("; ")[-1]
                refused[reason] = refused.get(reason, 0) + 1
            else:
                failures.append((one, result))
                show(f"program {one}: {result}")
            if stop is not None and time.monotonic() > stop:
                break
    finally:
        for device in devices[1:]:
            close_host(device)
    return ran, refused, failures


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().getrandbits(20))
    parser.add_argument("--seconds", type=float)
    options = parser.parse_args(arguments)
    warnings.simplefilter("ignore")
    began = time.monotonic()
    ran, refused, failures = campaign(options.count, options.seed, options.seconds)
    seconds = time.monotonic() - began
    total = ran + sum(refused.values()) + len(failures)
    print(f"seed {options.seed}: {ran} of {total} programs ran, in {seconds:.0f} s")
    for reason, number in sorted(refused.items(), key=lambda item: -item[1])[:8]:
        print(f"  refused {number}: {reason}")
    print(f"failures: {len(failures)}")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
