"""Quantiles without NaN, and the names of NumPy and PyTorch for what sorting and counting give."""

import math
import operator

from gputensor._arrays.dtypes import float32, float64, int64
from gputensor.errors import Described, argument_error
from gputensor.tensor import functions as fn
from gputensor.tensor.core import Tensor, axis_argument, tensor_argument
from gputensor.tensor.histograms import histogram
from gputensor.tensor.interop import astype
from gputensor.tensor.manipulation import expand_dims, moveaxis, reshape
from gputensor.tensor.manipulation.joining import stack
from gputensor.tensor.manipulation.picking import take_along_axis
from gputensor.tensor.sorting import METHODS, TopK, quantile, searchsorted, sort, topk

__all__ = ["bucketize", "histc", "kthvalue", "msort", "nanpercentile", "nanquantile"]


def _axes(x, axis, name):
    axes = range(x.ndim) if axis is None else axis if isinstance(axis, (tuple, list)) else (axis,)
    return [axis_argument(one, x.ndim, name) for one in axes]


def _weight(place, method):
    """How far the quantile is from the element below `place` to the one above."""
    low = fn.floor(place)
    if method == "lower":
        return place * 0
    if method == "higher":
        return fn.subtract(fn.ceil(place), low)
    if method == "midpoint":
        return fn.subtract(fn.ceil(place), low) * 0.5
    return fn.subtract(place if method == "linear" else fn.round(place), low)


def nanquantile(x, q, /, axis=None, *, method="linear", keepdims=False):
    """Return :func:`quantile` of the elements over `axis` that are not NaN; NaN where none is.

    >>> import gputensor as gt
    >>> nanquantile(gt.asarray([1.0, float("nan"), 3.0], device="host"), 0.5).item()
    2.0
    """
    if tensor_argument(x, "nanquantile").dtype.kind in "iucb":
        return quantile(x, q, axis, method=method, keepdims=keepdims)
    if method not in METHODS:
        rule = f"one of {', '.join(METHODS)}"
        raise argument_error(ValueError, "nanquantile: method", method, rule)
    if isinstance(q, Tensor):
        q = q.tolist()
    axes = _axes(x, axis, "nanquantile")
    kept = [n for i, n in enumerate(x.shape) if i not in axes]
    lines = moveaxis(x, axes, list(range(-len(axes), 0))) if axes else expand_dims(x, -1)
    lines = reshape(lines, [*kept, math.prod(x.shape[i] for i in axes)])
    if lines.shape[-1] == 0:
        raise argument_error(ValueError, "nanquantile: x", Described("no elements"), "one at least")
    ordered = sort(lines)
    last = fn.sum(fn.logical_not(fn.isnan(lines)), -1, keepdims=True) - 1
    last = astype(fn.maximum(last, 0), float64)
    results = []
    for share in q if hasattr(q, "__iter__") else [q]:
        if not 0 <= share <= 1:
            raise argument_error(ValueError, "nanquantile: q", share, "0 to 1")
        place = last * float(share)
        ends = (astype(one(place), int64) for one in (fn.floor, fn.ceil))
        low, high = (take_along_axis(ordered, one, -1) for one in ends)
        weight = astype(_weight(place, method), float64 if x.dtype == float64 else float32)
        between = fn.add(low, fn.multiply(fn.subtract(high, low), weight))
        # Between infinities of one sign there is no difference, and none that counts beside one.
        is_infinite = fn.logical_or(fn.isinf(low), fn.isinf(high))
        between = fn.where(is_infinite, fn.add(low, high), between)
        between = fn.where(fn.equal(weight, 0), low, between)
        results.append(reshape(fn.where(fn.equal(weight, 1), high, between), kept))
    result = stack(results) if hasattr(q, "__iter__") else results[0]
    if keepdims:
        shape = [1 if i in axes else n for i, n in enumerate(x.shape)]
        result = reshape(result, [*result.shape[: result.ndim - len(kept)], *shape])
    return astype(result, x.dtype, copy=False)


def nanpercentile(x, q, /, axis=None, *, method="linear", keepdims=False):
    """Return :func:`nanquantile` for percentages.

    >>> import gputensor as gt
    >>> nanpercentile(gt.asarray([1.0, float("nan"), 3.0], device="host"), 50).item()
    2.0
    """
    shares = q.tolist() if isinstance(q, Tensor) else q
    shares = [one / 100 for one in shares] if hasattr(shares, "__iter__") else shares / 100
    return nanquantile(x, shares, axis, method=method, keepdims=keepdims)


def kthvalue(x, k, /, axis=-1, *, keepdims=False):
    """Return the `k`-th least element along `axis`, counted from 1, and its position.

    >>> import gputensor as gt
    >>> [one.item() for one in kthvalue(gt.asarray([5, 1, 3], device="host"), 2)]
    [3, 2]
    """
    axis = axis_argument(axis, tensor_argument(x, "kthvalue").ndim, "kthvalue")
    k = operator.index(k)
    if not 1 <= k <= x.shape[axis]:
        raise argument_error(ValueError, "kthvalue: k", k, f"1 to {x.shape[axis]}, the extent")
    key = (slice(None),) * axis + (slice(k - 1, k) if keepdims else k - 1,)
    return TopK(*(fn.positive(one[key]) for one in topk(x, k, axis, largest=False)))


def msort(x, /):
    """Return a copy sorted along the first axis.

    >>> import gputensor as gt
    >>> msort(gt.asarray([[3, 1], [2, 5]], device="host")).tolist()
    [[2, 1], [3, 5]]
    """
    return sort(x, 0)


def bucketize(x, boundaries, /, *, right=False):
    """Return the number of the range that each element is in, between ascending boundaries.

    A boundary belongs to the range below it, and with `right` to that above it: PyTorch's sense,
    the opposite of :func:`digitize`.

    >>> import gputensor as gt
    >>> x, edges = gt.asarray([1, 2], device="host"), gt.asarray([1, 2], device="host")
    >>> bucketize(x, edges).tolist(), bucketize(x, edges, right=True).tolist()
    ([0, 1], [1, 2])
    """
    return searchsorted(boundaries, x, "right" if right else "left")


def histc(x, /, bins=100, min=0, max=0):
    """Return how many elements lie in each of `bins` ranges of one width, as floats of x's dtype.

    The ranges go from `min` to `max`, or over all elements, which are waited for, when both are 0.

    >>> import gputensor as gt
    >>> histc(gt.asarray([1.0, 2.0, 1.0], device="host"), 4, 0, 3).tolist()
    [0.0, 2.0, 1.0, 0.0]
    """
    if tensor_argument(x, "histc").dtype.kind not in "fV":
        got = Described(x.dtype.name)
        raise argument_error(TypeError, "histc: x", got, "a floating-point dtype")
    counts, _edges = histogram(x, bins, None if min == max == 0 else (min, max))
    return astype(counts, x.dtype)
