"""The pass that fuses consecutive element-wise steps into one formula: `join_formulas`.

A consumer absorbs its producers: a producer with a single reader always; one with several readers
only if the consumer is the first of them and can return its result too; a cast to a wider type is
absorbed by each of its readers. Intermediate results are neither stored nor rounded.
"""

from __future__ import annotations

from dataclasses import replace

from gputensor.programs import dims as forms
from gputensor.programs.attention.views import Graph
from gputensor.programs.formulas.steps import is_complete, joined, steps_of
from gputensor.programs.function import with_regions
from gputensor.programs.passes.clean import clean
from gputensor.programs.verify import sizes_to_check

__all__ = ["join_formulas"]


def join_formulas(function, weights, sizes=None):
    """Return a function whose element-wise steps are fused into as few calls as possible.

    Parameters
    ----------
    function : Function
        Not modified.
    weights : dict
        The weights of the program by name.
    sizes : list of dict, optional
        Sizes of the dims at which steps must have elements; by default those of `verify`.
    """
    if sizes is None:
        sizes = sizes_to_check(list(function.dims.values()))
    function = with_regions(function, lambda one: join_formulas(one, weights, sizes))
    join = _Join(function, weights, sizes)
    if not join.run():
        return function
    calls = list(join.calls())
    return clean(replace(function, calls=calls), weights)


class _Join:
    def __init__(self, function, weights, sizes):
        self.function, self.graph, self.sizes = function, Graph(function, weights), sizes
        self.kept = {one.operand.value for one in function.outputs}
        self.readers = self.graph.readers  # updated when calls are absorbed
        self.steps = {}  # place -> Steps
        self.writer = {}  # value -> place of the Steps that write it
        self.gone = set()

    def run(self):
        """Fuse steps; return whether any were fused."""
        for index, call in enumerate(self.function.calls):
            steps = steps_of(call, index)
            if steps is None or not self.has_elements(call):
                continue
            steps = self.absorbed(steps)
            self.steps[index] = steps
            for written in steps.call.writes:
                self.writer[written.value] = index
        return any(one.parts > 1 for one in self.steps.values())

    def has_elements(self, call):
        """Whether the results of a call have elements at all sizes: a formula needs some."""
        extents = {n for operand in call.writes for n in operand.shape}
        if 0 in extents:
            return False
        extents = [n for n in extents if type(n) is not int]
        return all(forms.evaluate(n, sizes) for n in extents for sizes in self.sizes)

    def calls(self):
        """Yield the remaining calls in order."""
        for index, call in enumerate(self.function.calls):
            if index in self.steps:
                yield self.steps[index].made()
            elif index not in self.gone:
                yield call

    def absorbed(self, steps):
        """Return the Steps of a call after it has absorbed all producers that it can."""
        found = steps
        while found is not None:
            steps = found
            values = dict.fromkeys(load.value for load in steps.loads)
            tries = (self.with_producer(steps, value) for value in values)
            found = next((one for one in tries if one is not None), None)
        return steps

    def with_producer(self, steps, value):
        """Return a call's Steps with the producer of one value absorbed, or None."""
        producer = self.steps.get(self.writer.get(value))
        if producer is None or not self.may_move(producer, steps):
            return None
        others = self.readers[value] - {steps.place}
        is_read = bool(others) or value in self.kept
        has_result = is_read and not (producer.is_cast and _is_along(producer.loads[0]))
        if has_result and min(self.readers[value]) != steps.place:
            return None
        found = joined(producer, steps, has_result)
        if found is None:
            return None
        self.readers[value].discard(steps.place)
        for load in producer.loads:
            self.readers[load.value].add(steps.place)
        if not is_read or has_result:
            for load in producer.loads:
                self.readers[load.value].discard(producer.place)
            del self.steps[producer.place], self.writer[value]
            self.gone.add(producer.place)
        return found

    def may_move(self, producer, steps):
        """Whether a producer can be computed at its consumer's place, and should be."""
        call = producer.call
        written = call.writes[0]
        is_new = len(call.writes) == 1 and all(into is None for into in call.into)
        if not is_new or call.stream != steps.call.stream or written.value in self.graph.continued:
            return False
        value = self.function.values[written.value]
        if value.kind != "temporary" or not is_complete(value, written):
            return False
        if call.name == "elementwise" and call.attributes["op"] == "copy":
            # A transposing copy reads and writes along both axes; its readers would not.
            if not _is_along(producer.loads[0]):
                return False
        later = self.graph.continued
        return all(later.get(one.value, steps.place + 1) > steps.place for one in producer.loads)


def _is_along(load):
    """Whether elements along the last axis with more than one are adjacent or broadcast."""
    steps = [step for n, step in zip(load.shape, load.strides, strict=True) if n != 1]
    return not steps or steps[-1] in (0, 1)
