"""Steps before and after products of few rows: residuals, gates and norms.

Each step examines the call at one place of a function and returns the calls that replace others
(place -> tuple of calls), or None.
"""

from __future__ import annotations

import itertools
from dataclasses import replace

from gputensor._kernels.call_rules import ACTIVATIONS
from gputensor.blas.host.fused import norm_trees
from gputensor.programs.attention.views import is_whole
from gputensor.programs.few_rows.products import (
    fused,
    given_of,
    has_panels,
    is_new,
    lies,
    with_end,
)
from gputensor.programs.function import Call, Operand

__all__ = ["gated", "holds", "normed", "only_reader", "summed"]


def only_reader(site, value):
    """Return the place of the only call that reads a value, or None."""
    readers = site.graph.readers.get(value, ())
    if value in site.kept or len(readers) != 1:
        return None
    return next(iter(readers))


def holds(site, operands, place):
    return all(site.graph.holds_until(one, place) for one in operands if one is not None)


# ---- residuals: a quantized product, and a formula whose first step adds to its result


def summed(site, place, call):
    """Return a quantized product that also adds the operand that its only reader adds."""
    given = given_of(call) if call.name == "quantized_product" else None
    at = given and only_reader(site, call.writes[0].value)
    if at is None or given is None or given.bias is not None:
        return None
    following = site.calls[at]
    m, n, _k = given.sizes
    if following.stream != call.stream:
        return None
    found = _sum(following, call.writes[0])
    if found is None:
        return None
    other, left = found
    if not isinstance(other, Operand) or not lies(other, (m, n), (n, 1)):
        return None
    if other.dtype != given.x.dtype or site.graph.writer.get(other.value, -1) >= place:
        return None
    addend = other._replace(shape=(m, n), strides=(n, 1))
    target, calls = left(site)
    if target is None:
        return None
    return {place: (fused(given, call, target, addend=addend),), at: calls}


def _sum(following, product):
    """Return the operand added to a product, and a function that splits the call that adds.

    That function returns the operand of the sum and the rest of the call.
    """
    reads = following.reads
    if following.name == "elementwise" and following.attributes["op"] == "add":
        if not is_new(following) or len(reads) != 2 or following.writes[0].dtype != product.dtype:
            return None
        at = [_is_same(one, product) for one in reads]
        return (reads[at.index(False)], lambda _site: (following.writes[0], ())) if any(
            at) and not all(at) else None  # fmt: skip
    if following.name != "formula":
        return None
    mine = [i for i, one in enumerate(reads) if _is_same(one, product)]
    if len(mine) != 1:
        return None
    trees = following.attributes["trees"]
    load = ("load", mine[0])
    sums = {tree for tree in _parts(trees) if tree[0] == "add" and load in tree[1:]}
    if len(sums) != 1 or _count(trees, load) != _count(trees, *sums):
        return None
    (whole,) = sums
    other = whole[1] if whole[2] == load else whole[2]
    if other[0] != "load" or other == load:
        return None
    return reads[other[1]], lambda _site: _without_sum(following, whole, mine[0], product)


def _without_sum(following, whole, mine, product):
    """Return the operand of a sum, and the formula that then loads the sum, if any is left."""
    trees, writes, into = [], [], []
    target = product
    rounded = following.attributes["trees"]
    for tree, written, before in zip(
        rounded, following.writes, following.into or (None,) * len(rounded), strict=True
    ):
        if tree != whole:
            trees.append(_replaced(tree, whole, ("load", mine)))
            writes.append(written)
            into.append(before)
        elif before is not None or not is_whole(written) or written.dtype != product.dtype:
            return None, ()
        else:
            target = written
    if not trees:
        return target, ()
    loads = list(following.reads)
    loads[mine] = loads[mine]._replace(value=target.value)
    used = sorted({tree[1] for tree in _parts(trees) if tree[0] == "load"})
    trees = tuple(_numbered(tree, used) for tree in trees)
    attributes = {**following.attributes, "trees": trees}
    call = Call(
        "formula", attributes, tuple(writes), tuple(loads[i] for i in used), tuple(into),
        following.stream, following.line,
    )  # fmt: skip
    return target, (call,)


def _is_same(one, product):
    """Return whether an operand is the whole result of a product, in the same order."""
    if not isinstance(one, Operand) or one.value != product.value or one.dtype != product.dtype:
        return False
    return one.offset == 0 and lies(one, product.shape, product.strides)


def _parts(trees):
    """Yield all subtrees, repeated ones each time."""
    for tree in trees:
        if isinstance(tree, tuple):
            yield tree
            yield from _parts(tree[1:])


def _count(trees, wanted):
    return sum(tree == wanted for tree in _parts(trees))


def _replaced(tree, old, new):
    if tree == old:
        return new
    return tuple(_replaced(one, old, new) if isinstance(one, tuple) else one for one in tree)


def _numbered(tree, used):
    """Return a tree whose loads are numbered by their positions in `used`."""
    if tree[0] == "load":
        return ("load", used.index(tree[1]))
    return tuple(_numbered(one, used) if isinstance(one, tuple) else one for one in tree)


# ---- gates: activation(first half) * second half


def gated(site, place, call):
    """Return a product with a gate: its only reader multiplies the halves of its columns."""
    given = given_of(call)
    at = given and only_reader(site, call.writes[0].value)
    if at is None or given is None:
        return None
    following = site.calls[at]
    m, n, _k = given.sizes
    if following.name != "formula" or following.stream != call.stream or not is_new(following):
        return None
    found = _gate(following.attributes["trees"])
    if found is None or n % 32 or len(following.reads) != 2:
        return None
    activation, *loads = found
    if not holds(site, given[:4], at):
        return None
    size = 2 * n // 2
    for number, offset in zip(loads, (0, size), strict=True):
        one = following.reads[number]
        fits = one.value == call.writes[0].value and one.offset == offset
        if not fits or one.dtype != given.x.dtype or not lies(one, (m, n // 2), (n, 1)):
            return None
    if following.writes[0].dtype != given.x.dtype:
        return None
    given = given._replace(activation=activation)
    made = fused(given, call, following.writes[0], is_gated=True)
    return {place: (), at: (made,)}


def _gate(trees):
    """Return (activation, its load, the other load) of a gate; None for other formulas."""
    if len(trees) != 1 or trees[0][0] != "mul":
        return None
    for gate, other in (trees[0][1:], trees[0][:0:-1]):
        known = gate[0] in ACTIVATIONS and gate[1][0] == "load"
        if known and other[0] == "load" and gate[1] != other:
            return gate[0], gate[1][1], other[1]
    return None


# ---- norms: rows of x, or of their distances from the mean, divided by their root mean square


def normed(site, place, call):
    """Return a product that normalizes x itself, if it is the first reader of the norm's result.

    A product whose panels are in shared memory at once also writes the result for other readers.
    """
    at = _x_writer(site, call)
    if at is None:
        return None
    before = site.calls[at]
    found = _norm(before)
    x = call.reads[0]
    if found is None or before.stream != call.stream or not _is_same(x, before.writes[0]):
        return None
    rows, vectors, epsilon, is_centered = found
    new, is_rotary, writes_rows = call, call.name == "rotary_product", False
    if call.name in ("product", "quantized_product"):
        given, addend = with_end(call, is_normed=True)
        if given is None:
            return None
        new = fused(given, call, call.writes[0], addend=addend)
        writes_rows = has_panels(given) and only_reader(site, x.value) is None
    elif is_rotary and (is_centered or len(vectors) > 1):
        return None
    if only_reader(site, x.value) is None and not writes_rows:
        return None
    m, k = new.reads[0].shape
    lie = lies(rows, (m, k), (k, 1)) and all(lies(one, (m, k), (0, 1)) for one in vectors)
    if not lie or {one.dtype for one in (rows, *vectors)} != {x.dtype}:
        return None
    if not holds(site, (rows, *vectors), place):
        return None
    rows = rows._replace(shape=(m, k), strides=(k, 1))
    vectors = [one._replace(shape=(k,), strides=(1,)) for one in vectors]
    attributes = {**new.attributes, "epsilon": epsilon}
    if not is_rotary:
        attributes["is_centered"] = is_centered
        vectors = (*vectors, None)[:2]
    reads = (rows, *new.reads[1:3], *vectors, *new.reads[3 + len(vectors) :])
    new = replace(new, attributes=attributes, reads=reads)
    return {at: (), place: (_with_rows(new, before.writes[0]) if writes_rows else new,)}


def _with_rows(call, rows):
    """Return a fused product that also writes the normalized rows."""
    attributes = {name: one for name, one in call.attributes.items() if name != "is_gated"}
    x, weight, _scales, *others = call.reads
    rows = rows._replace(shape=x.shape, strides=x.strides)
    return replace(
        call, name="normed_product", attributes=attributes, writes=(*call.writes, rows),
        reads=(x, weight, *others), into=(None, None),
    )  # fmt: skip


def _x_writer(site, call):
    """Return the place of the formula that computes x for this product first, or None."""
    if call.name not in ("product", "quantized_product", "fused_product", "rotary_product"):
        return None
    x = call.reads[0]
    at = site.graph.writer.get(x.value)
    if at is None or x.value in site.kept or site.calls[at].name != "formula":
        return None
    if site.calls[min(site.graph.readers[x.value])] is not call:
        return None
    if call.name in ("fused_product", "rotary_product") and call.reads[3] is not None:
        return None
    return at if is_new(site.calls[at]) else None


def _norm(call):
    """Return (x, gain and shift, epsilon, is_centered) of a norm, or None.

    A norm is what `norm_trees` describes, with factors and terms in any order; there may be no
    shift, but there is a gain.
    """
    trees = call.attributes["trees"]
    count = len(call.reads)
    if len(trees) != 1 or call.attributes["row_ndim"] != 1 or count not in (2, 3):
        return None
    given = _ordered(trees[0])
    for loads in itertools.permutations(range(count)):
        for number in _numbers(trees):
            for is_centered in (False, True):
                (tree,) = norm_trees(number, is_centered, count == 3)
                if _ordered(_placed(tree, loads)) == given:
                    rows, *vectors = (call.reads[i] for i in loads)
                    return rows, vectors, number, is_centered
    return None


def _placed(tree, loads):
    """Return a tree with load i replaced by load `loads[i]`."""
    if tree[0] == "load":
        return ("load", loads[tree[1]])
    return tuple(_placed(one, loads) if isinstance(one, tuple) else one for one in tree)


def _ordered(tree):
    """Return a tree with factors and terms in one order, and squares as products."""
    if tree[0] == "square":
        tree = ("mul", tree[1], tree[1])
    if tree[0] == "mul":
        parts = sorted((_ordered(one) for one in _factors(tree)), key=repr)
        return ("mul", *parts)
    parts = tuple(_ordered(one) if isinstance(one, tuple) else one for one in tree)
    return (parts[0], *sorted(parts[1:], key=repr)) if tree[0] == "add" else parts


def _factors(tree):
    """Yield the factors of nested products."""
    for one in tree[1:]:
        yield from _factors(one) if one[0] == "mul" else (one,)


def _numbers(trees):
    return [tree[1] for tree in _parts(trees) if tree[0] == "number"]
