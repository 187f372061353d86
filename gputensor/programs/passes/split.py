"""The pass that computes calls of weights once; their results become weights.

Casts, transposes and changes of layout of weights are such calls. If a program need not equal eager
execution bit for bit, so are all element-wise calls, reductions and products of weights.
"""

from __future__ import annotations

import numpy as np

from gputensor.programs.function import Operand, Value, Weight
from gputensor.programs.passes.clean import Clean

__all__ = ["split"]


def split(function, weights, compute, made):
    """Return a function without calls that depend only on weights.

    Parameters
    ----------
    function : Function
        Not modified.
    weights : dict
        The weights of the program by name; results are added as ``NAME.prepared``.
    compute : callable
        As for `clean`.
    made : dict
        The results so far, which functions share.

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
        """Return the names of new weights for the results of a call; empty if not computed."""
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
