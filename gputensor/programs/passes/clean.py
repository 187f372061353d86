"""The first pass: folds calls of constants, merges equal calls, and removes unread ones.

From Function to Function; the argument is not modified. Remaining calls keep their order. A call
that writes part of a value is never merged or folded. Every write to a state remains, and so does a
call that writes nothing, because it may raise.
"""

from __future__ import annotations

from dataclasses import replace
from math import prod

import numpy as np

from gputensor._arrays.element_types import DTYPES
from gputensor._kernels.calls import CALLS
from gputensor.programs import dims as forms
from gputensor.programs.function import Argument, Function, Number, Operand, Value, Weight

__all__ = ["Clean", "clean"]

#: Results larger than this and larger than their operands are computed at each run.
MAX_FOLDED_BYTES = 1 << 16
_NUMPY = {row.name: row.numpy for row in DTYPES}


def clean(function, weights, compute=None):
    """Return a function without constant, repeated and unread work.

    Parameters
    ----------
    function : Function
    weights : dict
        The weights and constants of the program by name; new constants are added.
    compute : callable, optional
        ``compute(call, arrays)`` computes a call and returns the list of its results, or None to
        leave the call as it is. `arrays` contains a NumPy array for each operand that the call
        reads, a Number for a number and None for an absent operand. Without `compute`, no calls are
        folded.

    Returns
    -------
    Function
    """
    function = Clean(function, weights, None).without_unread(function.calls)
    return Clean(function, weights, compute).run()


class Clean:
    """The pass over one function; `split` is a subclass.

    Attributes
    ----------
    values : list of Value
        The values of the function; new ones are appended.
    now : dict
        Value -> the equal value that its readers read instead.
    """

    #: Kinds of values that a folded call may read.
    kinds: tuple[str, ...] = ("constant",)

    def __init__(self, function, weights, compute):
        self.function, self.weights, self.compute = function, weights, compute
        self.values = list(function.values)
        self.now = {}
        self.folded = {}  # (dtype, bytes) -> the constant with these elements
        self.continued = {value.base for value in function.values}  # values with versions
        self.outputs = {item.operand.value for item in function.outputs}

    def inside(self, region):
        """Return a region after the pass."""
        return clean(region, self.weights, self.compute)

    def run(self):
        """Return the function after the pass."""
        calls, equal = [], {}
        for call in self.function.calls:
            regions = tuple(self.inside(one) for one in call.regions)
            reads = tuple(self.replaced(read) for read in call.reads)
            call = replace(call, reads=reads, regions=regions)
            if self.is_plain(call):
                if self.folds(call):
                    continue
                earlier = equal.setdefault(self.key(call), call)
                if earlier is not call and self.merges(call, earlier):
                    continue
            calls.append(call)
        return self.without_unread(calls)

    def replaced(self, read):
        if isinstance(read, Operand) and read.value in self.now:
            return read._replace(value=self.now[read.value])
        return read

    def is_plain(self, call):
        """Whether a call makes only new values, which have no further versions."""
        return (
            bool(call.writes)
            and not call.regions
            and all(into is None for into in call.into)
            and not any(operand.value in self.continued for operand in call.writes)
            and CALLS[call.name].writes_all(
                [call.attributes[name] for name in CALLS[call.name].attributes], call.reads
            )
        )

    # Merging.
    def key(self, call):
        """Return a key that is equal for equal calls; it contains the versions that they read."""
        written = [(operand[1:], self.values[operand.value].nbytes) for operand in call.writes]
        return repr((call.name, sorted(call.attributes.items()), written, call.reads))

    def merges(self, call, earlier):
        pairs = list(zip(call.writes, earlier.writes, strict=True))
        # Outputs need separate memory.
        if any(a.value in self.outputs and b.value in self.outputs for a, b in pairs):
            return False
        for operand, kept in pairs:
            self.now[operand.value] = kept.value
            if operand.value in self.outputs:
                self.outputs.add(kept.value)
        return True

    # Folding.
    def folds(self, call):
        """Fold a call whose operands are all constants; return whether it was folded."""
        if self.compute is None or not self.is_constant(call):
            return False
        arrays = [self.elements(read) for read in call.reads]
        results = self.compute(call, arrays)
        if results is None:
            return False
        for operand, result in zip(call.writes, results, strict=True):
            array = np.ascontiguousarray(result, dtype=_NUMPY[operand.dtype])
            array = array.reshape(operand.shape)
            key = (operand.dtype, array.tobytes())
            if key in self.folded:
                self.now[operand.value] = self.folded[key]
                continue
            number = sum(name.startswith("constant.") for name in self.weights)
            while (name := f"constant.{number}") in self.weights:
                number += 1
            self.weights[name] = Weight(name, operand.dtype, tuple(operand.shape), array)
            self.values.append(Value("constant", array.nbytes, name))
            self.now[operand.value] = self.folded[key] = len(self.values) - 1
        return True

    def is_constant(self, call):
        """Whether a call reads only values of `kinds`, and makes no more bytes than it reads."""
        read = 0
        for operand in call.reads:
            if isinstance(operand, Operand):
                if self.values[operand.value].kind not in self.kinds or not _is_fixed(operand):
                    return False
                read += self.values[operand.value].nbytes
            elif isinstance(operand, Number) and forms.is_expression(operand.value):
                return False
        if any(_has_dims(value) for value in call.attributes.values()):
            return False
        for operand in call.writes:
            nbytes = self.values[operand.value].nbytes
            if not _is_fixed(operand) or type(nbytes) is not int or not _is_whole(operand, nbytes):
                return False
            if operand.value in self.outputs or nbytes > max(read, MAX_FOLDED_BYTES):
                return False
        return True

    def elements(self, read):
        """Return the array of a constant operand."""
        if not isinstance(read, Operand):
            return read
        source = self.weights[self.values[read.value].name].source
        array = source if isinstance(source, np.ndarray) else source.numpy()
        dtype = _NUMPY[read.dtype]
        if 0 in read.shape:
            return np.empty(read.shape, dtype)
        strides = [stride * dtype.itemsize for stride in read.strides]
        memory = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
        return np.ndarray(read.shape, dtype, memory, read.offset, strides)

    # Dropping.
    def without_unread(self, calls):
        function = self.function
        outputs = [Argument(a.path, self.replaced(a.operand)) for a in function.outputs]
        needed = {item.operand.value for item in (*function.inputs, *outputs)}
        for versions in function.states.values():
            needed.update(versions)
        kept = []
        for call in reversed(calls):
            written = [operand.value for operand in call.writes]
            is_read = any(number in needed for number in written)
            if written and not is_read:
                if all(self.values[number].kind != "state" for number in written):
                    continue
            kept.append(call)
            needed.update(written)
            needed.update(into for into in call.into if into is not None)
            needed.update(read.value for read in call.reads if isinstance(read, Operand))
        numbers = {old: new for new, old in enumerate(sorted(needed))}
        values = [self.renumbered_value(self.values[old], numbers) for old in numbers]
        return Function(
            function.name,
            dict(function.dims),
            values,
            [Argument(a.path, _renumbered(a.operand, numbers)) for a in function.inputs],
            [Argument(a.path, _renumbered(a.operand, numbers)) for a in outputs],
            {name: tuple(numbers[v] for v in both) for name, both in function.states.items()},
            [self.renumbered_call(call, numbers) for call in reversed(kept)],
            dict(function.facts),
            function.tree,
            function.result,
            dict(function.at),
        )

    def renumbered_value(self, value, numbers):
        base = None if value.base is None else numbers[value.base]
        return Value(value.kind, value.nbytes, value.name, base)

    def renumbered_call(self, call, numbers):
        return replace(
            call,
            writes=tuple(_renumbered(operand, numbers) for operand in call.writes),
            reads=tuple(_renumbered(operand, numbers) for operand in call.reads),
            into=tuple(None if into is None else numbers[into] for into in call.into),
        )


def _renumbered(operand, numbers):
    if isinstance(operand, Operand):
        return operand._replace(value=numbers[operand.value])
    return operand


def _is_fixed(operand):
    integers = (*operand.shape, *operand.strides, operand.offset)
    return all(type(integer) is int for integer in integers)


def _is_whole(operand, nbytes):
    is_dense = operand.strides == forms.row_major(operand.shape) and operand.offset == 0
    return is_dense and nbytes == prod(operand.shape) * _NUMPY[operand.dtype].itemsize


def _has_dims(value):
    if forms.is_expression(value):
        return True
    return type(value) is tuple and any(_has_dims(part) for part in value)
