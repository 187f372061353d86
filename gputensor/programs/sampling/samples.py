"""Sizes at which a function with dims is traced, and the explanation of integers by their values.

A trace at one size has plain ints. An `Explainer` takes the values of one int at all samples and
returns the simplest integer of the form with exactly these values, or None. This module does not
trace.
"""

from __future__ import annotations

from math import gcd

from gputensor.programs import dims as forms

__all__ = ["Explainer", "confirming", "explain", "samples"]

# Divisors that are tried in floor divisions: strides of slices and windows, sizes of tiles.
_DIVISORS = (*range(2, 33), 48, 64, 96, 128, 256, 512, 1024)
_MAX_TERMS = 40  # products that are tried in sums of two terms


def samples(dims):
    """Return the sizes to trace at: four for one dim, and two more for each further dim.

    The first sample has every dim at its low end (but at least 2), the last at its high end.
    Between them the dims vary independently, each with an odd size if its multiple allows one. A
    dim with few sizes takes all of them.

    Parameters
    ----------
    dims : iterable of Dim

    Returns
    -------
    list of dict
        Each maps the name of a dim to a size.
    """
    dims = list(dims)
    if not dims:
        return [{}]
    count = 2 + 2 * len(dims)
    columns = {dim.name: _sizes(dim, count, place) for place, dim in enumerate(dims)}
    rows = [{name: column[row] for name, column in columns.items()} for row in range(count)]
    found, last = [], rows.pop()
    for sizes in rows:
        if sizes not in (*found, last):
            found.append(sizes)
    return [*found, last]


def _sizes(dim, count, place):
    """Return `count` sizes of one dim: low, others in an order that depends on `place`, high."""
    step = dim.multiple
    low, high = dim.low // step, dim.high // step
    if low * step < 2 and low < high:
        low += 1
    inner, between = count - 2, []
    for index in range(inner):
        part = (index + 1 + place / 7) / (inner + 1)
        near = round(low * (high / low) ** part)
        around = range(max(low + 1, near - 64), min(high, near + 65))
        candidates = sorted(around, key=lambda q, near=near: abs(q - near))
        wanted = (index + place) % 2 == 0  # every second size is odd
        fresh = [q for q in candidates if q not in between]
        fitting = [q for q in fresh if q % 2 == wanted] if step % 2 else fresh
        between.append((fitting or fresh or [(low, high)[index % 2]])[0])
    turn = place * 2 % inner if inner else 0
    if place % 2:
        between.reverse()
    return [q * step for q in (low, *between[turn:], *between[:turn], high)]


def explain(values, samples, known=()):
    """Return the integer of the form that has these values at the samples, or None.

    >>> from gputensor.programs.dims import text
    >>> text(explain((5, 11, 21), [{"n": 2}, {"n": 5}, {"n": 10}]))
    '2*n + 1'
    """
    return Explainer(samples, known).explain(values)


class Explainer:
    """Explains integers by the samples; `known` are extents that the graph already has.

    It tries in this order: a constant; a known extent; a·x + b; (a·x + b)//c; a·x·y + b, where x
    and y are dims or known extents; sums of two such terms; products of a known extent and one of
    these.
    """

    def __init__(self, samples, known=()):
        self.samples = list(samples)
        self._found = {}
        self._columns = {}  # column of values -> expression, simplest first
        for name in self.samples[0]:
            self.learn(("dim", name))
        for integer in known:
            self.learn(integer)

    def learn(self, integer):
        """Add an extent of the graph to those that explain others."""
        if type(integer) is int:
            return
        column = self._column(integer)
        if column not in self._columns and len(set(column)) > 1:
            self._columns[column] = integer
            self._found = {values: found for values, found in self._found.items() if found}

    def known_extents(self):
        """Return the dims and extents that explain others, in the order of their addition."""
        return list(self._columns.values())

    def explain(self, values):
        """Return the integer of the form with these values, or None. Values are ints."""
        values = tuple(values)
        first = values[0]
        if values.count(first) == len(values):
            return first
        if values in self._columns:
            return self._columns[values]
        if values not in self._found:
            self._found[values] = self._search(values)
        return self._found[values]

    def _column(self, integer):
        return tuple(forms.evaluate(integer, sizes) for sizes in self.samples)

    def _search(self, values):
        plain = self._columns
        return (
            self._one_term(values, plain)
            or self._quotient(values)
            or self._one_term(values, self._products())
            or self._scaled(values)
            or self._two_terms(values)
            or self._factored(values)
        )

    def _products(self):
        """Return columns of the products of two known extents, limited to the first known ones."""
        known = list(self._columns.items())[:_MAX_TERMS]
        found = {}
        for place, (left, x) in enumerate(known):
            for right, y in known[: place + 1]:
                column = tuple(a * b for a, b in zip(left, right, strict=True))
                if column not in self._columns and column not in found:
                    found[column] = forms.mul(x, y)
        return found

    def _one_term(self, values, columns):
        """Try a·x + b."""
        best = None
        for column, term in columns.items():
            at = next(i for i, x in enumerate(column) if x != column[0])
            factor, rest = divmod(values[at] - values[0], column[at] - column[0])
            if rest or not factor:
                continue
            offset = values[0] - factor * column[0]
            if all(factor * x + offset == v for x, v in zip(column, values, strict=True)):
                cost = (abs(factor) != 1) + 2 * (offset != 0) + (factor < 0)
                if best is None or cost < best[0]:
                    best = cost, forms.add(forms.mul(factor, term), offset)
        return best and best[1]

    def _quotient(self, values):
        """Try (a·x + b)//c with increasing c; b is 0, otherwise c - 1, otherwise another offset."""
        for divisor in _DIVISORS:
            for column, term in self._columns.items():
                low, high = min(column), max(column)
                rise = values[column.index(high)] - values[column.index(low)]
                # The ends differ by a/c of the column's difference, within one.
                for factor in _between((rise - 1) * divisor, (rise + 1) * divisor, high - low):
                    pairs = list(zip(column, values, strict=True))
                    least = max(divisor * v - factor * x for x, v in pairs)
                    most = min(divisor * v - factor * x for x, v in pairs) + divisor - 1
                    if factor and least <= most:
                        offset = _simplest(least, most, divisor)
                        over = forms.add(forms.mul(factor, term), offset)
                        return forms.floordiv(over, divisor)
        return None

    def _scaled(self, values):
        """Try f·((a·x + b)//c) for the largest f, such as a stride of rows of whole tiles."""
        factor = gcd(*values)
        found = factor > 1 and self._quotient(tuple(v // factor for v in values))
        return found and forms.mul(factor, found)

    def _two_terms(self, values):
        """Try a·x + b·y + c for dims, known extents and products of two of these."""
        terms = list((self._columns | self._products()).items())[:_MAX_TERMS]
        for place, (left, x) in enumerate(terms):
            for right, y in terms[:place]:
                found = _plane(values, left, right)
                if found:
                    a, b, c = found
                    return forms.add(forms.mul(a, x), forms.mul(b, y), c)
        return None

    def _factored(self, values):
        """Try x·(…), where the second factor is one of the simpler forms."""
        for column, term in self._columns.items():
            if all(x and v % x == 0 for x, v in zip(column, values, strict=True)):
                rest = tuple(v // x for x, v in zip(column, values, strict=True))
                found = (
                    self._one_term(rest, self._columns)
                    or self._quotient(rest)
                    or self._one_term(rest, self._products())
                    or self._scaled(rest)
                    or self._two_terms(rest)
                )
                if found:
                    return forms.mul(term, found)
        return None


def _between(low, high, by):
    """Return the ints f with low < f·by < high, at most 8, ordered by magnitude."""
    first, last = low // by + 1, -(-high // by) - 1
    return sorted(range(first, min(last, first + 7) + 1), key=abs)


def _simplest(least, most, divisor):
    for offset in (0, divisor - 1):
        if least <= offset <= most:
            return offset
    return (least + most) // 2  # a few rounds of `confirming` find the right one


def _plane(values, left, right):
    """Return ints (a, b, c), a and b not 0, with a·left + b·right + c == values, or None."""
    x0, y0, v0 = left[0], right[0], values[0]
    rows = [(x - x0, y - y0, v - v0) for x, y, v in zip(left, right, values, strict=True)]
    one = next((row for row in rows if row[0] or row[1]), None)
    for other in rows:
        base = one[0] * other[1] - one[1] * other[0]
        if base:
            break
    else:
        return None
    a, rest = divmod(one[2] * other[1] - one[1] * other[2], base)
    b, more = divmod(one[0] * other[2] - one[2] * other[0], base)
    if rest or more or not a or not b:
        return None
    if any(a * x + b * y != v for x, y, v in rows):
        return None
    return a, b, v0 - a * x0 - b * y0


def confirming(integers, dims, samples, start):
    """Return further sizes that determine the floor divisions in these integers.

    Floor divisions with other divisors or sums can agree at all samples. They differ in their
    jumps, and in their smallest and largest remainders. If the integers have other values than
    traces at the returned sizes, explain them again with these sizes as further samples; a few
    rounds are enough.

    Parameters
    ----------
    integers : iterable of integers of the form
    dims : iterable of Dim
    samples : list of dict
        The traced sizes.
    start : dict
        A traced size of each dim, which it keeps where another dim varies. It has to be the same in
        all rounds, or each round would ask for other sizes.

    Returns
    -------
    list of dict
    """
    dims = {dim.name: dim for dim in dims}
    divisions, more = {}, []
    for integer in integers:
        _divisions(integer, divisions)
    for division in divisions:
        for sizes in _jumps(division, dims, start):
            if sizes not in samples and sizes not in more:
                more.append(sizes)
    return more


def _divisions(integer, found):
    if type(integer) is tuple and integer[0] != "dim":
        if integer[0] == "floordiv":
            found[integer] = True
        for part in integer[1:]:
            _divisions(part, found)


def _jumps(division, dims, start):
    """Yield sizes near both ends of each dim, next to a jump and with extreme remainders.

    Other dims have their sizes in `start`.
    """
    _head, over, divisor = division
    for name in sorted(forms.names(division)):
        dim = dims[name]
        low = dim.low if dim.low >= 2 or dim.low == dim.high else dim.low + dim.multiple
        upward = range(low, dim.high + 1, dim.multiple)
        for way in (upward, upward[::-1]):
            near = [start | {name: size} for size in way[: divisor + 1]]
            sums = [forms.evaluate(over, sizes) for sizes in near]
            for at in range(1, len(near)):
                if sums[at] // divisor != sums[at - 1] // divisor:
                    yield near[at - 1]
                    yield near[at]
                    break
            rests = [total % divisor for total in sums]
            yield near[rests.index(min(rests))]
            yield near[rests.index(max(rests))]
