"""The pass that makes calls of weights alone once: their results are weights themselves.

Casts, transposes and relayouts of weights are such calls, and in a program that may round
otherwise all element-wise work and reductions of them.
"""

from __future__ import annotations

import numpy as np

from gputensor.programs.function import Operand, Value, Weight
from gputensor.programs.passes.clean import Clean

__all__ = ["split"]


def split(function, weights, compute, made):
    """Return a function without calls that depend on weights alone.

    Parameters
    ----------
    function : Function
        It is not changed.
    weights : dict
        The weights of the program by name; results are added as ``NAME.prepared``.
    compute : callable
        As that of `clean`.
    made : dict
        What was computed so far, so that functions share it.

    Returns
    -------
    Function
    """
    return _Split(function, weights, compute, made).run()


class _Split(Clean):
    kinds = ("constant", "weight")

    def __init__(self, function, weights, compute, made):
        super().__init__(function, weights, compute)
        self.made = made

    def inside(self, region):
        return split(region, self.weights, self.compute, self.made)

    def folds(self, call):
        reads = [one for one in call.reads if isinstance(one, Operand)]
        names = [self.values[one.value].name for one in reads]
        if not any(name and not name.startswith("constant.") for name in names):
            return False
        if not self.is_constant(call):
            return False
        views = [one[1:] if isinstance(one, Operand) else one for one in call.reads]
        written = [(one.dtype, one.shape) for one in call.writes]
        key = repr((call.name, sorted(call.attributes.items()), written, names, views))
        if key not in self.made:
            self.made[key] = self.computed(call, names)
        found = self.made[key]
        for operand, name in zip(call.writes if found else (), found, strict=True):
            self.values.append(Value("weight", self.values[operand.value].nbytes, name))
            self.now[operand.value] = len(self.values) - 1
        return bool(found)

    def computed(self, call, names):
        """The names of new weights, for what a call writes; none where it is left alone."""
        results = self.compute(call, [self.elements(read) for read in call.reads])
        first = next(name for name in names if name and not name.startswith("constant."))
        found = []
        if results is None:
            return found
        stem = first.split(".prepared")[0]
        for operand, result in zip(call.writes, results, strict=True):
            count, name = 0, f"{stem}.prepared"
            while name in self.weights:
                count += 1
                name = f"{stem}.prepared{count}"
            array = np.ascontiguousarray(result).reshape(operand.shape)
            self.weights[name] = Weight(name, operand.dtype, tuple(operand.shape), array)
            found.append(name)
        return found
