"""Quantiles and medians.

If an element is NaN, so is the result, except in the functions whose names begin with ``nan``.
"""

import math

import numpy as np

from gputensor._arrays.dtypes import float32, float64, int64
from gputensor.errors import Described, argument_error, float_argument, plain_int
from gputensor.tensor import functions as fn
from gputensor.tensor.core import axis_argument, out_argument, spellings, tensor_argument
from gputensor.tensor.engine import queue_call
from gputensor.tensor.interop import astype
from gputensor.tensor.interop.arrays import values_argument
from gputensor.tensor.manipulation import (
    broadcast_to,
    empty_like,
    expand_dims,
    full,
    moveaxis,
    reshape,
)
from gputensor.tensor.manipulation.joining import concat, stack
from gputensor.tensor.manipulation.picking import take_along_axis
from gputensor.tensor.scans import cumsum
from gputensor.tensor.sorting import argsort, sort

__all__ = ["median", "nanmedian", "nanpercentile", "nanquantile", "percentile", "quantile"]

#: Constants a and b of the methods that interpolate at n q + a + q (1 - a - b), counted from 1.
ESTIMATES = {
    "interpolated_inverted_cdf": (0, 1), "hazen": (0.5, 0.5), "weibull": (0, 0),
    "median_unbiased": (1 / 3, 1 / 3), "normal_unbiased": (3 / 8, 3 / 8),
}  # fmt: skip
#: The methods whose quantiles are elements; those of integers are exact.
CHOOSING = ("lower", "higher", "nearest", "inverted_cdf", "closest_observation")
#: The methods of NumPy; the order statistics among them have no constants.
METHODS = (
    "linear", "lower", "higher", "nearest", "midpoint", *ESTIMATES, "inverted_cdf",
    "averaged_inverted_cdf", "closest_observation",
)  # fmt: skip


def _quantile(x, q, axis, method, keepdims, name):
    """Return quantiles for `name`, where "percentile" means that `q` is in percent."""
    tensor_argument(x, name)
    q = _shares(q, name)
    _check_method(method, name)
    _check_real(x, name)
    lines, kept_shape = _lines(x, axis, name)
    ordered = _partitioned(lines, _ends(lines.shape[-1], q, method))
    if x.dtype.kind in "iu" and method in CHOOSING:
        result = _between(ordered, q, method)
        return _with_axes(result, lines, kept_shape) if keepdims else result
    dtype = float64 if x.dtype.kind in "iu" else x.dtype
    ordered = astype(ordered, dtype, copy=False)
    result = _between(ordered, q, method)
    # NaN is sorted to the end; if there is one, it is the result.
    last = ordered[..., -1]
    result = fn.where(fn.isnan(last), last, result)
    result = _with_axes(result, lines, kept_shape) if keepdims else result
    return astype(result, float32 if x.dtype.kind in "iu" else dtype, copy=False)


#: The most elements of a line that are found without sorting it.
MOST_PLACES = 8


def _partitioned(lines, places):
    """Return sorted lines of which the caller reads only `places`; NaN is the last element."""
    places = {*places, lines.shape[-1] - 1}
    if len(places) > MOST_PLACES or not lines.size or lines.dtype.kind not in "iuf":
        return sort(lines)
    rows = reshape(lines.contiguous(), (-1, lines.shape[-1]))
    out = empty_like(rows)
    queue_call("partition", (tuple(sorted(places)),), (out,), (rows,))
    return reshape(out, lines.shape)


def _ends(count, shares, method):
    """Yield the places of the elements between which the quantiles of lines of `count` lie."""
    for share in shares if isinstance(shares, list) else [shares]:
        if isinstance(share, list):
            yield from _ends(count, share, method)
        else:
            place = float(_place(count, share, method, np))
            yield from (math.floor(place), math.ceil(place))


def _weighted(x, q, axis, weights, keepdims, name):
    """Return quantiles of weighted elements: where the sum of weights first reaches the share."""
    q = _shares(q, name)
    lines, kept_shape = _lines(tensor_argument(x, name), axis, name)
    order = argsort(lines)
    ordered = take_along_axis(lines, order, -1)
    sums = cumsum(take_along_axis(_aligned(x, axis, weights, lines, name), order, -1), -1)
    sums = fn.divide(sums, sums[..., -1:])
    found = []
    for share in q if isinstance(q, list) else [q]:
        is_below = fn.logical_or(fn.less(sums, float(share)), fn.equal(sums, 0))
        place = fn.minimum(fn.sum(is_below, -1, keepdims=True), lines.shape[-1] - 1)
        found.append(take_along_axis(ordered, place, -1)[..., 0])
    result = stack(found) if isinstance(q, list) else found[0]
    if not name.startswith("nan") and x.dtype.kind == "f":
        last = ordered[..., -1]
        result = fn.where(fn.isnan(last), last, result)
    return _with_axes(result, lines, kept_shape) if keepdims else result


def _aligned(x, axis, weights, lines, name):
    """Return the weights in the order of `lines`, as float64; 0 for elements that are NaN."""
    weights = astype(values_argument(weights, name, x), float64)
    if weights.shape != x.shape:
        axis = plain_int(axis)
        is_axis = isinstance(axis, int) and weights.shape == (x.shape[axis],)
        if not is_axis:
            got = Described(f"shape {weights.shape}")
            rule = f"{x.shape}, or the extent of one axis"
            raise argument_error(ValueError, f"{name}: weights", got, rule)
        shape = [1] * x.ndim
        shape[axis] = -1
        weights = broadcast_to(reshape(weights, shape), x.shape)
    weights, _ = _lines(weights, axis, name)
    return weights if x.dtype.kind in "iub" else fn.where(fn.isnan(lines), 0.0, weights)


def _with_weights(x, q, axis, weights, method, keepdims, name):
    """Return what `_weighted` does for the one method that knows weights."""
    if method != "inverted_cdf":
        raise argument_error(ValueError, f"{name}: method", method, "inverted_cdf with weights")
    _check_real(x, name)
    return _weighted(x, q, axis, weights, keepdims, name)


def _check_real(x, name):
    if tensor_argument(x, name).dtype.kind in "cb":
        rule = "a real dtype other than bool"
        raise argument_error(TypeError, f"{name}: x", Described(x.dtype.name), rule)


def _check_method(method, name):
    if not isinstance(method, str) or method not in METHODS:
        raise argument_error(ValueError, f"{name}: method", method, f"one of {', '.join(METHODS)}")


def _lines(x, axis, name):
    """Return `x` with the reduced axes joined into the last one, and its shape with them as 1."""
    if axis is None:
        axes, kept, lines = range(x.ndim), [], reshape(x, -1)
    else:
        axes = axis if isinstance(axis, (tuple, list)) else (axis,)
        axes = [axis_argument(one, x.ndim, name) for one in axes]
        kept = [n for i, n in enumerate(x.shape) if i not in axes]
        lines = moveaxis(x, axes, list(range(-len(axes), 0))) if axes else expand_dims(x, -1)
        lines = reshape(lines, [*kept, math.prod(x.shape[i] for i in axes)])
    if lines.shape[-1] == 0:
        if name in ("quantile", "percentile"):
            raise argument_error(ValueError, f"{name}: x", Described("no elements"), "at least one")
        # As in NumPy, the median of no elements is that of one NaN.
        dtype = float32 if x.dtype.kind in "iu" else x.dtype
        lines = full((*kept, 1), math.nan, dtype, device=x.device)
    return lines, [1 if i in axes else n for i, n in enumerate(x.shape)]


def _with_axes(result, lines, shape):
    """Return quantiles of `lines` with the reduced axes kept; fractions stay in front."""
    return reshape(result, [*result.shape[: result.ndim - lines.ndim + 1], *shape])


def _shares(q, name):
    """Return `q` as fractions from 0 to 1: a float, or a list of them."""
    shares = q.tolist() if hasattr(q, "tolist") else q
    if hasattr(shares, "__iter__") and not isinstance(shares, (str, bytes, dict)):
        return [_shares(one, name) for one in shares]
    top = 100 if name.endswith("percentile") else 1
    if not 0 <= float_argument(f"{name}: q", shares) <= top:
        raise argument_error(ValueError, f"{name}: q", shares, f"0 to {top}")
    return float(shares / top)


def _place(count, share, method, library):
    """Return where a quantile lies among `count` sorted elements, counted from 0.

    The definitions are those of Hyndman and Fan (1996). `library` has the functions for counts
    that are numbers (NumPy) or tensors.
    """
    if method in ESTIMATES:
        a, b = ESTIMATES[method]
        place = count * share + (a + share * (1 - a - b)) - 1
    elif method == "inverted_cdf":
        place = library.ceil(count * share) - 1
    elif method == "averaged_inverted_cdf":
        place = count * share - 1
        place = library.where(library.floor(place) == place, place + 0.5, library.ceil(place))
    elif method == "closest_observation":
        place = count * share - 1.5  # halfway between two, the even one counted from 1
        low = library.floor(place)
        is_below = library.logical_and(low == place, library.remainder(low, 2) == 1)
        place = library.where(is_below, low, low + 1)
    else:
        return (count - 1) * share
    return library.clip(place, 0, count - 1)


def _between(ordered, shares, method):
    """Return the quantiles of sorted lines; several fractions become the first axis."""
    if isinstance(shares, list):
        return concat([expand_dims(_between(ordered, one, method), 0) for one in shares])
    place = float(_place(ordered.shape[-1], shares, method, np))
    low, high = math.floor(place), math.ceil(place)
    weight = {
        "lower": 0.0, "higher": float(high > low), "midpoint": 0.5,
        "nearest": float(round(place) - low),
    }.get(method, place - low)  # fmt: skip
    a, b = ordered[..., low], ordered[..., high]
    if weight == 0 or low == high:
        return fn.positive(a)
    return fn.positive(b) if weight == 1 else _cut(a, b, weight)


def _cut(a, b, weight):
    if a.dtype.itemsize < 4:  # a difference of 16 bits would be rounded, and its product again
        return astype(_cut(astype(a, float32), astype(b, float32), weight), a.dtype)
    difference = fn.subtract(b, a)
    result = fn.add(a, fn.multiply(difference, weight))
    if isinstance(weight, float) and weight == 0.5:
        # Of numbers on both sides of 0 the difference may overflow, of others the sum.
        is_beside = fn.logical_or(fn.greater_equal(a, 0), fn.less_equal(b, 0))
        is_beside = fn.logical_and(is_beside, fn.isfinite(difference))
        return fn.where(is_beside, result, fn.multiply(fn.add(a, b), 0.5))
    # With an infinity, the interpolated difference would be NaN; the sum is right.
    is_infinite = fn.logical_or(fn.isinf(a), fn.isinf(b))
    return fn.where(is_infinite, fn.add(a, b), result)


def _into(out, result, name):
    """The result, written to `out` where that is given."""
    if out is None:
        return result
    return fn.positive(result, out=out_argument(out, result, result.shape, result.dtype, name))


@spellings(dim="axis", keepdim="keepdims", interpolation="method")
def quantile(
    x, /, q, axis=None, out=None, overwrite_input=False, method="linear", keepdims=False, *,
    weights=None,
):  # fmt: skip
    """Return quantiles over `axis`: the elements at the fractions `q` of the sorted order.

    Parameters
    ----------
    q : float, sequence of float or Tensor
        0 to 1. Several fractions become the first axis of the result.
    out : Tensor, optional
        Takes the result.
    method : str
        How to compute a quantile between two elements: "linear", "lower", "higher", "nearest",
        "midpoint", or one of NumPy's further estimates, such as "hazen" and "inverted_cdf".
    weights : Tensor or sequence, optional
        0 or more for each element, or for each along one axis; with method "inverted_cdf".

    >>> import gputensor as gt
    >>> quantile(gt.asarray([1.0, 2.0, 4.0], device="host"), 0.75).item()
    3.0
    """
    if weights is not None:
        found = _with_weights(x, q, axis, weights, method, keepdims, "quantile")
        return _into(out, found, "quantile")
    return _into(out, _quantile(x, q, axis, method, keepdims, "quantile"), "quantile")


def percentile(
    x, q, /, axis=None, out=None, overwrite_input=False, method="linear", keepdims=False, *,
    weights=None,
):  # fmt: skip
    """Return :func:`quantile`, with `q` in percent.

    >>> import gputensor as gt
    >>> percentile(gt.asarray([1.0, 2.0, 4.0], device="host"), 50).item()
    2.0
    """
    if weights is not None:
        found = _with_weights(x, q, axis, weights, method, keepdims, "percentile")
        return _into(out, found, "percentile")
    return _into(out, _quantile(x, q, axis, method, keepdims, "percentile"), "percentile")


def _complex_median(x, axis, keepdims, name):
    """Return medians of complex numbers; NaN counts unless the name begins with ``nan``."""
    lines, kept_shape = _lines(x, axis, name)
    ordered = sort(lines)
    # NaN is sorted to the end. Of lines of NaN only, the first element is the result.
    counted = fn.sum(fn.logical_not(fn.isnan(lines)), -1, int64, keepdims=True)
    last = fn.maximum(counted - 1, 0)
    low, high = (take_along_axis(ordered, place, -1) for place in (last // 2, (last + 1) // 2))
    result = fn.where(fn.equal(low, high), low, fn.multiply(fn.add(low, high), 0.5))[..., 0]
    if name == "median":
        end = ordered[..., -1]
        result = fn.where(fn.isnan(end), end, result)
    return _with_axes(result, lines, kept_shape) if keepdims else result


@spellings("gputensor.tensor.numerics.torch_results.lower_median", dim="axis", keepdim="keepdims")
def median(x, /, axis=None, out=None, overwrite_input=False, keepdims=False):
    """Return the median over `axis`; for an even count the mean of the two middle elements.

    PyTorch returns the lower of the two and its position; so does a call with ``dim=``, or with a
    bool after the axis, here. Complex numbers have the order of :func:`sort`. `overwrite_input` has
    no effect.

    >>> import gputensor as gt
    >>> median(gt.asarray([4.0, 1.0, 2.0, 3.0], device="host")).item()
    2.5
    """
    if isinstance(out, bool):
        return median(x, dim=axis, keepdim=out)
    if tensor_argument(x, "median").dtype.kind == "c":
        return _into(out, _complex_median(x, axis, keepdims, "median"), "median")
    if x.dtype.kind == "b":
        x = astype(x, "uint8")
    return _into(out, _quantile(x, 0.5, axis, "linear", keepdims, "median"), "median")


@spellings(
    "gputensor.tensor.numerics.torch_results.lower_nanmedian", dim="axis", keepdim="keepdims"
)
def nanmedian(x, /, axis=None, out=None, overwrite_input=False, keepdims=False):
    """Return the :func:`median` over `axis`, ignoring NaN; NaN if all elements are.

    >>> import gputensor as gt
    >>> nanmedian(gt.asarray([4.0, float("nan"), 2.0], device="host")).item()
    3.0
    """
    if isinstance(out, bool):
        return nanmedian(x, dim=axis, keepdim=out)
    if tensor_argument(x, "nanmedian").dtype.kind == "c":
        return _into(out, _complex_median(x, axis, keepdims, "nanmedian"), "nanmedian")
    if x.dtype.kind in "iub":
        return median(x, axis, out, keepdims=keepdims)
    return nanquantile(x, 0.5, axis, out, keepdims=keepdims)


def _between_counted(ordered, last, shares, method):
    """Return the quantiles of sorted lines, each up to its place `last`; see `_between`."""
    if isinstance(shares, list):
        return stack([_between_counted(ordered, last, one, method) for one in shares])
    place = _place(last + 1, shares, method, fn)
    ends = (astype(one(place), int64) for one in (fn.floor, fn.ceil))
    low, high = (take_along_axis(ordered, one, -1) for one in ends)
    weight = astype(_weight(place, method), float64 if ordered.dtype == float64 else float32)
    between = fn.where(fn.equal(weight, 0), low, _cut(low, high, weight))
    between = fn.where(fn.equal(weight, 1), high, between)
    return reshape(between, ordered.shape[:-1])


def _weight(place, method):
    """Return how far the quantile lies between the elements below and above `place`: 0 to 1."""
    low = fn.floor(place)
    if method == "lower":
        return place * 0
    if method == "higher":
        return fn.subtract(fn.ceil(place), low)
    if method == "midpoint":
        return fn.subtract(fn.ceil(place), low) * 0.5
    return fn.subtract(fn.round(place) if method == "nearest" else place, low)


@spellings(dim="axis", keepdim="keepdims", interpolation="method")
def nanquantile(
    x, /, q, axis=None, out=None, overwrite_input=False, method="linear", keepdims=False, *,
    weights=None,
):  # fmt: skip
    """Return :func:`quantile` over `axis` of the elements that are not NaN, or NaN if all are.

    >>> import gputensor as gt
    >>> nanquantile(gt.asarray([1.0, float("nan"), 3.0], device="host"), 0.5).item()
    2.0
    """
    if weights is not None:
        found = _with_weights(x, q, axis, weights, method, keepdims, "nanquantile")
        return _into(out, found, "nanquantile")
    if tensor_argument(x, "nanquantile").dtype.kind in "iucb":
        found = _quantile(x, q, axis, method, keepdims, "nanquantile")
        return _into(out, found, "nanquantile")
    _check_method(method, "nanquantile")
    q = _shares(q, "nanquantile")
    lines, kept_shape = _lines(x, axis, "nanquantile")
    ordered = sort(lines)
    last = fn.sum(fn.logical_not(fn.isnan(lines)), -1, keepdims=True) - 1
    last = astype(fn.maximum(last, 0), float64)
    result = _between_counted(ordered, last, q, method)
    result = _with_axes(result, lines, kept_shape) if keepdims else result
    return _into(out, astype(result, x.dtype, copy=False), "nanquantile")


def nanpercentile(
    x, q, /, axis=None, out=None, overwrite_input=False, method="linear", keepdims=False, *,
    weights=None,
):  # fmt: skip
    """Return :func:`nanquantile`, with `q` in percent.

    >>> import gputensor as gt
    >>> nanpercentile(gt.asarray([1.0, float("nan"), 3.0], device="host"), 50).item()
    2.0
    """
    shares = _shares(q, "nanpercentile")
    options = {"method": method, "keepdims": keepdims, "weights": weights}
    return nanquantile(x, shares, axis, out, **options)
