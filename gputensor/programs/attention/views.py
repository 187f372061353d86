"""Operands as four axes (batch, heads, rows, columns), and the sources of copies."""

from __future__ import annotations

from gputensor.programs import dims as forms
from gputensor.programs.function import Number, Operand

__all__ = ["Graph", "four_axes", "is_new", "is_same_memory", "is_whole", "swapped"]


class Graph:
    """The indices of the calls that write, read and continue the values of a function."""

    def __init__(self, function, weights):
        self.values, self.calls, self.weights = function.values, function.calls, weights
        self.writer, self.continued, self.readers = {}, {}, {}
        for index, call in enumerate(self.calls):
            for read in call.reads:
                if isinstance(read, Operand):
                    self.readers.setdefault(read.value, set()).add(index)
            for operand, into in zip(call.writes, call.into or (None,), strict=False):
                self.writer[operand.value] = index
                if into is not None:
                    self.continued[into] = index

    def maker(self, operand, name=None):
        """Return the call that wrote an operand's whole value, or None."""
        if not isinstance(operand, Operand) or operand.value not in self.writer:
            return None
        call = self.calls[self.writer[operand.value]]
        if len(call.writes) != 1 or any(into is not None for into in call.into):
            return None
        if not is_whole(call.writes[0]) or (name is not None and call.name != name):
            return None
        return call

    def holds_until(self, operand, index):
        """Whether a value is not written again before the call at an index."""
        return operand is None or self.continued.get(operand.value, index) >= index

    def source(self, operand):
        """Return (operand, factor): the source of a copy or of a multiplication by a number.

        The source has the same dtype. The source of a copy that repeats each head has fewer heads,
        with the same rows.
        """
        factor = 1.0
        while True:
            call = self.maker(operand, "elementwise")
            if call is None or not is_whole(operand) or call.writes[0].dtype != operand.dtype:
                return operand, factor
            op, reads, written = call.attributes["op"], call.reads, call.writes[0]
            numbers = [one.value for one in reads if isinstance(one, Number)]
            tensors = [one for one in reads if isinstance(one, Operand)]
            is_scaled = op == "mul" and len(numbers) == 1 and type(numbers[0]) in (int, float)
            if not (op == "copy" or is_scaled) or len(tensors) != 1:
                return operand, factor
            (read,) = tensors
            found = read if written.shape == operand.shape else None
            if found is None:
                found = self.before_repeats(operand, read, written)
            if found is None or read.dtype != operand.dtype:
                return operand, factor
            operand, factor = found, factor * (numbers[0] if is_scaled else 1)

    @staticmethod
    def before_repeats(operand, read, written):
        """Return (batch, kept, rows, size) for a copy that repeats each kept head, or None."""
        if len(written.shape) != 5 or read.strides[2] != 0:
            return None
        batch, kept, groups, rows, size = written.shape
        if operand.shape != (batch, forms.mul(kept, groups), rows, size):
            return None
        strides = (*read.strides[:2], *read.strides[3:])
        return read._replace(shape=(batch, kept, rows, size), strides=strides)


def is_whole(operand):
    """Whether an operand is row-major and begins at the start of its value."""
    if operand.offset != 0:
        return False
    wanted = forms.row_major(operand.shape)
    steps = zip(operand.shape, operand.strides, wanted, strict=True)
    return all(n == 1 or s == w for n, s, w in steps)


def is_new(call):
    """Whether a call writes all of one new value."""
    return (
        len(call.writes) == 1
        and all(into is None for into in call.into)
        and is_whole(call.writes[0])
    )


def is_same_memory(one, other):
    """Whether two operands are the same whole value, in the same order, with any axes."""
    return (
        isinstance(one, Operand)
        and one.value == other.value
        and one.dtype == other.dtype
        and is_whole(one)
        and is_whole(other)
        and forms.mul(1, *one.shape) == forms.mul(1, *other.shape)
    )


def four_axes(operand, lead):
    """Return an operand of matrices as (batch, heads, rows, columns), for `lead`: (batch, heads).

    Returns None if its axes cannot be split in this way.
    """
    before, last = operand.shape[:-2], operand.shape[-2:]
    strides = operand.strides
    if before == lead:
        found = strides[:-2]
    elif not before and lead == (1, 1):
        found = (0, 0)
    elif len(before) == 1 and lead == (1, *before):
        found = (0, strides[0])
    elif len(before) == 1 and before[0] == forms.mul(*lead):
        found = (forms.mul(lead[1], strides[0]), strides[0])
    else:
        return None
    return operand._replace(shape=(*lead, *last), strides=(*found, *strides[-2:]))


def swapped(operand):
    """Return an operand with its last two axes exchanged."""
    shape, strides = operand.shape, operand.strides
    return operand._replace(
        shape=(*shape[:-2], shape[-1], shape[-2]), strides=(*strides[:-2], strides[-1], strides[-2])
    )
