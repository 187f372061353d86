"""The rules of calls that sort, select, search, count, accumulate, add and choose (call_rules.py).

Their operands are row-major. Sorted operands have rows and columns, accumulated ones three axes.
"""

import math

from gputensor._arrays.element_types import DTYPES
from gputensor._kernels.call_rules import ATTRIBUTE_TYPES, refuse

__all__ = ["MARK_TILE", "MARK_WORD", "ORDER_RULES", "SCANS"]

_KINDS = {row.name: row.kind for row in DTYPES}
_REAL = ("bool", "int", "uint", "float")
MOST_COLUMNS = (1 << 32) - 1

MOST_PLACES = 1 << 62
MARK_WORD, MARK_TILE = 32, 1 << 15  # as in mark.cuh
_ADDED = ("int32", "int64", "uint32", "uint64", "float32", "float64", "complex64", "complex128")

#: The operations of scans, in the order of their numbers in scan.cuh.
SCANS = ("sum", "prod", "max", "min", "logaddexp")
ATTRIBUTE_TYPES["scan"] = (lambda value: type(value) is str and value in SCANS,
                           f"one of {', '.join(SCANS)}")  # fmt: skip
ATTRIBUTE_TYPES["mark"] = (
    lambda value: value in ("true", "first", "first_nan"),
    "'true', 'first' or 'first_nan'",
)


def _need(holds, name, what, value, rule):
    if not holds:
        refuse(f"{name}: {what}", value, rule)


def _rows(name, x):
    _need(_KINDS[x.dtype] in _REAL, name, "dtype", x.dtype, "a real dtype")
    fits = len(x.shape) == 2 and x.shape[1] <= MOST_COLUMNS and x.shape[0] < 1 << 31
    _need(fits, name, "x.shape", x.shape, "2**31 rows of 2**32 columns at most")


def _sort(name, _attributes, writes, reads):
    (out,), (x,) = writes, reads
    _rows(name, x)
    _need(out == x, name, "out", tuple(out), tuple(x))


def _partition(name, attributes, writes, reads):
    (places,) = attributes
    _sort(name, attributes, writes, reads)
    (x,) = reads
    _need(max(places) < x.shape[1], name, "places", places, f"below {x.shape[1]}, the columns")


def _argsort(name, _attributes, writes, reads):
    (out,), (x,) = writes, reads
    _rows(name, x)
    wanted = ("int64", x.shape)
    _need(out == wanted, name, "out", tuple(out), wanted)


def _topk(name, _attributes, writes, reads):
    (values, order), (x,) = writes, reads
    _rows(name, x)
    fits = len(order.shape) == 2 and order.shape[0] == x.shape[0] and order.shape[1] <= x.shape[1]
    fits = fits and order.dtype == "int64"
    _need(fits, name, "order", tuple(order), f"int64 of rows of {x.shape}")
    wanted = (x.dtype, order.shape)
    _need(values == wanted, name, "values", tuple(values), wanted)


def _search(name, _attributes, writes, reads):
    (out,), (x, values) = writes, reads
    fits = len(x.shape) == len(values.shape) == 1 and x.dtype == values.dtype
    _need(fits, name, "x", tuple(x), "a vector, and a vector of values with the same dtype")
    _need(_KINDS[x.dtype] in _REAL, name, "dtype", x.dtype, "a real dtype")
    wanted = ("int64", values.shape)
    _need(out == wanted, name, "out", tuple(out), wanted)


def _count(name, _attributes, writes, reads):
    (counts,), (x,) = writes, reads
    fits = _KINDS[x.dtype] in ("int", "uint") and len(x.shape) == 1
    _need(fits, name, "x", tuple(x), "integers of one axis")
    fits = counts.dtype == "int64" and len(counts.shape) == 1
    _need(fits, name, "counts", tuple(counts), "int64 of one axis")


def _cumulate(name, attributes, writes, reads):
    (out,), (x,), (op,) = writes, reads, attributes
    for one in (out, x):
        kind = _KINDS[one.dtype]
        _need(kind != "small", name, "dtype", one.dtype, "a dtype with arithmetic")
        fits = kind != "complex" or op in ("sum", "prod")
        _need(fits, name, "dtype", one.dtype, f"a real dtype for {op}")
    fits = op != "logaddexp" or _KINDS[out.dtype] == "float"
    _need(fits, name, "out.dtype", out.dtype, f"a floating-point dtype for {op}")
    _need(len(x.shape) == 3, name, "x.shape", x.shape, "three extents")
    _need(out.shape == x.shape, name, "out.shape", out.shape, x.shape)


def _histogram(name, attributes, writes, reads):
    (counts,), (x, edges) = writes, reads
    fits = _KINDS[x.dtype] in _REAL and len(x.shape) == 1
    _need(fits, name, "x", tuple(x), "real numbers of one axis")
    kinds = ("float",) if attributes[0] else ("int", "uint", "float")
    fits = _KINDS[edges.dtype] in kinds and edges.dtype not in ("float16", "bfloat16")
    fits = fits and len(edges.shape) == 1 and edges.shape[0] > 1
    _need(fits, name, "edges", tuple(edges), "a vector of two or more; even edges as floats")
    wanted = ("int64", (edges.shape[0] - 1,))
    _need(counts == wanted, name, "counts", tuple(counts), wanted)


def _add_at(name, _attributes, writes, reads):
    (target,), (index, source) = writes, reads
    fits = target.dtype in _ADDED and len(target.shape) == 3
    _need(fits, name, "target", tuple(target), "numbers of 32 bits or more, three axes")
    fits = source.dtype == target.dtype and len(source.shape) == 3
    fits = fits and source.shape[::2] == target.shape[::2]
    _need(fits, name, "source", tuple(source), f"{target.dtype} with extents of {target.shape}")
    _need(_KINDS[index.dtype] in ("int", "uint"), name, "index", index.dtype, "integers")
    fits = index.shape in (source.shape, source.shape[1:2])
    _need(fits, name, "index.shape", index.shape, f"{source.shape} or its middle axis")


def _marks(name, count, bits, starts):
    """Check the bits and starts of `count` elements."""
    wanted = ("uint32", (-(-count // MARK_WORD),))
    _need(bits == wanted, name, "bits", tuple(bits), wanted)
    wanted = ("int64", (-(-count // MARK_TILE) + 1,))
    _need(starts == wanted, name, "starts", tuple(starts), wanted)


def _mark(name, _attributes, writes, reads):
    (bits, starts), (x,) = writes, reads
    _need(len(x.shape) == 1, name, "x.shape", x.shape, "one extent")
    _need(_KINDS[x.dtype] != "small", name, "dtype", x.dtype, "a dtype with arithmetic")
    _marks(name, x.shape[0], bits, starts)


def _seen(name, _attributes, writes, reads):
    (bits, starts), (x, least) = writes, reads
    fits = _KINDS[x.dtype] in ("bool", "int", "uint") and len(x.shape) == 1
    _need(fits, name, "x", tuple(x), "integers of one axis")
    wanted = (x.dtype, (1,))
    _need(least == wanted, name, "least", tuple(least), wanted)
    _need(len(bits.shape) == 1, name, "bits.shape", bits.shape, "one extent")
    _marks(name, MARK_WORD * bits.shape[0], bits, starts)


def _pick(name, _attributes, writes, reads):
    (out,), (x, bits, starts) = writes, reads
    _need(len(x.shape) == 1, name, "x.shape", x.shape, "one extent")
    _marks(name, x.shape[0], bits, starts)
    fits = out.dtype == x.dtype and len(out.shape) == 1 and out.shape[0] <= x.shape[0]
    _need(fits, name, "out", tuple(out), f"{x.dtype} of one axis, at most as long as x")


def _places(name, attributes, writes, reads):
    (out,), (bits, starts), (shape,) = writes, reads, attributes
    count = math.prod(shape)
    _need(count <= MOST_PLACES, name, "shape", shape, "at most 2**62 elements")
    _marks(name, count, bits, starts)
    fits = out.dtype == "int64" and len(out.shape) == 2 and out.shape[0] == len(shape)
    fits = fits and out.shape[1] <= count
    _need(fits, name, "out", tuple(out), f"int64, a row for each axis of {shape}")


#: The rules by the names of calls.
ORDER_RULES = {
    "sort": _sort,
    "partition": _partition,
    "argsort": _argsort,
    "topk": _topk,
    "search": _search,
    "count": _count,
    "cumulate": _cumulate,
    "histogram": _histogram,
    "add_at": _add_at,
    "mark": _mark,
    "pick": _pick,
    "seen": _seen,
    "places": _places,
}
