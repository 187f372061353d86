"""The pass that moves steps after a convolution or product into it: from Function to Function."""

from __future__ import annotations

from dataclasses import replace

from gputensor.programs.attention.views import Graph, is_new
from gputensor.programs.epilogues.known import Known
from gputensor.programs.epilogues.steps import joined
from gputensor.programs.function import Operand, with_regions
from gputensor.programs.passes.clean import clean

__all__ = ["join_epilogues"]


def join_epilogues(function, prepared):
    """Return a function whose convolutions and products do the steps that only their results need.

    Parameters
    ----------
    function : Function
        Not modified.
    prepared : PreparedWeights
        The weights of the program; scaled ones are added.
    """
    inner = with_regions(function, lambda one: join_epilogues(one, prepared))
    join = _Join(inner, prepared)
    calls = join.run()
    if not join.is_changed:
        return join.function
    return clean(replace(join.function, values=join.values, calls=calls), prepared.weights)


class _Join:
    def __init__(self, function, prepared):
        self.function, self.prepared = function, prepared
        self.graph = Graph(function, prepared.weights)
        self.values, self.calls = list(function.values), list(function.calls)
        self.known = Known(self.graph, self.values)
        self.kept = {one.operand.value for one in function.outputs}
        self.kept.update(value.base for value in function.values)
        self.moved, self.is_changed = {}, False

    def run(self):
        for index, call in enumerate(self.calls):
            while index is not None and call is not None:
                index, call = self.step(index, call)
        return [call for call in self.calls if call is not None]

    def step(self, index, call):
        """Join one call with the step after it; return its new index and call, or (None, None)."""
        if call.name not in ("convolution", "product") or not is_new(call):
            return None, None
        value = call.writes[0].value
        readers = self.graph.readers.get(value, ())
        if value in self.kept or len(readers) != 1:
            return None, None
        (place,) = readers
        while place in self.moved:
            place = self.moved[place]
        following = self.calls[place]
        at = [i for i, read in enumerate(following.reads) if _reads(read, value)]
        if following.stream != call.stream or not is_new(following) or len(at) != 1:
            return None, None
        if following.reads[at[0]] != call.writes[0] or not _is_alike(call, following):
            return None, None
        if not all(self.graph.holds_until(one, place) for one in _operands(call)):
            return None, None
        found = joined(self, call, following, at[0])
        if found is None:
            return None, None
        self.calls[index], self.calls[place], self.is_changed = None, found, True
        self.moved[index] = place
        return place, found


def _operands(call):
    return [one for one in call.reads if isinstance(one, Operand)]


def _reads(read, value):
    return isinstance(read, Operand) and read.value == value


def _is_alike(call, following):
    """Whether the results have the same shape and dtype."""
    one, other = call.writes[0], following.writes[0]
    return (one.dtype, one.shape) == (other.dtype, other.shape)
