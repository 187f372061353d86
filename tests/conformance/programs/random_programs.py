"""Random tensor functions: the program of a function gives the bits of the function itself.

A function is a list of steps (tests/support/programs/random_steps.py). Each step is tried eagerly
when it is drawn, and left out if it does not fit. The trace runs in a session with new inputs, on a
host device that runs work at once or defers it, and sometimes call by call on a poisoned arena. All
NaNs count as equal.

    python -m tests.conformance.programs.random_programs --count 1000 --seed 1
"""

from __future__ import annotations

import random
import sys

import numpy as np

import gputensor as gt
from gputensor._driver.registry import close_host, open_host
from gputensor.errors import ProgramError, ProgramRunError, TraceError
from gputensor.programs.compile import data_of, sources_of
from gputensor.programs.passes.plan import plan
from gputensor.programs.passes.plan_check import check_plan
from gputensor.programs.program import Program
from gputensor.programs.sizes import at_sizes, key_of
from gputensor.programs.tracing import is_spec
from tests.support.programs.call_by_call import Interpreter
from tests.support.programs.campaigns import options_of, report, run_many
from tests.support.programs.random_steps import (
    DTYPES,
    MOST,
    STEPS,
    Outside,
    random_key,
    random_values,
)

UNFIT = (ValueError, TypeError, IndexError, OverflowError, RuntimeError)


class Case:
    """One drawn function: `model(*inputs, state)`, with its specs.

    `kinds` are the functions that draw its steps, `dtypes` those of its inputs, and `lengths` the
    range of the number of steps. Only cases with all kinds of steps have states.
    """

    def __init__(self, rng, home="host", kinds=STEPS, dtypes=DTYPES, lengths=(2, 10)):
        self.rng = rng
        self.kinds = kinds
        self.home = home
        self.given = Outside(rng, home)
        self.has_dim = rng.random() < 0.2
        self.given.fixed = not self.has_dim
        self.shapes = [self.shape() for _input in range(rng.randint(1, 3))]
        self.given.inputs = len(self.shapes)
        self.dtypes = [rng.choice(dtypes) for _shape in self.shapes]
        self.states = [
            (rng.choice(DTYPES), (rng.randint(2, 4), 3))
            for _s in range(rng.randint(0, 2) if kinds is STEPS else 0)
        ]
        self.writes = []
        self.steps = []
        self.draw(rng.randint(*lengths))
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
            states = [
                gt.zeros(shape, dtype=dtype, device=self.home) for dtype, shape in self.states
            ]
            lists.append([*(gt.asarray(a, device=self.home) for a in arrays), *states])
        fixed = len(self.shapes)
        for _step in range(count):
            step = self.rng.choice(self.kinds)(self.rng, lists[0], self.given)
            if self.states and self.rng.random() < 0.2:
                step = self.state_step(fixed, lists[0])
            lengths = [len(one) for one in lists]
            try:
                with gt.Device(self.home):
                    for one, length in zip(lists, lengths, strict=True):
                        getattr(step, "check", len)(one)
                        step(one)
                        if any(tensor.size > MOST for tensor in one[length:]):
                            raise ValueError
            except UNFIT:
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
        dim = gt.Dim("n", 1, 40)
        return [
            gt.spec([dim if e == "n" else e for e in shape], dtype)
            for shape, dtype in zip(self.shapes, self.dtypes, strict=True)
        ]

    def listed(self):
        """The sizes to trace the function at, one trace each; None for one trace of all sizes."""
        if not self.has_dim or self.rng.random() < 0.5:
            return None
        return self.rng.sample(range(1, 41), self.rng.randint(1, 3))

    def source(self, listed=None):
        def model(inputs, state):
            return self.model(inputs, state)

        state = [gt.spec(shape, dtype) for dtype, shape in self.states]
        sources = sources_of(model, (self.specs(),), None, state, {})
        return at_sizes(sources[0], {"n": listed}, is_spec) if listed else sources

    def eager(self, arrays, states):
        """The results as arrays. Only the trace refuses writes to arguments."""
        with gt.Device(self.home):
            made = self.model([gt.asarray(a, device=self.home) for a in arrays], states)
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


def run_one(seed, devices, interpret, home="host"):
    """Check one program; returns "ran", "refused: " with a reason, or what differs.

    `devices` run the program, `home` the function.
    """
    case = Case(random.Random(seed), home)
    listed = case.listed()
    source = case.source(listed)
    device = case.rng.choice(devices)
    try:
        data = data_of(source, device)
    except TraceError as error:
        return f"refused: {error}"
    except (ValueError, TypeError, IndexError, OverflowError) as error:
        if case.has_dim and not isinstance(error, ProgramError):
            return f"refused: {error}"  # its steps do not fit at some size
        raise
    numbers = np.random.default_rng(seed)
    states = [gt.zeros(shape, dtype=dtype, device=home) for dtype, shape in case.states]
    program = Program(data, device)
    interpreter = Interpreter(data, device, checked_plan) if interpret else None
    with program.session() as session:
        for turn in range(2):
            size = case.rng.choice(listed or range(1, 41))
            arrays = case.inputs(size, numbers)
            try:
                wanted = case.eager(arrays, states)
            except IndexError as error:  # indices on the device, which a trace does not see
                return f"refused: eagerly, {error}"
            tensors = [gt.asarray(a, device=device) for a in arrays]
            made = [tensor.numpy() for tensor in session.model(tensors)]
            found = differ(made, wanted)
            kept = [session.state[i].numpy() for i in range(len(states))]
            found += differ(kept, [state.numpy() for state in states])
            if found:
                return f"session differs in {found}, turn {turn}"
            if interpreter is not None:
                name = key_of(
                    "model", {"n": size} if listed and program.functions["model"].at else {}
                )
                found = differ([t.numpy() for t in interpreter.run(name, tensors)], wanted)
                if found:
                    return f"interpreter differs in {found}, turn {turn}"
        if interpret:
            found = checked(program, tensors)
            if found:
                return found
    return "ran"


def checked(program, tensors):
    """Run a program in a checked session too: it gives the same bits, or stops at a NaN."""
    with program.session() as plain, program.session(check=True) as session:
        for one, other in zip(session.state, plain.state, strict=True):
            one[...] = other[...] = 1
        wanted = [tensor.numpy() for tensor in plain.model(tensors)]
        try:
            made = [tensor.numpy() for tensor in session.model(tensors)]
        except ProgramRunError as error:
            return None if ": got NaN in " in str(error) else f"checked: {error}"
        found = differ(made, wanted)
        kept = [[one.numpy() for one in s.state] for s in (session, plain)]
        found += differ(*kept)
        return f"checked session differs in {found}" if found else None


def campaign(count, seed, seconds=None, show=print, home="host"):
    """Run `count` programs; returns (ran, refused, failures)."""
    opened = []
    if home == "host":
        opened = [open_host(capacity=1 << 30), open_host(capacity=1 << 30, seed=seed)]
    devices = [gt.Device(home).number, *opened]

    def run(one, index):
        return run_one(one, devices, index % 8 == 0, home)

    try:
        return run_many(run, count, seed, seconds, show)
    finally:
        for device in opened:
            close_host(device)


def main(arguments=None):
    return report(campaign, options_of(__doc__, 1000).parse_args(arguments))


if __name__ == "__main__":
    sys.exit(main())
