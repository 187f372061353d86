"""Sorting, selection, search, counts, scans and choices on the host device.

>>> import numpy as np
>>> out, x = np.empty((1, 3), np.int64), np.array([[3.0, 1.0, 2.0]])
>>> run_argsort(True, out, x)
>>> out
array([[0, 2, 1]])
"""

import numpy as np

from gputensor._kernels.host.elementwise import cast

__all__ = [
    "run_add_at", "run_argsort", "run_count", "run_histogram", "run_mark", "run_partition",
    "run_pick", "run_places", "run_scan", "run_search", "run_seen", "run_sort", "run_topk",
]  # fmt: skip


MARK_TILE = 1 << 15
LEAST_PARTITIONED = 256  #: Elements of a row; fewer are sorted as fast.
HISTOGRAM_PART = 1 << 16


def _wide(x):
    """The array in a dtype that NumPy can sort."""
    is_narrow = x.dtype.kind == "V" or x.dtype.itemsize < 4 and x.dtype.kind == "f"
    return cast(x, np.dtype(np.float32)) if is_narrow else x


#: The most floats that are selected by their keys; more of them are left to `_chosen`.
FEW_FLOATS = 1 << 14


def _has_keys(x):
    return x.dtype.itemsize == 4 and x.dtype.kind in "iuf"


def _keys(x, is_descending):
    """Numbers in the order of the elements of each row, with the column in their lower half.

    NumPy sorts int64 with vector instructions, several times as fast as it finds stable places.
    """
    keys = x
    if x.dtype.kind == "f":
        keys = (x + np.float32(0)).view(np.int32)  # adding 0 makes -0 and 0 equal
        keys ^= (keys >> 31) & np.int32(0x7FFFFFFF)
        np.copyto(keys, np.int32(0x7FFFFFFF), where=x != x)
    keys = keys.astype(np.int64)
    if x.dtype.kind == "u":
        keys -= 1 << 31
    if is_descending:
        np.invert(keys, out=keys)
    keys <<= 32
    keys |= np.arange(x.shape[-1])
    return keys


def _columns(keys):
    keys.sort(axis=-1)
    return keys & 0xFFFFFFFF


def _near(x):
    """The array; 64-bit integers that are near each other as 32-bit distances from the least."""
    if x.dtype.kind in "iu" and x.dtype.itemsize == 8 and x.size:
        least = x.min()
        if int(x.max()) - int(least) < 1 << 32:
            return (x - least).astype(np.uint32)
    return x


def _order(x, is_descending):
    """The places that sort rows; equal elements keep their order in both directions."""
    x = _near(_wide(x))
    if _has_keys(x):
        return _columns(_keys(x, is_descending))
    if not is_descending:
        return np.argsort(x, axis=-1, kind="stable")
    places = np.argsort(x[:, ::-1], axis=-1, kind="stable")
    return x.shape[-1] - 1 - places[:, ::-1]


def run_sort(is_descending, out, x):
    wide = _wide(x)
    if wide is x and not is_descending:
        out[...] = x
        out.sort(axis=-1)
    else:
        result = np.sort(wide, axis=-1)
        out[...] = result[:, ::-1] if is_descending else result


def run_partition(places, out, x):
    """Write rows with the elements at `places` as in the sorted rows.

    >>> out = np.empty((1, 4))
    >>> run_partition((1,), out, np.array([[3.0, 2.0, 4.0, 1.0]]))
    >>> out[0, 1]
    np.float64(2.0)
    """
    wide = _wide(x)
    if x.shape[-1] < LEAST_PARTITIONED:
        run_sort(False, out, x)
    elif wide is x:
        out[...] = x
        out.partition(places, axis=-1)
    else:
        out[...] = np.partition(wide, places, axis=-1)


def run_argsort(is_descending, out, x):
    out[...] = _order(x, is_descending)


def _chosen(x, count, is_largest):
    """The places of the `count` first elements of sorted rows, ascending; None if NaN ends them."""
    last = x.shape[-1] - count if is_largest else count - 1
    bound = np.partition(x, last, axis=-1)[:, last, None]
    if (bound != bound).any():
        return None
    beyond = ~(x <= bound) if is_largest else x < bound  # NaN is the greatest
    ties = x == bound
    wanted = count - np.count_nonzero(beyond, axis=-1)[:, None]
    if (np.count_nonzero(ties, axis=-1)[:, None] > wanted).any():
        ties &= np.cumsum(ties, axis=-1) <= wanted
    return np.nonzero(beyond | ties)[1].reshape(-1, count)


def run_topk(is_largest, values, order, x):
    count, wide = order.shape[1], _wide(x)
    is_part = 0 < count <= x.shape[-1] // 4
    if _has_keys(wide) and (x.dtype.kind in "iu" or x.size <= FEW_FLOATS):
        keys = _keys(wide, is_largest)
        if is_part:
            keys = np.partition(keys, count - 1, axis=-1)[:, :count]
        order[...] = _columns(keys)[:, :count]
    elif (
        is_part and x.dtype.kind != "c" and (places := _chosen(wide, count, is_largest)) is not None
    ):
        inner = _order(np.take_along_axis(wide, places, -1), is_largest)
        order[...] = np.take_along_axis(places, inner, -1)
    else:
        order[...] = _order(x, is_largest)[:, :count]
    values[...] = x[np.arange(x.shape[0])[:, None], order]


def run_search(is_right, out, x, values):
    out[...] = np.searchsorted(_wide(x), _wide(values), "right" if is_right else "left")


def run_count(counts, x):
    """Add the number of occurrences of each number to `counts`.

    >>> counts = np.zeros(3, np.int64)
    >>> run_count(counts, np.array([2, 0, 2, -1, 3]))
    >>> counts
    array([1, 0, 2])
    """
    if x.size and not 0 <= x.min() <= x.max() < counts.shape[0]:
        x = x[(x >= 0) & (x < counts.shape[0])]
    counts += np.bincount(x.astype(np.int64), minlength=counts.shape[0])


_SCANS = {
    "sum": np.add, "prod": np.multiply, "max": np.maximum, "min": np.minimum,
    "logaddexp": np.logaddexp,
}  # fmt: skip


def run_scan(op, out, x):
    """Write the cumulative results along the middle axis; 16-bit floats are computed in float32.

    >>> out = np.empty((1, 3, 1))
    >>> run_scan("prod", out, np.array([1, 2, 3]).reshape(1, 3, 1))
    >>> out.reshape(-1)
    array([1., 2., 6.])
    """
    is_narrow = out.dtype == np.float16 or out.dtype.kind == "V"
    wide = np.dtype(np.float32) if is_narrow else out.dtype
    out[...] = _SCANS[op].accumulate(cast(x, wide), axis=1, dtype=wide)


def run_histogram(is_even, counts, x, edges):
    """Add the numbers of elements between neighbouring edges to `counts`.

    >>> counts = np.zeros(2, np.int64)
    >>> run_histogram(False, counts, np.array([0.0, 1.5, 2.0, 3.0]), np.array([0.0, 1.0, 2.0]))
    >>> counts
    array([1, 2])
    """
    last = counts.shape[0] - 1
    scale = _scale(edges) if is_even else 0.0
    for begin in range(0, x.size, HISTOGRAM_PART):
        part = cast(_wide(x[begin : begin + HISTOGRAM_PART]), edges.dtype)
        part = part[(part >= edges[0]) & (part <= edges[-1])]
        place = _even_places(part, edges, scale) if scale else _places(part, edges)
        counts += np.bincount(place, minlength=last + 1)


def _scale(edges):
    """Return how many even ranges a unit has; 0 if differences or products may overflow."""
    most, span = float(np.finfo(edges.dtype).max), float(edges[-1]) - float(edges[0])
    count = edges.shape[0] - 1
    return count / span if count / most < span < most else 0.0


def _places(x, edges):
    """Return the number of the range of each element; the last one includes its upper edge."""
    place = np.searchsorted(edges, x, "right") - 1
    return np.maximum(np.minimum(place, edges.shape[0] - 2), 0)


def _even_places(x, edges, scale):
    """`_places` by equal widths, corrected where an edge was rounded."""
    last = edges.shape[0] - 2
    place = np.minimum(((x - float(edges[0])) * scale).astype(np.int64), last)
    is_wrong = (x < edges[place]) | ((x >= edges[place + 1]) & (place < last))
    if is_wrong.any():
        place[is_wrong] = _places(x[is_wrong], edges)
    return place


def run_add_at(target, index, source):
    """Add rows of `source` to the rows of `target` that the index names along the middle axis.

    >>> target = np.zeros((1, 3, 1))
    >>> run_add_at(target, np.array([2, 0, -1]), np.array([1.0, 2.0, 4.0]).reshape(1, 3, 1))
    >>> target.reshape(-1)
    array([2., 0., 5.])
    """
    extent = target.shape[1]
    if index.size and not (-extent <= int(index.min()) and int(index.max()) < extent):
        got = int(index.min()) if int(index.min()) < -extent else int(index.max())
        raise IndexError(f"index {got} is out of bounds for an axis with size {extent}")
    index = index.astype(np.int64, copy=False)
    if index.ndim == 1:
        np.add.at(target, (slice(None), index), source)
    else:
        outer, _, inner = np.ogrid[tuple(slice(n) for n in source.shape)]
        np.add.at(target, (outer, index, inner), source)


def _flags(bits, count):
    return np.unpackbits(bits.view(np.uint8), count=count, bitorder="little").view(bool)


def run_mark(rule, bits, starts, x):
    """Write a bit for each element, set if it is chosen, and the chosen ones before each tile.

    >>> bits, starts = np.empty(1, np.uint32), np.empty(2, np.int64)
    >>> run_mark("first", bits, starts, np.array([3, 3, 5]))
    >>> bits, starts
    (array([5], dtype=uint32), array([0, 2]))
    """
    if rule == "true":
        flags = x.astype(bool)
    else:
        x = _wide(x)
        flags = np.ones(x.shape, bool)
        flags[1:] = x[1:] != x[:-1]
        if rule == "first_nan" and x.dtype.kind in "fc":
            is_nan = x != x
            if is_nan.any():
                flags[1:] &= ~(is_nan[1:] & is_nan[:-1])
    _write_marks(bits, starts, flags)


def _write_marks(bits, starts, flags):
    packed = np.packbits(flags, bitorder="little")
    octets = bits.view(np.uint8)
    octets[: packed.size] = packed
    octets[packed.size :] = 0
    starts[0] = 0
    for i in range(starts.shape[0] - 1):
        count = np.count_nonzero(flags[i * MARK_TILE : (i + 1) * MARK_TILE])
        starts[i + 1] = starts[i] + count


def run_seen(bits, starts, x, least):
    """Write a bit for each integer from the least on, set if it is an element, and the starts.

    >>> bits, starts = np.empty(1, np.uint32), np.empty(2, np.int64)
    >>> run_seen(bits, starts, np.array([7, 5, 7]), np.array([5]))
    >>> bits, starts
    (array([5], dtype=uint32), array([0, 2]))
    """
    flags = np.zeros(32 * bits.shape[0], bool)
    places = x.astype(np.uint64) - least.astype(np.uint64)  # modulo 2^64
    flags[places[places < flags.size].astype(np.int64)] = True
    _write_marks(bits, starts, flags)


def run_pick(out, x, bits, starts):
    """Write the chosen elements.

    >>> out = np.empty(2)
    >>> run_pick(out, np.array([1.0, 2.0, 3.0]), np.array([5], np.uint32), None)
    >>> out
    array([1., 3.])
    """
    out[...] = x[_flags(bits, x.shape[0])]


def run_places(shape, out, bits, starts):
    """Write the places of the chosen elements, a row for each axis.

    >>> out = np.empty((2, 2), np.int64)
    >>> run_places((2, 2), out, np.array([6], np.uint32), None)
    >>> out
    array([[0, 1],
           [1, 0]])
    """
    flags = _flags(bits, int(np.prod(shape)))
    out[...] = np.nonzero(flags.reshape(shape))
