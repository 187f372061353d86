"""Extents that note what a traced function compares them with.

While a function with dims is traced, `x.shape` and `x.size` of its tensors are made of `Extent`s:
ints that remember how they were made. Arithmetic with ints gives more of them. A comparison gives
the bool that it gives for ints, and is noted, so that `ways.py` can find sizes at which it comes
out otherwise. Only what the user's function does counts: the library gets plain ints.
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
_MOST_PARTS = 64  # of one expression: a sum over many turns is a plain int in the end


class Comparison(NamedTuple):
    """One comparison; `left` and `right` are numbers, or tuples of how they were made."""

    line: str
    compare: object
    left: object
    right: object
    outcome: bool


class Notes:
    """What one run of a function read of shapes, and compared.

    Attributes
    ----------
    extents : dict
        From a key, the same in all runs, to an extent that the function read.
    comparisons : dict
        The Comparisons in their order, each once.
    """

    def __init__(self):
        self.extents = {}
        self.comparisons = {}
        self._counts = {}

    def read(self, line, values):
        """Values that the function reads on a line, as Extents."""
        count = self._counts[line] = self._counts.get(line, -1) + 1
        found = []
        for axis, value in enumerate(values):
            key = line, count, axis
            self.extents[key] = value
            found.append(Extent(value, ("extent", key), 1, self))
        return tuple(found)

    def read_length(self, line, value, code):
        """Note a length, a plain int: it may be compared with any constant of the code."""
        (extent,) = self.read(line, (value,))
        self.may_compare(line, extent, code)

    def may_compare(self, line, extent, code):
        """Note comparisons with the constants of the code, as if there were some."""
        for constant in sorted(set(_constants(code.co_consts))):
            self.compared(line, operator.lt, extent, constant)
            self.compared(line, operator.gt, extent, constant)

    def compared(self, line, compare, left, right):
        """Note a comparison of two numbers; returns how it comes out."""
        outcome = bool(compare(_plain(left), _plain(right)))
        if line and len(self.comparisons) < _MOST_NOTES:
            self.comparisons[Comparison(line, compare, _how(left), _how(right), outcome)] = True
        return outcome


class Extent(int):
    """An int that knows how it was made of extents: `how` is a tuple (operator, operands...)."""

    def __new__(cls, value, how, parts, notes):
        made = super().__new__(cls, value)
        made.how, made.parts, made.notes = how, parts, notes
        return made

    def __hash__(self):  # to be looked up in a set or dict
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


def _constants(given):
    """Ints above 1 among constants of a function, those in tuples and sets too."""
    for one in given:
        if isinstance(one, (tuple, frozenset)):
            yield from _constants(one)
        elif type(one) is int and one > 1:
            yield one


def _plain(number):
    return int(number) if isinstance(number, int) else number


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
