"""Statistics composed of reductions: ranges, reductions that ignore NaN, means, covariances."""

import math

from gputensor._arrays.dtypes import float32, float64
from gputensor._arrays.promotion import result_type
from gputensor.errors import Described, argument_error, int_argument
from gputensor.tensor import functions as fn
from gputensor.tensor.core import axis_argument, spellings, tensor_argument
from gputensor.tensor.interop import astype
from gputensor.tensor.interop.arrays import beside
from gputensor.tensor.manipulation import (
    broadcast_to,
    expand_dims,
    full_like,
    moveaxis,
    permute_dims,
    reshape,
)
from gputensor.tensor.manipulation.diagonals import diagonal
from gputensor.tensor.manipulation.joining import concat
from gputensor.tensor.products import matmul

__all__ = [
    "average", "corrcoef", "cov", "nanargmax", "nanargmin", "nanmax", "nanmean",
    "nanmin", "nanprod", "nanstd", "nansum", "nanvar", "ptp",
]  # fmt: skip


def ptp(x, /, axis=None, out=None, keepdims=False):
    """Return the greatest minus the least element over `axis`.

    >>> import gputensor as gt
    >>> ptp(gt.asarray([3, 1, 7], device="host")).item()
    6
    """
    largest = fn.max(tensor_argument(x, "ptp"), axis, keepdims=keepdims)
    return fn.subtract(largest, fn.min(x, axis, keepdims=keepdims), out=out)


def _may_be_nan(x, name):
    return tensor_argument(x, name).dtype.kind in "fcV"


def _filled(x, value, name):
    """Return `x` with NaN replaced by a number."""
    return fn.where(fn.isnan(x), value, x) if _may_be_nan(x, name) else x


def _selected(x, where):
    """Return floats with NaN where a mask is false."""
    return x if where is None or where is True else fn.where(where, x, math.nan)


@spellings(dim="axis", keepdim="keepdims")
def nansum(x, /, axis=None, dtype=None, out=None, keepdims=False, initial=None, where=None):
    """Return the sum over `axis`, ignoring NaN; arguments as in :func:`sum`.

    >>> import gputensor as gt
    >>> nansum(gt.asarray([1.0, float("nan")], device="host")).item()
    1.0
    """
    x = _filled(x, 0, "nansum")
    return fn.sum(x, axis, dtype, out, keepdims, initial=initial, where=where)


def nanprod(x, /, axis=None, dtype=None, out=None, keepdims=False, initial=None, where=None):
    """Return the product over `axis`, ignoring NaN; arguments as in :func:`sum`.

    >>> import gputensor as gt
    >>> nanprod(gt.asarray([2.0, float("nan")], device="host")).item()
    2.0
    """
    x = _filled(x, 1, "nanprod")
    return fn.prod(x, axis, dtype, out, keepdims, initial=initial, where=where)


def _nan_extreme(reduce, name, x, axis, out, keepdims, *, initial, where):
    if not _may_be_nan(x, name):
        return reduce(x, axis, out, keepdims, initial=initial, where=where)
    worst = -math.inf if reduce is fn.max else math.inf
    x = _selected(x, where)
    if initial is not None:
        initial = worst if initial != initial else initial
        return reduce(_filled(x, worst, name), axis, out, keepdims, initial=initial)
    best = reduce(_filled(x, worst, name), axis, keepdims=keepdims)
    is_all = fn.all(fn.isnan(x), axis, keepdims=keepdims)
    return fn.where(is_all, math.nan, best, out=out)


def nanmax(x, /, axis=None, out=None, keepdims=False, initial=None, where=None):
    """Return the greatest element over `axis`, ignoring NaN; NaN if all elements are.

    >>> import gputensor as gt
    >>> nanmax(gt.asarray([2.0, float("nan")], device="host")).item()
    2.0
    """
    selected = {"initial": initial, "where": where}
    return _nan_extreme(fn.max, "nanmax", x, axis, out, keepdims, **selected)


def nanmin(x, /, axis=None, out=None, keepdims=False, initial=None, where=None):
    """Return the least element over `axis`, ignoring NaN; NaN if all elements are.

    >>> import gputensor as gt
    >>> nanmin(gt.asarray([2.0, float("nan")], device="host")).item()
    2.0
    """
    selected = {"initial": initial, "where": where}
    return _nan_extreme(fn.min, "nanmin", x, axis, out, keepdims, **selected)


def nanargmax(x, /, axis=None, out=None, *, keepdims=False):
    """Return the index of the greatest element along `axis`, ignoring NaN.

    If all elements of a slice are NaN, its index is 0. NumPy raises then, but here that would have
    to wait for the device.

    >>> import gputensor as gt
    >>> nanargmax(gt.asarray([float("nan"), 2.0], device="host")).item()
    1
    """
    return fn.argmax(_filled(x, -math.inf, "nanargmax"), axis, out, keepdims=keepdims)


def nanargmin(x, /, axis=None, out=None, *, keepdims=False):
    """Return the index of the least element along `axis`, ignoring NaN; see :func:`nanargmax`.

    >>> import gputensor as gt
    >>> nanargmin(gt.asarray([float("nan"), 2.0], device="host")).item()
    1
    """
    return fn.argmin(_filled(x, math.inf, "nanargmin"), axis, out, keepdims=keepdims)


@spellings(dim="axis", keepdim="keepdims")
def nanmean(x, /, axis=None, dtype=None, out=None, keepdims=False, *, where=None):
    """Return the mean over `axis`, ignoring NaN; NaN if all elements are.

    >>> import gputensor as gt
    >>> nanmean(gt.asarray([1.0, float("nan"), 3.0], device="host")).item()
    2.0
    """
    if _may_be_nan(x, "nanmean"):
        x = _selected(x, where)
        where = fn.logical_not(fn.isnan(x))
    return fn.mean(x, axis, dtype, out, keepdims, where=where)


def _wide(dtype):
    """Return the dtype in which sums of `dtype` neither overflow nor lose small terms."""
    return float32 if dtype.kind in "fV" and dtype.itemsize < 4 else dtype


def _nan_variance(x, axis, ddof, keepdims):
    """Return the variance without NaN, in the dtype that it is computed in."""
    x = astype(x, _wide(x.dtype), copy=False)
    is_there = fn.logical_not(fn.isnan(x))
    distance = fn.abs(fn.subtract(x, fn.mean(x, axis, keepdims=True, where=is_there)))
    total = fn.sum(fn.where(is_there, fn.square(distance), 0), axis, keepdims=keepdims)
    count = fn.sum(is_there, axis, keepdims=keepdims) - ddof
    return fn.where(fn.less_equal(count, 0), math.nan, fn.divide(total, count))


def _narrowed(result, dtype, out):
    """Return a real result in the dtype of the argument, or written to `out`."""
    if out is not None:
        return fn.positive(result, out=out)
    return astype(result, dtype, copy=False) if dtype.kind != "c" else result


def nanvar(x, /, axis=None, dtype=None, out=None, ddof=0, keepdims=False, *, where=None):
    """Return the variance over `axis`, ignoring NaN; arguments as in :func:`var`.

    >>> import gputensor as gt
    >>> nanvar(gt.asarray([1.0, float("nan"), 3.0], device="host")).item()
    1.0
    """
    if not _may_be_nan(x, "nanvar"):
        return fn.var(x, axis, dtype, out, ddof, keepdims, where=where)
    x = _selected(x if dtype is None else astype(x, dtype, copy=False), where)
    return _narrowed(_nan_variance(x, axis, ddof, keepdims), x.dtype, out)


def nanstd(x, /, axis=None, dtype=None, out=None, ddof=0, keepdims=False, *, where=None):
    """Return the standard deviation over `axis`, ignoring NaN; arguments as in :func:`std`.

    >>> import gputensor as gt
    >>> nanstd(gt.asarray([1.0, float("nan"), 3.0], device="host")).item()
    1.0
    """
    if not _may_be_nan(x, "nanstd"):
        return fn.std(x, axis, dtype, out, ddof, keepdims, where=where)
    x = _selected(x if dtype is None else astype(x, dtype, copy=False), where)
    return _narrowed(fn.sqrt(_nan_variance(x, axis, ddof, keepdims)), x.dtype, out)


def _along(weights, x, axis):
    """Return weights along some axes of `x` as a tensor that broadcasts to its shape."""
    axes = axis if isinstance(axis, (tuple, list)) else () if axis is None else (axis,)
    if not axes or weights.ndim != len(axes):
        got = Described(f"shape {weights.shape}")
        rule = f"shape {x.shape}, or one dimension and an axis"
        raise argument_error(ValueError, "average: weights", got, rule)
    axes = [axis_argument(one, x.ndim, "average") for one in axes]
    extents = tuple(x.shape[one] for one in axes)
    if weights.shape != extents:
        got = Described(f"{weights.shape[0]} weights" if len(axes) == 1 else weights.shape)
        rule = str(extents[0] if len(axes) == 1 else extents)
        raise argument_error(ValueError, "average: weights", got, rule)
    order = sorted(range(len(axes)), key=axes.__getitem__)
    weights = permute_dims(weights, order)
    return reshape(weights, [n if i in axes else 1 for i, n in enumerate(x.shape)])


def average(x, /, axis=None, weights=None, returned=False, *, keepdims=False):
    """Return the mean over `axis`, weighted by `weights`.

    Parameters
    ----------
    weights : Tensor or list, optional
        With the shape of `x`, or the extents of `x` along `axis`, one or several.
    returned : bool
        Return a pair of the mean and the sum of the weights.

    >>> import gputensor as gt
    >>> x, w = gt.asarray([1.0, 3.0], device="host"), gt.asarray([3.0, 1.0], device="host")
    >>> average(x, weights=w).item()
    1.5
    """
    tensor_argument(x, "average")
    if weights is None:
        result = fn.mean(x, axis, keepdims=keepdims)
        if not returned:
            return result
        count = x.size // max(result.size, 1)
        return result, full_like(result, count)
    weights = beside(weights, x) if isinstance(weights, (list, tuple)) else weights
    if tensor_argument(weights, "average").shape != x.shape:
        weights = _along(weights, x, axis)
    dtype = result_type(x.dtype, weights.dtype)
    if dtype.kind in "biu":  # products of integers could overflow
        x, weights = astype(x, float64), astype(weights, float64)
        result, total = average(x, axis, weights, True, keepdims=keepdims)
        result, total = astype(result, float32), astype(total, float32)
        return (result, total) if returned else result
    x, weights = astype(x, _wide(x.dtype), copy=False), astype(weights, _wide(dtype), copy=False)
    total = fn.sum(weights, axis, keepdims=keepdims)
    result = fn.divide(fn.sum(fn.multiply(x, weights), axis, keepdims=keepdims), total)
    if _wide(dtype) != dtype:
        result, total = astype(result, dtype), astype(total, dtype)
    return (result, broadcast_to(total, result.shape)) if returned else result


@spellings(correction="ddof")
def cov(x, y=None, rowvar=True, bias=False, ddof=None, fweights=None, aweights=None):
    """Return the covariance matrix of variables, which are rows, or columns without `rowvar`.

    Parameters
    ----------
    x : Tensor
        A vector, which is one variable, or a matrix of variables.
    y : Tensor, optional
        Further variables.
    bias, ddof
        The divisor is the number of observations minus `ddof`; default: 0 with `bias`, otherwise 1.
    fweights, aweights : Tensor, optional
        How often each observation was made, and its weight.

    >>> import gputensor as gt
    >>> cov(gt.asarray([[1.0, 2.0], [3.0, 5.0]], device="host")).tolist()
    [[0.5, 1.0], [1.0, 2.0]]
    """
    ddof = (0 if bias else 1) if ddof is None else int_argument("cov: ddof", ddof)
    result, dtype = _covariance(x, y, rowvar, ddof, (fweights, aweights))
    return astype(result, dtype, copy=False)


def _observed(fweights, aweights, rows, ddof):
    """Return the weights of observations, or None, and the divisor of a covariance."""
    given = [one for one in (fweights, aweights) if one is not None]
    for one in given:
        if tensor_argument(one, "cov").shape != rows.shape[1:]:
            got = Described(f"shape {one.shape}")
            raise argument_error(ValueError, "cov: weights", got, f"shape {rows.shape[1:]}")
    if not given:
        return None, rows.shape[1] - ddof
    given = [astype(one, float64) for one in given]
    weights = given[0] if len(given) == 1 else fn.multiply(*given)
    total = fn.sum(weights)
    if ddof == 0 or aweights is None:
        return weights, fn.subtract(total, ddof)
    squares = fn.sum(fn.multiply(weights, given[-1]))
    return weights, fn.subtract(total, fn.divide(fn.multiply(squares, ddof), total))


def _covariance(x, y, rowvar, ddof, weights=(None, None)):
    """Return the covariance in the dtype that it is computed in, and the result's dtype."""
    variables = [_variables(one, rowvar) for one in ((x,) if y is None else (x, y))]
    rows = variables[0] if len(variables) == 1 else concat(variables)
    dtype = rows.dtype
    rows = astype(rows, _wide(dtype), copy=False)
    weights, count = _observed(*weights, rows, ddof)
    centre = average(rows, 1, weights)
    centred = fn.subtract(rows, reshape(centre, (-1, 1)))
    weighted = centred if weights is None else fn.multiply(centred, weights)
    columns = moveaxis(centred, 0, 1)
    # A copy of real columns would hide that the product is symmetric.
    result = matmul(weighted, fn.conj(columns) if dtype.kind == "c" else columns)
    result = fn.divide(result, fn.maximum(count, 0) if weights is not None else max(count, 0.0))
    return (reshape(result, ()) if result.size == 1 else result), dtype


def _variables(x, rowvar):
    if tensor_argument(x, "cov").ndim > 2:
        raise argument_error(ValueError, "cov: x", Described(f"{x.ndim} dimensions"), "at most 2")
    x = astype(x, result_type(x.dtype, float64), copy=False) if x.dtype.kind in "iub" else x
    if x.ndim < 2:
        return reshape(x, (1, -1))
    return x if rowvar else moveaxis(x, 0, 1)


def corrcoef(x, y=None, rowvar=True):
    """Return the correlation coefficients of variables; arguments as in :func:`cov`.

    >>> import gputensor as gt
    >>> corrcoef(gt.asarray([[1.0, 2.0], [3.0, 5.0]], device="host")).tolist()
    [[1.0, 1.0], [1.0, 1.0]]
    """
    matrix, dtype = _covariance(x, y, rowvar, 1)
    if matrix.ndim == 0:
        return astype(fn.divide(matrix, matrix), dtype, copy=False)
    deviation = fn.sqrt(fn.real(diagonal(matrix)))
    result = fn.divide(fn.divide(matrix, expand_dims(deviation, 1)), deviation)
    return result if dtype.kind == "c" else astype(fn.clip(result, -1, 1), dtype, copy=False)
