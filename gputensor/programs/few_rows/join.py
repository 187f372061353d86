"""The pass that joins products of few rows with the steps before and after them.

In decoding, each kernel costs some microseconds in addition to reading its bytes. So residuals,
gates, norms, the rotation of queries and keys, and writes to a cache become part of the products
around them, one kernel each.
"""

from __future__ import annotations

from dataclasses import replace

from gputensor.programs.attention.views import Graph
from gputensor.programs.few_rows.heads import placed
from gputensor.programs.few_rows.rows import rowed
from gputensor.programs.few_rows.steady import steady
from gputensor.programs.few_rows.steps import gated, normed, summed
from gputensor.programs.function import Operand, with_regions
from gputensor.programs.passes.clean import clean

__all__ = ["STEPS", "Site", "join_few_rows"]

#: In this order: a norm has only one operand after its sum became part of the product before it.
STEPS = {"residuals": summed, "heads": placed, "gates": gated, "norms": normed,
         "steady": steady, "rows": rowed}  # fmt: skip


def join_few_rows(function, weights):
    """Return a function whose products of few rows include the steps around them.

    Parameters
    ----------
    function : Function
        Not modified.
    weights : dict
        The weights of the program by name.
    """
    function = with_regions(function, lambda one: join_few_rows(one, weights))
    is_changed = False
    for step in STEPS.values():
        site = Site(function, weights)
        if site.run(step):
            function, is_changed = site.function(), True
    return clean(function, weights) if is_changed else function


class Site:
    """The calls of a function before a step, and the calls that replace them by place."""

    def __init__(self, function, weights):
        self.before, self.calls = function, function.calls
        self.graph, self.values = Graph(function, weights), list(function.values)
        self.kept = {one.operand.value for one in function.outputs}
        self.kept.update(value.base for value in function.values if value.base is not None)
        self.changed, self.renamed = {}, {}

    def run(self, step):
        """Apply the step to all calls; return whether any changed."""
        for place, call in enumerate(self.calls):
            if place in self.changed:
                continue
            found = step(self, place, call)
            if found is not None and not self.changed.keys() & found.keys():
                self.changed.update(found)
        return bool(self.changed)

    def function(self):
        calls = []
        for place, call in enumerate(self.calls):
            calls.extend(self.changed.get(place, (call,)))
        calls = [replace(call, reads=tuple(map(self._read, call.reads))) for call in calls]
        return replace(self.before, values=self.values, calls=calls)

    def _read(self, one):
        if isinstance(one, Operand) and one.value in self.renamed:
            return one._replace(value=self.renamed[one.value])
        return one
