"""The rules of calls that sort, select, search, count and accumulate (see call_rules.py).

Their operands are row-major; what is sorted has rows and columns, what is accumulated three axes.
"""

from gputensor._arrays.element_types import DTYPES
from gputensor._kernels.call_rules import ATTRIBUTE_TYPES, refuse

__all__ = ["ORDER_RULES"]

_KINDS = {row.name: row.kind for row in DTYPES}
_REAL = ("bool", "int", "uint", "float")
MOST_COLUMNS = (1 << 32) - 1

ATTRIBUTE_TYPES["scan"] = (lambda value: value in ("sum", "prod"), "'sum' or 'prod'")


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
    _need(fits, name, "x", tuple(x), "a vector, and one of values of its dtype")
    _need(_KINDS[x.dtype] in _REAL, name, "dtype", x.dtype, "a real dtype")
    wanted = ("int64", values.shape)
    _need(out == wanted, name, "out", tuple(out), wanted)


def _count(name, _attributes, writes, reads):
    (counts,), (x,) = writes, reads
    fits = _KINDS[x.dtype] in ("int", "uint") and len(x.shape) == 1
    _need(fits, name, "x", tuple(x), "integers of one axis")
    fits = counts.dtype == "int64" and len(counts.shape) == 1
    _need(fits, name, "counts", tuple(counts), "int64 of one axis")


def _cumulate(name, _attributes, writes, reads):
    (out,), (x,) = writes, reads
    for one in (out, x):
        _need(_KINDS[one.dtype] != "small", name, "dtype", one.dtype, "a dtype that computes")
    _need(len(x.shape) == 3, name, "x.shape", x.shape, "three extents")
    _need(out.shape == x.shape, name, "out.shape", out.shape, x.shape)


#: By the name of the call.
ORDER_RULES = {
    "sort": _sort,
    "argsort": _argsort,
    "topk": _topk,
    "search": _search,
    "count": _count,
    "cumulate": _cumulate,
}
