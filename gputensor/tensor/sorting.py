"""Sorted tensors, and what is made of them: unique elements, greatest ones, quantiles, membership.

NaN comes last in ascending order. What needs no kernel of its own is made of `sort`, `argsort` and
`searchsorted`; the number of unique elements is the only value that the host reads.
"""

import math
import operator
from typing import NamedTuple

from gputensor._arrays.dtypes import float32, float64, int64
from gputensor._arrays.promotion import result_type
from gputensor._engines import sorting as engines
from gputensor.errors import Described, argument_error
from gputensor.tensor import functions as fn
from gputensor.tensor.core import Tensor, axis_argument, on_one_device, tensor_argument
from gputensor.tensor.engine import queue_call, queue_engine
from gputensor.tensor.interop import asarray, astype
from gputensor.tensor.manipulation import (
    arange,
    broadcast_to,
    empty,
    empty_like,
    expand_dims,
    moveaxis,
    reshape,
    take,
    zeros,
)
from gputensor.tensor.manipulation.joining import concat
from gputensor.tensor.manipulation.picking import take_along_axis
from gputensor.tensor.places import chosen, firsts
from gputensor.tensor.scans import cumsum

__all__ = [
    "argsort", "isin", "median", "nanmedian", "percentile", "quantile", "searchsorted", "sort",
    "sort_in_place", "topk", "unique", "unique_all", "unique_counts", "unique_inverse",
    "unique_values",
]  # fmt: skip


# A selection of more is sorted whole; `topk` of few rows that are longer goes by parts.
LARGEST_K = 2048
LONG_SELECTION = 1 << 17
FEW_ROWS = 64


def _known(x):
    """`x` in a dtype whose order the kernels know: fp8 as float32."""
    return astype(x, float32) if x.dtype.itemsize == 1 and x.dtype.kind in "fV" else x


def _rows(x, axis):
    """The lines along an axis as dense rows, and the shape with that axis last."""
    moved = moveaxis(x, axis, -1)
    return reshape(moved.contiguous(), (-1, x.shape[axis])), moved.shape


def _back(rows, shape, axis):
    return moveaxis(reshape(rows, (*shape[:-1], rows.shape[-1])), -1, axis)


def _line(x, axis, name):
    if axis is None:
        return reshape(tensor_argument(x, name), -1), 0
    return x, axis_argument(axis, tensor_argument(x, name).ndim, name)


def sort(x, /, axis=-1, *, descending=False, stable=True):
    """Return a sorted copy along `axis` (None: flattened).

    >>> import gputensor as gt
    >>> sort(gt.asarray([3, 1, 2], device="host"), descending=True).tolist()
    [3, 2, 1]
    """
    x, axis = _line(x, axis, "sort")
    if x.size == 0:
        return astype(x, x.dtype)
    if x.dtype.kind == "c":
        result = queue_engine(engines.sort, (axis, bool(descending)), [_new(x)], x)
    else:
        rows, shape = _rows(_known(x), axis)
        out = empty_like(rows)
        queue_call("sort", (bool(descending),), (out,), (rows,))
        result = _back(out, shape, axis)
    return astype(result, x.dtype, copy=False)


def _new(x, dtype=None):
    """New row-major memory with the shape of `x`."""
    return empty(x.shape, x.dtype if dtype is None else dtype, device=x.device)


def sort_in_place(x, /, axis=-1):
    """Sort the tensor itself along `axis`: the method ``x.sort()``, as in NumPy.

    >>> import gputensor as gt
    >>> x = gt.asarray([3, 1, 2], device="host")
    >>> x.sort()
    >>> x.tolist()
    [1, 2, 3]
    """
    x[...] = sort(x, axis)


def argsort(x, /, axis=-1, *, descending=False, stable=True):
    """Return the int64 positions that sort `x` along `axis` (None: flattened).

    Equal elements keep their order.

    >>> import gputensor as gt
    >>> argsort(gt.asarray([3, 1, 2], device="host")).tolist()
    [1, 2, 0]
    """
    x, axis = _line(x, axis, "argsort")
    if x.size == 0:
        return _new(x, int64)
    if x.dtype.kind == "c":
        return queue_engine(engines.argsort, (axis, bool(descending)), [_new(x, int64)], x)
    rows, shape = _rows(_known(x), axis)
    out = empty(rows.shape, int64, device=x.device)
    queue_call("argsort", (bool(descending),), (out,), (rows,))
    return _back(out, shape, axis)


class TopK(NamedTuple):
    """The result of :func:`topk`."""

    values: Tensor
    indices: Tensor


def topk(x, k, /, axis=-1, *, largest=True):
    """Return the `k` greatest (or least) elements along `axis` in order, and their positions.

    >>> import gputensor as gt
    >>> values, indices = topk(gt.asarray([3, 1, 2], device="host"), 2)
    >>> values.tolist(), indices.tolist()
    ([3, 2], [0, 2])
    """
    axis = axis_argument(axis, tensor_argument(x, "topk").ndim, "topk")
    k = operator.index(k)
    if not 0 <= k <= x.shape[axis]:
        raise argument_error(ValueError, "topk: k", k, f"0 to {x.shape[axis]}, the extent")
    if x.dtype.kind == "c" or k > LARGEST_K or x.dtype != _known(x[:0]).dtype:
        order = argsort(x, axis, descending=largest)[(slice(None),) * axis + (slice(k),)]
        return TopK(take_along_axis(x, order, axis), order)
    shape = (*x.shape[:axis], k, *x.shape[axis + 1 :])
    if k == 0 or x.size == 0:
        empties = (empty(shape, dtype, device=x.device) for dtype in (x.dtype, int64))
        return TopK(*empties)
    rows, moved = _rows(x, axis)
    return TopK(*(_back(one, moved, axis) for one in _selected(rows, k, bool(largest))))


def _selected(rows, k, is_largest):
    """The first k of each sorted row, and their columns; of few long rows first of their parts."""
    count, columns = rows.shape
    if columns >= LONG_SELECTION and count < FEW_ROWS and k <= columns >> 6:
        parts = min(1024, columns // max(1 << 14, 4 * k))
        width = columns // parts
        lines = rows[:, : parts * width].contiguous()
        values, order = _selected(reshape(lines, (count * parts, width)), k, is_largest)
        starts = arange(0, parts * width, width, device=rows.device)
        order = reshape(order, (count, parts, k)) + reshape(starts, (parts, 1))
        pieces = [(reshape(values, (count, -1)), reshape(order, (count, -1)))]
        if parts * width < columns:
            rest = rows[:, parts * width :].contiguous()
            values, order = _selected(rest, min(k, rest.shape[1]), is_largest)
            pieces.append((values, order + parts * width))
        values, order = (concat(list(one), axis=1) for one in zip(*pieces, strict=True))
        values, places = _selected(values.contiguous(), k, is_largest)
        return values, take_along_axis(order, places, 1)
    values = empty((count, k), rows.dtype, device=rows.device)
    order = empty((count, k), int64, device=rows.device)
    queue_call("topk", (is_largest,), (values, order), (rows,))
    return values, order


def searchsorted(x, values, /, side="left", sorter=None):
    """Return where `values` would be put into the sorted vector `x` to keep it sorted.

    Parameters
    ----------
    x : Tensor
        One dimension, in ascending order, or with `sorter` in any.
    values : Tensor or number
    side : {"left", "right"}
        Before or behind equal elements.
    sorter : Tensor, optional
        The positions that sort `x`.

    >>> import gputensor as gt
    >>> searchsorted(gt.asarray([1, 3, 5], device="host"), 3, side="right").item()
    2
    """
    if tensor_argument(x, "searchsorted").ndim != 1:
        got = Described(f"{x.ndim} dimensions")
        raise argument_error(ValueError, "searchsorted: x", got, "1 dimension")
    if side not in ("left", "right"):
        raise argument_error(ValueError, "searchsorted: side", side, "'left' or 'right'")
    if type(values) is not Tensor:
        values = asarray(values, result_type(x, values), device=x.device)
    x, values = on_one_device("searchsorted", (x, values), None)
    x = x if sorter is None else take(x, sorter)
    dtype = result_type(x, values)
    dtype = float32 if dtype.itemsize == 1 and dtype.kind in "fV" else dtype
    x, values = (astype(one, dtype, copy=False) for one in (x, values))
    out = _new(values, int64)
    if values.size and dtype.kind == "c":
        return queue_engine(engines.searchsorted, (side,), [out], x, values)
    if values.size:
        values = reshape(values.contiguous(), -1)
        queue_call("search", (side == "right",), (reshape(out, -1),), (x.contiguous(), values))
    return out


class UniqueAll(NamedTuple):
    """The result of :func:`unique_all`."""

    values: Tensor
    indices: Tensor
    inverse_indices: Tensor
    counts: Tensor


class UniqueCounts(NamedTuple):
    """The result of :func:`unique_counts`."""

    values: Tensor
    counts: Tensor


class UniqueInverse(NamedTuple):
    """The result of :func:`unique_inverse`."""

    values: Tensor
    inverse_indices: Tensor


def unique_values(x, /):
    """Return the different elements in ascending order; each NaN is another one. Waits.

    >>> import gputensor as gt
    >>> unique_values(gt.asarray([3, 1, 3], device="host")).tolist()
    [1, 3]
    """
    return _different(x, False)


def _different(x, equal_nan):
    ordered = sort(x, None)
    return astype(chosen(_known(ordered), equal_nan), x.dtype, copy=False)


def _all(x, equal_nan, name):
    """The values, first positions, inverse and counts of all elements."""
    flat = reshape(tensor_argument(x, name), -1)
    order = argsort(flat)
    ordered = take(flat, order)
    starts = firsts(_known(ordered), equal_nan)
    counts = zeros(flat.size, int64, device=x.device)
    counts[starts] = 1
    inverse = empty_like(order)
    inverse[order] = cumsum(counts) - 1
    ends = concat([starts[1:], broadcast_to(asarray(flat.size, int64, device=x.device), (1,))])
    counts = fn.subtract(ends[: starts.size], starts)
    return take(ordered, starts), take(order, starts), reshape(inverse, x.shape), counts


def unique_all(x, /):
    """Return the different elements, where each is first, which one each element is, and counts.

    >>> import gputensor as gt
    >>> [part.tolist() for part in unique_all(gt.asarray([3, 1, 3], device="host"))]
    [[1, 3], [1, 0], [1, 0, 1], [1, 2]]
    """
    return UniqueAll(*_all(x, False, "unique_all"))


def unique_counts(x, /):
    """Return the different elements and how often each comes.

    >>> import gputensor as gt
    >>> [part.tolist() for part in unique_counts(gt.asarray([3, 1, 3], device="host"))]
    [[1, 3], [1, 2]]
    """
    values, _indices, _inverse, counts = _all(x, False, "unique_counts")
    return UniqueCounts(values, counts)


def unique_inverse(x, /):
    """Return the different elements, and which of them each element is.

    >>> import gputensor as gt
    >>> [part.tolist() for part in unique_inverse(gt.asarray([3, 1, 3], device="host"))]
    [[1, 3], [1, 0, 1]]
    """
    values, _indices, inverse, _counts = _all(x, False, "unique_inverse")
    return UniqueInverse(values, inverse)


def _unique_rows(x, axis):
    """The different slices along an axis in lexical order, and their :func:`_all`."""
    axis = axis_argument(axis, x.ndim, "unique")
    moved = moveaxis(x, axis, 0)
    rows = reshape(moved.contiguous(), (x.shape[axis], math.prod(moved.shape[1:])))
    order = arange(rows.shape[0], device=x.device)
    for column in reversed(range(rows.shape[1])):
        order = take(order, argsort(take(rows[:, column], order)))
    ordered = take(rows, order, 0)
    number = zeros(order.size, int64, device=x.device)
    number[1:] = cumsum(astype(fn.any(fn.not_equal(ordered[1:], ordered[:-1]), 1), int64))
    starts = firsts(number, False)
    inverse = empty_like(order)
    inverse[order] = number
    ends = concat([starts[1:], asarray([order.size], int64, device=x.device)])
    indices = take(order, starts)
    counts = fn.subtract(ends[: starts.size], starts)
    return moveaxis(take(moved, indices, 0), 0, axis), indices, inverse, counts


def unique(
    x,
    /,
    return_index=False,
    return_inverse=False,
    return_counts=False,
    axis=None,
    *,
    equal_nan=True,
):
    """Return the different elements in ascending order, with indices and counts as in NumPy.

    With `axis`, the different slices along it, in lexical order; NaN in slices are different.

    >>> import gputensor as gt
    >>> unique(gt.asarray([3, 1, 3], device="host")).tolist()
    [1, 3]
    """
    wanted = return_index or return_inverse or return_counts
    tensor_argument(x, "unique")
    if axis is None and not wanted:
        return _different(x, equal_nan)
    parts = _all(x, equal_nan, "unique") if axis is None else _unique_rows(x, axis)
    if not wanted:
        return parts[0]
    wanted = (True, return_index, return_inverse, return_counts)
    return tuple(part for part, is_wanted in zip(parts, wanted, strict=True) if is_wanted)


def isin(x1, x2, /, assume_unique=False, invert=False):
    """Return where elements of x1 are in x2; NaN is in nothing.

    >>> import gputensor as gt
    >>> x = gt.arange(4, device="host")
    >>> isin(x, gt.asarray([1, 3], device="host")).tolist()
    [False, True, False, True]
    """
    first = tensor_argument(x1 if type(x1) is Tensor else x2, "isin")
    if isinstance(x2, (int, float, complex)):
        found = fn.equal(x1, x2)
        return fn.logical_not(found) if invert else found
    if isinstance(x1, (int, float, complex)):
        found = fn.any(fn.equal(x2, x1))
        return fn.logical_not(found) if invert else found
    x1, x2 = (one if type(one) is Tensor else asarray(one, device=first.device) for one in (x1, x2))
    ordered = sort(x2, None)
    if ordered.size == 0:
        found = fn.logical_and(fn.equal(x1, x1), False)
    else:
        places = fn.minimum(searchsorted(ordered, x1), ordered.size - 1)
        found = fn.equal(take(ordered, places), x1)
    return fn.logical_not(found) if invert else found


# How the position between two elements is cut, by NumPy's names.
METHODS = ("linear", "lower", "higher", "nearest", "midpoint")


def _quantile(x, q, axis, method, keepdims, name):
    """`name` is quantile, or percentile with percentages."""
    tensor_argument(x, name)
    q = _shares(q, name)
    if method not in METHODS:
        raise argument_error(ValueError, f"{name}: method", method, f"one of {', '.join(METHODS)}")
    if x.dtype.kind in "cb":
        raise argument_error(TypeError, f"{name}: x", Described(x.dtype.name), "a real number")
    axes = range(x.ndim) if axis is None else axis if isinstance(axis, (tuple, list)) else (axis,)
    axes = [axis_argument(one, x.ndim, name) for one in axes]
    kept = [i for i in range(x.ndim) if i not in axes]
    lines = reshape(
        moveaxis(x, axes, list(range(-len(axes), 0))) if axes else expand_dims(x, -1),
        [*(x.shape[i] for i in kept), math.prod(x.shape[i] for i in axes)],
    )
    if lines.shape[-1] == 0:
        raise argument_error(ValueError, f"{name}: x", Described("no elements"), "one at least")
    dtype = float64 if x.dtype.kind in "iu" else x.dtype
    ordered = astype(sort(lines), dtype, copy=False)
    result = _between(ordered, q, method)
    # NaN is last; where there is one, it is the result.
    last = ordered[..., -1]
    result = fn.where(fn.isnan(last), last, result)
    if keepdims:
        shape = [1 if i in axes else n for i, n in enumerate(x.shape)]
        result = reshape(result, [*result.shape[: result.ndim - len(kept)], *shape])
    return astype(result, float32 if x.dtype.kind in "iu" else dtype, copy=False)


def _shares(q, name):
    """The shares from 0 to 1: a float, or a list of them."""
    shares = q.tolist() if hasattr(q, "tolist") else q
    if hasattr(shares, "__iter__") and not isinstance(shares, str):
        return [_shares(one, name) for one in shares]
    top = 100 if name == "percentile" else 1
    if not isinstance(shares, (int, float)) or not 0 <= shares <= top:
        raise argument_error(ValueError, f"{name}: q", shares, f"0 to {top}")
    return float(shares / top)


def _between(ordered, shares, method):
    """The elements at the shares of sorted lines; several shares come as the first axis."""
    if isinstance(shares, list):
        return concat([expand_dims(_between(ordered, one, method), 0) for one in shares])
    place = shares * (ordered.shape[-1] - 1)
    low, high = math.floor(place), math.ceil(place)
    weight = {
        "linear": place - low, "lower": 0.0, "higher": float(high > low), "midpoint": 0.5,
        "nearest": float(round(place) - low),
    }[method]  # fmt: skip
    a, b = ordered[..., low], ordered[..., high]
    if weight == 0 or low == high:
        return fn.positive(a)
    return fn.positive(b) if weight == 1 else _cut(a, b, weight)


def _cut(a, b, weight):
    # Between infinities of one sign there is no difference, and none that counts beside one.
    is_infinite = fn.logical_or(fn.isinf(a), fn.isinf(b))
    return fn.where(is_infinite, fn.add(a, b), fn.add(a, fn.multiply(fn.subtract(b, a), weight)))


def quantile(x, q, /, axis=None, *, method="linear", keepdims=False):
    """Return the elements at the shares `q`, from 0 to 1, of the sorted elements over `axis`.

    Parameters
    ----------
    q : float, sequence of float or Tensor
        Several shares are the first axis of the result.
    method : {"linear", "lower", "higher", "nearest", "midpoint"}
        What lies between two elements.

    >>> import gputensor as gt
    >>> quantile(gt.asarray([1.0, 2.0, 4.0], device="host"), 0.75).item()
    3.0
    """
    return _quantile(x, q, axis, method, keepdims, "quantile")


def percentile(x, q, /, axis=None, *, method="linear", keepdims=False):
    """Return :func:`quantile` for percentages.

    >>> import gputensor as gt
    >>> percentile(gt.asarray([1.0, 2.0, 4.0], device="host"), 50).item()
    2.0
    """
    return _quantile(x, q, axis, method, keepdims, "percentile")


def median(x, /, axis=None, *, keepdims=False):
    """Return the middle of the sorted elements over `axis`, the mean of the two of an even number.

    PyTorch's ``median`` gives the lower of the two.

    >>> import gputensor as gt
    >>> median(gt.asarray([4.0, 1.0, 2.0, 3.0], device="host")).item()
    2.5
    """
    return _quantile(x, 0.5, axis, "linear", keepdims, "median")


def nanmedian(x, /, axis=None, *, keepdims=False):
    """Return the :func:`median` over `axis` without NaN; NaN where there is nothing else.

    >>> import gputensor as gt
    >>> nanmedian(gt.asarray([4.0, float("nan"), 2.0], device="host")).item()
    3.0
    """
    if tensor_argument(x, "nanmedian").dtype.kind in "iu" or axis is not None and x.ndim == 0:
        return median(x, axis, keepdims=keepdims)
    lines, place = _line(x, axis, "nanmedian")
    ordered = sort(lines, place)
    count = fn.sum(fn.logical_not(fn.isnan(lines)), place, keepdims=True)
    last = fn.maximum(count - 1, 0)
    low = take_along_axis(ordered, fn.floor_divide(last, 2), place)
    high = take_along_axis(ordered, fn.floor_divide(last + 1, 2), place)
    result = _cut(low, high, 0.5)
    if keepdims:
        return reshape(result, (1,) * x.ndim) if axis is None else result
    return reshape(result, [n for i, n in enumerate(lines.shape) if i != place])
