"""Sorting, selection, search, counting and scans on the host device.

>>> import numpy as np
>>> out, x = np.empty((1, 3), np.int64), np.array([[3.0, 1.0, 2.0]])
>>> run_argsort(True, out, x)
>>> out
array([[0, 2, 1]])
"""

import numpy as np

__all__ = ["run_argsort", "run_count", "run_scan", "run_search", "run_sort", "run_topk"]


def _wide(x):
    """In a dtype that NumPy sorts."""
    return x.astype(np.float32) if x.dtype.kind == "V" or x.dtype == np.float16 else x


def _order(x, is_descending):
    """The places that sort rows; equal elements keep their order either way."""
    x = _wide(x)
    if not is_descending:
        return np.argsort(x, axis=-1, kind="stable")
    places = np.argsort(x[:, ::-1], axis=-1, kind="stable")
    return x.shape[-1] - 1 - places[:, ::-1]


def run_sort(is_descending, out, x):
    result = np.sort(_wide(x), axis=-1)
    out[...] = result[:, ::-1] if is_descending else result


def run_argsort(is_descending, out, x):
    out[...] = _order(x, is_descending)


def run_topk(is_largest, values, order, x):
    order[...] = _order(x, is_largest)[:, : order.shape[1]]
    values[...] = np.take_along_axis(x, order, -1)


def run_search(is_right, out, x, values):
    out[...] = np.searchsorted(_wide(x), _wide(values), "right" if is_right else "left")


def run_count(counts, x):
    """Add how often each number comes to `counts`.

    >>> counts = np.zeros(3, np.int64)
    >>> run_count(counts, np.array([2, 0, 2, -1, 3]))
    >>> counts
    array([1, 0, 2])
    """
    x = x[(x >= 0) & (x < counts.shape[0])]
    counts += np.bincount(x.astype(np.int64), minlength=counts.shape[0])


def run_scan(op, out, x):
    """Sums or products up to each element along the middle axis; 16-bit floats in float32.

    >>> out = np.empty((1, 3, 1))
    >>> run_scan("prod", out, np.array([1, 2, 3]).reshape(1, 3, 1))
    >>> out.reshape(-1)
    array([1., 2., 6.])
    """
    is_narrow = out.dtype == np.float16 or out.dtype.kind == "V"
    wide = np.dtype(np.float32) if is_narrow else out.dtype
    function = np.cumsum if op == "sum" else np.cumprod
    out[...] = function(x.astype(wide, copy=False), axis=1, dtype=wide)
