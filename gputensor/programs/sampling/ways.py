"""Finds sizes at which a traced function would take a path through its code that no run has taken.

A run records its comparisons of extents in order (extents.py): its way. Extents are integers of the
form, so each comparison can be evaluated at any size without a run. If the first k - 1 comparisons
of a run have the same results at a size, and the k-th has another one, that size has another way
and is traced too. The search covers all sizes of one dim with up to 2**16 sizes. For a larger dim,
or several dims, it covers as many sizes or combinations, so it may miss a way of few sizes.
"""

from __future__ import annotations

import operator

import numpy as np

from gputensor.programs import dims as forms

__all__ = ["other_ways"]

_MOST = 1 << 16  # combinations of sizes that are searched
_MOST_KNOWN = 100  # expressions whose values are cached
_HEADS = {"add": operator.add, "mul": operator.mul, "floordiv": operator.floordiv}


def other_ways(notes, samples, dims, explainer):
    """Return sizes on ways that no run took, each near the size of a run on a neighbouring way.

    Parameters
    ----------
    notes : list of Notes
        The notes of the runs at each of `samples`.
    samples : list of dict
        Each maps the names of dims to sizes.
    dims : iterable of Dim
    explainer : Explainer
        Has learned the extents of the function.

    Returns
    -------
    list of dict
        A size is below those of the first sample only if every size on its way is.
    """
    if not any(one.comparisons for one in notes):
        return []
    values = _Values(notes, samples, list(dims), explainer)
    taken = {step for one in notes for step in _steps(one)}
    found = []
    for one, sizes in zip(notes, samples, strict=True):
        alive = np.ones(values.count, bool)
        for comparison, (before, outcome) in zip(one.comparisons, _steps(one), strict=True):
            came = values.outcomes(comparison)
            if came is None:
                continue
            another = alive & (came != outcome)
            if (before, not outcome) not in taken and another.any():
                taken.add((before, not outcome))
                size = values.nearest(another, sizes)
                if size not in samples and size not in found:
                    found.append(size)
            alive &= came == outcome
    return found


def _steps(notes):
    """Yield (hash of the way so far and the comparison, result) for the comparisons of a run."""
    way = 0
    for line, compare, left, right, outcome in notes.comparisons:
        before = hash((way, line, compare, left, right))
        yield before, outcome
        way = hash((before, outcome))


class _Values:
    """The values of expressions at all combinations of sizes that are searched."""

    def __init__(self, notes, samples, dims, explainer):
        constants = {
            part
            for one in notes
            for comparison in one.comparisons
            for part in _numbers((comparison.left, comparison.right))
        }
        self.columns = _combinations(dims, samples, constants)
        self.count = len(next(iter(self.columns.values())))
        self.extents = _explained(notes, samples, explainer)
        self.least = samples[0]
        self.known = {}

    def outcomes(self, comparison):
        """Return the results of a comparison at all sizes; None if constant or not explained."""
        left, right = self.at(comparison.left), self.at(comparison.right)
        if left is None or right is None:
            return None
        found = comparison.compare(left, right)
        return found if isinstance(found, np.ndarray) else None

    def at(self, part):
        """Return the values of an expression, a number or an array; None if not explained."""
        if type(part) is not tuple:
            return part
        if part not in self.known:
            if len(self.known) >= _MOST_KNOWN:
                self.known.clear()
            self.known[part] = self._calculated(part)
        return self.known[part]

    def _calculated(self, part):
        head, *operands = part
        if head == "extent":
            return self.at(self.extents.get(operands[0]))
        if head == "dim":
            return self.columns[operands[0]]
        given = [self.at(one) for one in operands]
        if any(one is None for one in given):
            return None
        with np.errstate(all="ignore"):
            return _HEADS.get(head, head)(*given)

    def nearest(self, where, sizes):
        """Return the combination nearest to `sizes`, preferably not below the first sample."""
        columns = self.columns.items()
        large = where & np.all([column >= self.least[name] for name, column in columns], axis=0)
        places = np.flatnonzero(large if large.any() else where)
        distance = sum(abs(np.log(column[places] / sizes[name])) for name, column in columns)
        place = places[np.argmin(distance)]
        return {name: int(column[place]) for name, column in columns}


def _explained(notes, samples, explainer):
    """Return {key of an extent: integer of the form, or None if no integer fits all runs}."""
    found = {}
    for key in {key for one in notes for key in one.extents}:
        rows = [one.extents.get(key) for one in notes]
        if None not in rows:
            found[key] = explainer.explain(rows)
            continue
        fitting = [
            integer
            for integer in explainer.known_extents()
            if all(
                value is None or forms.evaluate(integer, sizes) == value
                for value, sizes in zip(rows, samples, strict=True)
            )
        ]
        there = {value for value in rows if value is not None}
        found[key] = fitting[0] if fitting else there.pop() if len(there) == 1 else None
    return found


def _numbers(part):
    if type(part) is tuple:
        for one in part:
            yield from _numbers(one)
    elif isinstance(part, (int, float)):
        yield int(part)


def _combinations(dims, samples, constants):
    """Return {name of a dim: column of sizes}."""
    if len(dims) == 1:
        return {dims[0].name: _sizes(dims[0], _MOST, constants)}
    each = _MOST // (len(dims) * (len(samples) + 1))
    rng = np.random.default_rng(0)
    parts = {dim.name: [] for dim in dims}
    for dim in dims:
        swept = _sizes(dim, each, constants)
        for sizes in samples:
            for other in dims:
                fixed = np.full(len(swept), sizes[other.name])
                parts[other.name].append(swept if other is dim else fixed)
        for other in dims:  # equal sizes if both dims can have them, otherwise random ones
            drawn = rng.choice(_sizes(other, each, constants), len(swept))
            fits = np.isin(swept, _sizes(other, each, constants))
            parts[other.name].append(swept if other is dim else np.where(fits, swept, drawn))
    return {name: np.concatenate(columns) for name, columns in parts.items()}


def _sizes(dim, most, constants):
    """Return sizes of one dim: all, or those near its ends and the constants, and some between."""
    step = dim.multiple
    low, high = dim.low // step, dim.high // step
    if high - low < most:
        return np.arange(low, high + 1) * step
    third = most // 3
    near = [c // step + i for c in sorted(constants)[:1000] for i in (-1, 0, 1, 2)]
    parts = [
        np.arange(low, low + third),
        np.linspace(low, high, third).astype(np.int64),
        np.arange(high - third + 1, high + 1),
        np.array([q for q in near if low <= q <= high], np.int64),
    ]
    return np.unique(np.concatenate(parts)) * step
