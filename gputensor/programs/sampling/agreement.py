"""Checks that a function of merged traces agrees with a trace at further sizes.

It is used for sizes below the merged ones. At an extent of 1 a tensor may have other strides, the
library may need no copy, and it makes no call for an extent of 0. So calls are paired in order,
together with the values that they write; integers are not explained.
"""

from __future__ import annotations

from collections import deque

from gputensor.errors import TraceError
from gputensor.programs.dims import evaluate, is_expression
from gputensor.programs.function import Number, Operand

__all__ = ["WAY_OUT", "check_at", "shown"]

WAY_OUT = "fix the dim, or list sizes with at"


def shown(sizes):
    """Return sizes as text for messages."""
    return ", ".join(f"{name}={size}" for name, size in sizes.items())


def check_at(function, traced, sizes):
    """Raise `TraceError` unless a trace at these sizes makes the calls of the merged function.

    Parameters
    ----------
    function : Function
        Merged from several traces.
    traced : Function
        Traced at `sizes`, before its outputs are copied.
    sizes : dict
    """
    _Agreement(function, traced, sizes).check()


class _Agreement:
    """The check of one function or region; `values` maps its values to those of the trace."""

    def __init__(self, function, traced, sizes):
        self.function, self.traced, self.sizes = function, traced, sizes
        self.values = {}
        for wanted, given in zip(function.inputs, traced.inputs, strict=True):
            self.values[wanted.operand.value] = given.operand.value
        for name, (first, _last) in function.states.items():
            self.values[first] = traced.states[name][0]
        named = {value.name: number for number, value in enumerate(traced.values) if value.name}
        for number, value in enumerate(function.values):
            if value.kind in ("weight", "constant"):
                self.values[number] = named.get(value.name)

    def check(self):
        wanted = deque(call for call in self.function.calls if self.is_some(call))
        for call in self.traced.calls:
            if self.is_some(call):
                while wanted and not self.is_same(wanted[0], call):
                    self.leave_out(wanted.popleft(), call)
                if not wanted:
                    raise self.error(call)
                self.pair(wanted.popleft(), call)
        for call in wanted:
            self.leave_out(call, call)
        line = self.function.calls[-1].line if self.function.calls else ""
        for one, other in zip(self.function.outputs, self.traced.outputs, strict=True):
            if not self.is_same_operand(one.operand, other.operand, False):
                problem = f"another result {one.path!r} at {shown(self.sizes)} than elsewhere"
                raise TraceError(line, problem, WAY_OUT)

    def error(self, call):
        problem = f"another call at {shown(self.sizes)} than elsewhere"
        return TraceError(call.line, problem, WAY_OUT)

    def is_some(self, call):
        """Whether a call writes any elements."""
        return any(all(self.at(operand.shape)) for operand in call.writes)

    def leave_out(self, wanted, call):
        """Skip a copy that the trace did not need: later calls read the source of the copy."""
        if wanted.attributes.get("op") != "copy" or type(wanted.reads[0]) is not Operand:
            raise self.error(call)
        self.values[wanted.writes[0].value] = self.values.get(wanted.reads[0].value), "copied"

    def pair(self, wanted, call):
        for one, other in zip(wanted.writes, call.writes, strict=True):
            self.values[one.value] = other.value
        for one, other in zip(wanted.regions, call.regions, strict=True):
            _Agreement(one, other, self.sizes).check()

    def is_same(self, wanted, call):
        """Whether two calls do the same work on paired values."""
        kinds = wanted.name, len(wanted.reads), len(wanted.writes), len(wanted.regions)
        if kinds != (call.name, len(call.reads), len(call.writes), len(call.regions)):
            return False
        for name, part in wanted.attributes.items():
            if name != "trees" and self.at(part) != self.at(call.attributes[name]):
                return False
        reads = zip(wanted.reads, call.reads, strict=True)
        writes = zip(wanted.writes, call.writes, strict=True)
        return all(self.is_same_operand(*pair, True) for pair in reads) and all(
            self.has_same_place(*pair) for pair in writes
        )

    def is_same_operand(self, wanted, given, has_place):
        """Whether two read operands have the same elements."""
        if type(wanted) is not type(given):
            return False
        if type(wanted) is Number:
            one, other = self.at(wanted.value), given.value
            return wanted.dtype == given.dtype and (one == other or one != one)
        if type(wanted) is not Operand:
            return True
        value = self.values.get(wanted.value)
        if type(value) is tuple:
            value, has_place = value[0], False
        if (wanted.dtype, self.at(wanted.shape)) != (given.dtype, given.shape):
            return False
        if 0 in given.shape:
            return True
        return value in (None, given.value) and (
            not has_place or self.has_same_place(wanted, given)
        )

    def has_same_place(self, wanted, given):
        shape = self.at(wanted.shape)
        if (wanted.dtype, shape) != (given.dtype, given.shape):
            return False
        strides = zip(self.at(wanted.strides), given.strides, shape, strict=True)
        same = all(one == other or extent == 1 for one, other, extent in strides)
        return 0 in shape or (same and self.at(wanted.offset) == given.offset)

    def at(self, part):
        if type(part) in (int, str):
            return part
        if is_expression(part):
            return evaluate(part, self.sizes)
        return tuple(map(self.at, part)) if isinstance(part, (tuple, list)) else part
