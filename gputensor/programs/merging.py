"""Merges traces of one function at several sizes into one Function with integers of the form.

The traces may differ only in integers. An integer that differs must be an expression of the dims
and of extents of earlier calls (samples.py); otherwise the error names its line.
"""

from __future__ import annotations

import numpy as np

from gputensor.errors import TraceError
from gputensor.programs.function import Argument, Call, Function, Number, Operand, Value
from gputensor.programs.sampling.agreement import WAY_OUT, shown
from gputensor.programs.sampling.samples import Explainer

__all__ = ["merge"]


def merge(traces, sizes, dims):
    """Return the merged Function, its weights, and the Explainer of its integers.

    Parameters
    ----------
    traces : list of (Function, dict)
        One for each of `sizes`, with the weights that it used.
    sizes : list of dict
        Each maps the names of dims to sizes.
    dims : dict
        Maps names to Dims.
    """
    functions = [function for function, _weights in traces]
    if len(traces) == 1:
        functions[0].dims = dims
        return *traces[0], Explainer(sizes)
    merger = _Merger(sizes)
    merged = merger.function(functions)
    merged.dims = dims
    _check_weights(functions[0], [weights for _function, weights in traces])
    return merged, traces[0][1], merger.explainer


class _Merger:
    def __init__(self, sizes):
        self.sizes = sizes
        self.explainer = Explainer(sizes)
        self.line = ""

    def refuse(self, what, values):
        other = max(place for place, one in enumerate(values) if place == 0 or one != values[0])
        first, last = shown(self.sizes[0]), shown(self.sizes[other])
        problem = f"{what} is {values[0]!r} at {first} and {values[other]!r} at {last}"
        raise TraceError(self.line, problem, WAY_OUT)

    def same(self, what, values):
        first = values[0]
        if values.count(first) != len(values):
            self.refuse(what, values)
        return first

    def integer(self, what, values):
        found = self.explainer.explain(values)
        if found is None:
            self.refuse(what, values)
        return found

    def part(self, what, parts):
        """Merge any part of a call: integers are explained, other parts must be equal."""
        first = parts[0]
        if type(first) is not bool and parts.count(first) == len(parts):
            return first
        kinds = {type(one) for one in parts}
        if kinds == {int}:
            return self.integer(what, parts)
        if kinds <= {float, int} and all(float(one).is_integer() for one in parts):
            return self.integer(what, [int(one) for one in parts])
        if kinds == {float} and len({repr(one) for one in parts}) == 1:
            return first
        if kinds <= {tuple, list} and len({len(one) for one in parts}) == 1:
            return tuple(self.part(what, column) for column in zip(*parts, strict=True))
        return self.same(what, parts)

    def base(self, bases):
        """Return the version that a write continues; it may be None at sizes of whole writes."""
        found = [base for base in bases if base is not None]
        return self.same("a version", found) if found else None

    def written(self, parts):
        """Merge an operand that a call writes; its extents explain its strides and later ints."""
        return self.operand(parts, self.explainer.learn)

    def operand(self, parts, learn=None):
        first = parts[0]
        if parts.count(first) == len(parts):
            return first
        self.same("an operand", [type(one).__name__ for one in parts])
        if type(first) is Number:
            self.same("a dtype", [one.dtype for one in parts])
            return Number(self.part("a number", [one.value for one in parts]), first.dtype)
        value = self.same("an operand", [one.value for one in parts])
        dtype = self.same("a dtype", [one.dtype for one in parts])
        shape = self.part("a shape", [one.shape for one in parts])
        for extent in shape if learn else ():
            learn(extent)
        strides = self.part("the strides", [one.strides for one in parts])
        offset = self.part("an offset", [one.offset for one in parts])
        return Operand(value, dtype, shape, strides, offset)

    def call(self, calls):
        first = calls[0]
        self.line = first.line
        self.same("the call", [call.name for call in calls])
        self.same("the stream", [call.stream for call in calls])
        into = [call.into for call in calls]
        is_new = into == [(None,)] * len(calls)
        into = (None,) if is_new else tuple(map(self.base, zip(*into, strict=True)))
        self.same("the number of operands", [len(c.reads) + len(c.writes) for c in calls])
        reads = tuple(map(self.operand, zip(*[call.reads for call in calls], strict=True)))
        writes = tuple(map(self.written, zip(*[call.writes for call in calls], strict=True)))
        attributes = {
            name: (self.same if name == "trees" else self.part)(
                name, [call.attributes[name] for call in calls]
            )
            for name in first.attributes
        }
        self.same("the number of regions", [len(call.regions) for call in calls])
        regions = zip(*[call.regions for call in calls], strict=True)
        return Call(
            first.name,
            attributes,
            writes,
            reads,
            into,
            first.stream,
            first.line,
            tuple(self.function(one) for one in regions),
        )

    def function(self, functions):
        first = functions[0]
        merged = Function(first.name, facts=first.facts, tree=first.tree)
        merged.states = first.states
        merged.inputs = self.arguments([function.inputs for function in functions])
        counts = [len(function.calls) for function in functions]
        for calls in zip(*[function.calls for function in functions], strict=False):
            merged.calls.append(self.call(calls))
        self.same("the number of calls", counts)
        merged.result = self.same("the result", [function.result for function in functions])
        self.same("the number of values", [len(function.values) for function in functions])
        for values in zip(*[function.values for function in functions], strict=True):
            kind, name = self.same("a value", [(value.kind, value.name) for value in values])
            base = self.base([value.base for value in values])
            nbytes = self.integer("the bytes of a tensor", [value.nbytes for value in values])
            merged.values.append(Value(kind, nbytes, name, base))
        merged.outputs = self.arguments([function.outputs for function in functions])
        self.same("the states", [function.states for function in functions])
        self.same("the facts of the device", [function.facts for function in functions])
        return merged

    def arguments(self, rows):
        self.same("the number of tensors", [len(row) for row in rows])
        return [
            Argument(column[0].path, self.operand([one.operand for one in column]))
            for column in zip(*rows, strict=True)
        ]


def _check_weights(function, traces):
    """Check that the constants of all traces have the same values."""
    names = [weights.keys() for weights in traces]
    first = traces[0]
    for weights in traces[1:]:
        for name, weight in first.items():
            other = weights.get(name)
            if other is None or not _is_same(weight, other):
                line = _line_of(function, name)
                problem = f"{name} is made outside the trace and depends on a size"
                raise TraceError(
                    line, problem, "make it with gt.arange or gt.full, or list sizes with at"
                )
    del names


def _is_same(one, other):
    if (one.dtype, one.shape) != (other.dtype, other.shape):
        return False
    if isinstance(one.source, np.ndarray) and isinstance(other.source, np.ndarray):
        return one.source.tobytes() == other.source.tobytes()
    if one.source is other.source:
        return True
    if isinstance(one.source, np.ndarray) or isinstance(other.source, np.ndarray):
        return False
    return one.source.numpy().tobytes() == other.source.numpy().tobytes()


def _line_of(function, name):
    """Return the line where a function first reads a constant."""
    numbers = {i for i, value in enumerate(function.values) if value.name == name}
    for call in function.calls:
        for operand in call.reads:
            if isinstance(operand, Operand) and operand.value in numbers:
                return call.line
    return ""
