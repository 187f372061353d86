"""Runs a program's functions in NumPy, each value in separate memory or at its offset of a plan.

The reference for passes and plans; it shares only the data structures with the library. Memory is
poisoned first, and in an arena again at the start of each lifetime, so a lost write changes the
result.
"""

import numpy as np

from gputensor._arrays.element_types import DTYPES
from gputensor.programs.dims import evaluate, is_expression
from gputensor.programs.function import Number, Operand

NUMPY = {row.name: row.numpy for row in DTYPES}
OPERATIONS = {
    "add": lambda x, y: x + y,
    "mul": lambda x, y: x * y,
    "sub": lambda x, y: x - y,
    "maximum": np.maximum,
    "neg": lambda x: -x,
    "abs": abs,
    "copy": lambda x: x,
}
POISON = 0xA5


def elementwise(given, _shape, *reads):
    compute = NUMPY[given["compute"]]
    with np.errstate(all="ignore"):
        return np.asarray(OPERATIONS[given["op"]](*[np.asarray(x).astype(compute) for x in reads]))


def reduce(given, _shape, x):
    assert given["op"] == "sum"
    with np.errstate(all="ignore"):
        compute = NUMPY[given["compute"]]
        return x.astype(compute).sum(axis=given["axes"], dtype=compute)


PLAIN = {
    "elementwise": elementwise,
    "reduce": reduce,
    "gather": lambda given, _shape, x, index: np.take(x, index, axis=given["first_axis"]),
    "arange": lambda given, shape: given["start"] + given["step"] * np.arange(shape[0]),
}


def root_of(function, number):
    """Return the number of the first version of a value."""
    while function.values[number].base is not None:
        number = function.values[number].base
    return number


class Memory:
    """The memory of the values of one function."""

    def __init__(self, function, sizes, plan=None, arena=None):
        self.function, self.sizes, self.plan = function, sizes, plan
        self.blocks = {}
        self.arena = arena
        if plan is not None and arena is None:
            self.arena = np.full(plan.nbytes, POISON, np.uint8)

    def block(self, number):
        root = root_of(self.function, number)
        if root not in self.blocks:
            nbytes = evaluate(self.function.values[root].nbytes, self.sizes)
            if self.plan is not None and root in self.plan.offsets:
                start = self.plan.offsets[root]
                assert start + nbytes <= len(self.arena)
                self.blocks[root] = self.arena[start : start + nbytes]
                self.blocks[root][:] = POISON
            else:
                self.blocks[root] = np.full(nbytes, POISON, np.uint8)
        return self.blocks[root]

    def poison_scratch(self, index, call):
        starts = self.plan.scratch.get(index, ())
        sizes = [len(self.block(operand.value)) for operand in call.writes]
        for start, nbytes in zip(starts, [*sizes[: len(starts)], 8], strict=False):
            self.arena[start : start + nbytes] = POISON

    def view(self, operand):
        if operand is None:
            return None
        if isinstance(operand, Number):
            value = operand.value
            value = evaluate(value, self.sizes) if is_expression(value) else value
            return np.asarray(value).astype(NUMPY[operand.dtype])
        dtype = NUMPY[operand.dtype]
        shape = tuple(evaluate(extent, self.sizes) for extent in operand.shape)
        strides = tuple(evaluate(s, self.sizes) * dtype.itemsize for s in operand.strides)
        if 0 in shape:
            return np.empty(shape, dtype)
        offset = evaluate(operand.offset, self.sizes)
        return np.ndarray(shape, dtype, self.block(operand.value), offset, strides)


def run(function, inputs, weights=None, states=None, sizes=None, place=(None, None), order=None):
    """Return (outputs, states afterwards) of a function, as arrays and as bytes.

    `weights` and `states` are arrays by name; `place` is a plan or None, and an arena or None;
    `order` is the order of the calls, by default that of the function.
    """
    sizes = sizes or {}
    memory = Memory(function, sizes, *place)
    for number, value in enumerate(function.values):
        if value.kind in ("weight", "constant"):
            memory.block(number)[:] = _bytes(weights[value.name])
        elif value.kind == "state" and value.base is None:
            memory.block(number)[:] = _bytes(states[value.name])
    for item, array in zip(function.inputs, inputs, strict=True):
        memory.view(item.operand)[...] = array
    for index in range(len(function.calls)) if order is None else order:
        call = function.calls[index]
        places = []
        if call.regions and memory.plan is not None:
            memory.poison_scratch(index, call)
            for start, plan in memory.plan.regions[index]:
                places.append((plan, memory.arena[start : start + plan.nbytes]))
        _call(call, memory, weights, places)
    outputs = [memory.view(item.operand).copy() for item in function.outputs]
    after = {name: memory.block(first).copy() for name, (first, _) in function.states.items()}
    return outputs, after


def _bytes(array):
    return np.frombuffer(np.ascontiguousarray(array).tobytes(), np.uint8)


def _attributes(call, sizes):
    return {
        name: evaluate(value, sizes) if is_expression(value) else value
        for name, value in call.attributes.items()
    }


def _call(call, memory, weights, places):
    given = _attributes(call, memory.sizes)
    reads = [memory.view(operand) for operand in call.reads]
    if call.name == "scatter":
        target = memory.view(call.writes[0])
        target[(slice(None),) * given["first_axis"] + (reads[1],)] = reads[0]
        return
    if call.name in PLAIN:
        results = [PLAIN[call.name](given, memory.view(call.writes[0]).shape, *reads)]
    else:
        results = _control(call, given, [read.copy() for read in reads], memory, weights, places)
    # All operands are read before the first write, as in a call of the library.
    results = [np.array(result) for result in results]
    for operand, result in zip(call.writes, results, strict=True):
        view = memory.view(operand)
        with np.errstate(all="ignore"):
            view[...] = result.astype(view.dtype)
    assert all(isinstance(operand, Operand) for operand in call.writes)


def _control(call, given, reads, memory, weights, places):
    def region(which, arrays):
        place = places[which] if places else (None, None)
        return run(call.regions[which], arrays, weights, None, memory.sizes, place)[0]

    carried = len(call.writes)
    if call.name == "cond":
        return region(0 if reads[0] else 1, reads[1:])
    if call.name == "while_loop":
        while region(0, reads)[0]:
            reads[:carried] = region(1, reads)
        return reads[:carried]
    if call.name == "fori_loop":
        for index in range(given["lower"], given["upper"]):
            reads[:carried] = region(0, [np.int64(index), *reads])
        return reads[:carried]
    carry, arrays, length = given["carry"], given["arrays"], given["length"]
    stacked = [np.empty(memory.view(o).shape, NUMPY[o.dtype]) for o in call.writes[carry:]]
    for index in reversed(range(length)) if given["reverse"] else range(length):
        elements = [array[index] for array in reads[carry : carry + arrays]]
        made = region(0, [*reads[:carry], *elements, *reads[carry + arrays :]])
        reads[:carry] = made[:carry]
        for whole, one in zip(stacked, made[carry:], strict=True):
            whole[index] = one
    return [*reads[:carry], *stacked]
