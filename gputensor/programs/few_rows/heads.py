"""Products that rotate queries and keys, and write keys and values to a cache, themselves."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gputensor.programs.epilogues.known import array_of
from gputensor.programs.few_rows.products import given_of, is_new, lies
from gputensor.programs.few_rows.steps import holds
from gputensor.programs.function import Call, Operand, Value

__all__ = ["placed"]

#: The formula of `gt.rotary`, of an element, the other one of its pair, cosine, sine and sign.
_ROTATED = ("add", ("mul", ("load", 0), ("load", 2)),
            ("mul", ("load", 1), ("mul", ("load", 3), ("load", 4))))  # fmt: skip
_SIZE = 2  # bytes of an element


class Rotated(NamedTuple):
    """A formula that rotates `heads` heads of a product, from head `first` on."""

    place: int
    first: int
    heads: int
    size: int
    cosines: Operand
    sines: Operand
    result: Operand


def placed(site, place, call):
    """Return a product that rotates queries and keys, and writes keys and values to a cache.

    The columns of the product are the heads of the queries, of the keys and of the values, in this
    order. It replaces the last of the calls that rotate or write; all operands must still be
    unchanged there, and nothing may read the results before.
    """
    given = given_of(call)
    if given is None or call.writes[0].value in site.kept:
        return None
    product = call.writes[0].value
    readers = sorted(site.graph.readers.get(product, ()))
    rotated, scattered = [], []
    for at in readers:
        found = _rotated(site, at, product, given)
        (rotated if found else scattered).append(found or at)
    if not rotated or len(scattered) != 1:
        return None
    found = _queries_and_keys(site, rotated)
    if found is None:
        return None
    heads, result, key_scatter = found
    size, (m, n, _k) = rotated[0].size, given.sizes
    value_scatter = scattered[0]
    kept = (n // size - heads) // 2
    keys = _scattered(site, key_scatter, (kept, m, size))
    values = _scattered(site, value_scatter, (kept, m, size))
    if keys is None or values is None or size % 32 or (heads + 2 * kept) * size != n:
        return None
    source = site.calls[value_scatter].reads[0]
    is_last = source.value == product and source.offset == (heads + kept) * size * _SIZE
    if not is_last or not lies(source, (kept, m, size), (size, n, 1)):
        return None
    if keys[1] != values[1] or keys[0].shape != values[0].shape:
        return None
    return _made(site, call, given, rotated, result, (key_scatter, value_scatter))


def _rotated(site, at, product, given):
    call = site.calls[at]
    if call.name != "formula" or call.attributes["trees"] != (_ROTATED,) or not is_new(call):
        return None
    one, other, cosines, sines, sign = call.reads
    m, n, _k = given.sizes
    if len(one.shape) != 4 or one.shape[1:3] != (m, 2) or one.dtype != given.x.dtype:
        return None
    count, _m, _two, half = one.shape
    size, shape = 2 * half, one.shape
    first, rest = divmod(one.offset, size * _SIZE) if type(one.offset) is int else (0, 1)
    fits = (
        rest == 0
        and one.value == other.value == product
        and call.writes[0].dtype == one.dtype == other.dtype
        and lies(one, shape, (size, n, half, 1))
        and other.offset == one.offset + half * _SIZE
        and lies(other, shape, (size, n, -half, 1))
        and all(lies(angle, shape, (0, half, 0, 1)) for angle in (cosines, sines))
        and cosines.dtype == sines.dtype == sign.dtype == "float32"
        and lies(sign, shape, (0, 0, 1, 0))
        and _is_sign(site, sign)
    )
    if not fits:
        return None
    angles = [one._replace(shape=(m, half), strides=(half, 1)) for one in (cosines, sines)]
    return Rotated(at, first, count, size, *angles, call.writes[0])


def _is_sign(site, operand):
    """Return whether an operand consists of -1 and 1."""
    value = site.graph.values[operand.value]
    if value.kind not in ("constant", "weight") or operand.offset != 0:
        return False
    weight = site.graph.weights[value.name]
    small = weight.dtype == "float32" and tuple(weight.shape) in ((2,), (2, 1))
    return small and np.array_equal(array_of(weight).reshape(-1), [-1, 1])


def _queries_and_keys(site, rotated):
    """Return the number of query heads, their operand, and the place that scatters the keys."""
    rotated = sorted(rotated, key=lambda one: one.first)
    last = rotated[-1]
    ends = [one.first + one.heads for one in rotated]
    if len(rotated) > 2 or [0, *ends[:-1]] != [one.first for one in rotated]:
        return None
    if len({one[3:6] for one in rotated}) != 1:
        return None
    if any(one.result.value in site.kept for one in rotated):
        return None
    readers = site.graph.readers.get(last.result.value, ())
    found = [at for at in readers if site.calls[at].name == "scatter"]
    if len(found) != 1 or (len(rotated) == 2 and len(readers) != 1):
        return None
    keys = site.calls[found[0]].reads[0]
    kept = keys.shape[0]
    heads = ends[-1] - kept
    if keys.value != last.result.value or (len(rotated) == 2 and heads != ends[0]):
        return None
    m, size = last.cosines.shape[0], last.size
    first = (heads - last.first) * m * size * _SIZE
    if keys.offset != first or not lies(keys, (kept, m, size), (m * size, size, 1)):
        return None
    for at in readers if len(rotated) == 1 else ():
        if at != found[0] and not _reads_below(site.calls[at], last.result.value, first):
            return None
    return heads, rotated[0].result, found[0]


def _reads_below(call, value, end):
    """Return whether a call reads only the bytes of a value before `end`."""
    for one in call.reads:
        if isinstance(one, Operand) and one.value == value:
            steps = list(zip(one.shape, one.strides, strict=True))
            if any(type(part) is not int for step in steps for part in (*step, one.offset)):
                return False
            if any(step < 0 for _extent, step in steps):
                return False
            if one.offset + _SIZE * (1 + sum((n - 1) * step for n, step in steps)) > end:
                return False
    return not call.regions


def _scattered(site, at, shape):
    """Return (cache, places) of a call that writes heads to places of a cache, or None."""
    call = site.calls[at]
    if call.name != "scatter" or call.attributes["first_axis"] != 1 or len(call.reads) != 2:
        return None
    (cache,), (heads, places) = call.writes, call.reads
    fits = len(cache.shape) == 3 and heads.shape == shape and cache.strides[2] == 1
    fits = fits and (cache.shape[0], cache.shape[2]) == (shape[0], shape[2])
    return (cache, places) if fits and lies(places, shape[1:2], (1,)) else None


def _made(site, call, given, rotated, result, scatters):
    """Return the calls that replace the product and everything that it now does, by place."""
    keys, values = (site.calls[at] for at in scatters)
    gone = [one.place for one in rotated] + list(scatters)
    last, m, size = max(gone), rotated[0].cosines.shape[0], rotated[0].size
    heads = given.sizes[1] // size - 2 * keys.writes[0].shape[0]
    places = keys.reads[1]._replace(shape=(m,), strides=(1,))
    reads = (*given[:3], None, given.bias, rotated[0].cosines, rotated[0].sines, places)
    after = [result.value, keys.writes[0].value, values.writes[0].value]
    first = min(min(site.graph.readers.get(one, {last + 1}) - set(scatters), default=last + 1)
                for one in after)  # fmt: skip
    streams = {call.stream, *(site.calls[at].stream for at in gone)}
    if first <= last or len(streams) != 1 or not holds(site, reads, last):
        return None
    out = result._replace(shape=(heads, m, size), strides=(m * size, size, 1))
    if rotated[0].heads != heads:  # the old result also contains the keys
        site.values.append(Value("temporary", heads * m * size * _SIZE))
        out = out._replace(value=len(site.values) - 1)
        site.renamed[result.value] = out.value
    attributes = {"epsilon": 0.0, "is_steady": False, "precision": given.precision}
    made = Call(
        "rotary_product", attributes, (out, keys.writes[0], values.writes[0]), reads,
        (None, keys.into[0], values.into[0]), call.stream, call.line,
    )  # fmt: skip
    return {site.graph.writer[call.writes[0].value]: (), **dict.fromkeys(gone, ()), last: (made,)}
