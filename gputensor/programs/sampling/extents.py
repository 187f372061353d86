"""Extents that record comparisons in a traced function.

While a function with dims is traced, `x.shape` and `x.size` of its tensors consist of `Extent`s:
ints that record how they were computed. Arithmetic with ints gives further Extents. A comparison
has the same result as for ints, and is recorded, so that `ways.py` can find sizes at which it has
another result. Only the user's code gets Extents; the library's own code gets plain ints.
"""

from __future__ import annotations

import operator
import sys
from typing import NamedTuple

from gputensor.programs.trace_device import calling_line

__all__ = ["Comparison", "Extent", "Notes"]

_ARITHMETIC = "add sub mul floordiv mod and or xor lshift rshift".split()
_COMPARISONS = "lt le eq ne gt ge".split()
_MOST_NOTES = 10_000  # comparisons of one run
_MOST_PARTS = 64  # of one expression; larger ones, such as sums in long loops, become plain ints


class Comparison(NamedTuple):
    """One comparison; `left` and `right` are numbers, or tuples of how they were computed."""

    line: str
    compare: object
    left: object
    right: object
    outcome: bool


class Notes:
    """The extents that one run of a function read, and its comparisons.

    Attributes
    ----------
    extents : dict
        Key -> an extent that the function read; keys are the same in all runs.
    comparisons : dict
        The distinct Comparisons in order.
    """

    def __init__(self):
        self.extents = {}
        self.comparisons = {}
        self._counts = {}

    def read(self, line, values):
        """Return values that the function reads on a line as Extents."""
        count = self._counts[line] = self._counts.get(line, -1) + 1
        found = []
        for axis, value in enumerate(values):
            key = line, count, axis
            self.extents[key] = value
            found.append(Extent(value, ("extent", key), 1, self))
        return tuple(found)

    def read_length(self, line, value, code):
        """Record a length, a plain int that may be compared with any constant of the code."""
        (extent,) = self.read(line, (value,))
        self.may_compare(line, extent, code)

    def may_compare(self, line, extent, code):
        """Record comparisons with all constants of the code, because any could occur."""
        for constant in sorted(set(_constants(code.co_consts))):
            self.compared(line, operator.lt, extent, constant)
            self.compared(line, operator.gt, extent, constant)

    def compared(self, line, compare, left, right):
        """Record a comparison of two numbers, and return its result."""
        outcome = bool(compare(_plain(left), _plain(right)))
        if line and len(self.comparisons) < _MOST_NOTES:
            self.comparisons[Comparison(line, compare, _how(left), _how(right), outcome)] = True
        return outcome


class Extent(int):
    """An int that records how it was computed from extents: `how` is (operator, operands...)."""

    def __new__(cls, value, how, parts, notes):
        made = super().__new__(cls, value)
        made.how, made.parts, made.notes = how, parts, notes
        return made

    def __hash__(self):  # for a lookup in a set or dict
        line = calling_line(2)
        if line:
            self.notes.may_compare(line, self, sys._getframe(1).f_code)
        return int.__hash__(self)

    def __bool__(self):
        return self.notes.compared(calling_line(2), operator.ne, self, 0)

    def __neg__(self):
        return _made(operator.neg, self)

    def __pos__(self):
        return self

    def __divmod__(self, other):
        return self // other, self % other

    def __rdivmod__(self, other):
        return other // self, other % self

    def __reduce__(self):
        return int, (int(self),)

    def __array_ufunc__(self, ufunc, method, *inputs, **options):
        """Take part in NumPy's arithmetic as an int does, which keeps float32 arrays float32."""
        return getattr(ufunc, method)(*[_plain(one) for one in inputs], **options)

    def __array_function__(self, function, types, inputs, options):
        """Take part in NumPy's other functions, such as `where`, as an int does."""
        return function(*_plain_parts(inputs), **{k: _plain_parts(v) for k, v in options.items()})


def _constants(given):
    """Yield the ints above 1 among constants of a function, including those in tuples and sets."""
    for one in given:
        if isinstance(one, (tuple, frozenset)):
            yield from _constants(one)
        elif type(one) is int and one > 1:
            yield one


def _plain(number):
    return int(number) if isinstance(number, int) else number


def _plain_parts(given):
    """Return extents as ints, alone or in lists and tuples."""
    if type(given) in (list, tuple):
        return type(given)([_plain_parts(one) for one in given])
    return int(given) if type(given) is Extent else given


def _how(number):
    return number.how if type(number) is Extent else _plain(number)


def _made(calculate, *operands):
    value = calculate(*[int(one) for one in operands])
    parts = 1 + sum(one.parts for one in operands if type(one) is Extent)
    if parts > _MOST_PARTS:
        return value
    notes = next(one for one in operands if type(one) is Extent).notes
    return Extent(value, (calculate, *map(_how, operands)), parts, notes)


def _arithmetic(name):
    calculate = getattr(operator, f"{name}_" if name in ("and", "or") else name)

    def method(self, other):
        return _made(calculate, self, other) if isinstance(other, int) else NotImplemented

    def reflected(self, other):
        return _made(calculate, other, self) if isinstance(other, int) else NotImplemented

    setattr(Extent, f"__{name}__", method)
    setattr(Extent, f"__r{name}__", reflected)


def _comparison(name):
    compare = getattr(operator, name)

    def method(self, other):
        if not isinstance(other, (int, float)):
            return NotImplemented
        return self.notes.compared(calling_line(2), compare, self, other)

    setattr(Extent, f"__{name}__", method)


for _name in _ARITHMETIC:
    _arithmetic(_name)
for _name in _COMPARISONS:
    _comparison(_name)
