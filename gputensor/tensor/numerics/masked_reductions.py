"""Reductions of the elements that a mask selects, and with an initial value.

The reductions in `functions` call these for their ``where=`` and ``initial=``.
"""

import math

from gputensor._arrays.dtypes import float32, float64
from gputensor.errors import Described, argument_error, float_argument
from gputensor.tensor import functions as fn
from gputensor.tensor.core import Tensor, axis_argument, out_argument, tensor_argument
from gputensor.tensor.interop import asarray, astype
from gputensor.tensor.manipulation import broadcast_to, full
from gputensor.tensor.numerics.complex_order import extreme as complex_extreme  # noqa: F401
from gputensor.tensor.numerics.complex_order import position as complex_position  # noqa: F401
from gputensor.tensor.numerics.torch_results import (
    max_with_index,
    min_with_index,
    unbiased_std,
    unbiased_var,
)

__all__ = ["extreme", "extreme_with_index", "mean", "total", "truth", "unbiased", "variance"]


def _mask(x, where, name):
    """Return `where` in the shape of `x`; None if it selects every element."""
    tensor_argument(x, name)
    if where is None or where is True:
        return None
    if where is False:
        return full(x.shape, False, device=x.device)
    if isinstance(where, (list, tuple)):
        where = asarray(where, device=x.device)
    if type(where) is not Tensor or where.dtype.kind != "b":
        got = where.dtype.name if type(where) is Tensor else type(where).__name__
        raise argument_error(TypeError, f"{name}: where", Described(got), "a Tensor of bool")
    try:
        return broadcast_to(where, x.shape)
    except ValueError:
        got = Described(f"shape {where.shape}")
        rule = f"a shape that broadcasts to {x.shape}"
        raise argument_error(ValueError, f"{name}: where", got, rule) from None


def _into(out, result, name):
    if out is None:
        return result
    out_argument(out, result, result.shape, result.dtype, name)[...] = result
    return out


def _start(x, initial):
    """`initial` in the kind of `x`, as NumPy converts it."""
    if isinstance(initial, Tensor):
        return astype(initial, x.dtype, copy=False)
    kind = x.dtype.kind
    if kind in "biuf":
        float_argument("initial", initial)
    return bool(initial) if kind == "b" else int(initial) if kind in "iu" else initial


def total(name, x, axis, dtype, out, keepdims, *, initial=None, where=None):
    """Return the sum or the product of the selected elements and of `initial`.

    >>> import gputensor as gt
    >>> x = gt.asarray([1, 2, 3], device="host")
    >>> gt.sum(x, where=x > 1, initial=10).item()
    15
    """
    reduce, join, none = (fn.sum, fn.add, 0) if name == "sum" else (fn.prod, fn.multiply, 1)
    mask = _mask(x, where, name)
    result = reduce(x if mask is None else fn.where(mask, x, none), axis, dtype, keepdims=keepdims)
    if initial is not None:
        result = join(result, _start(result, initial))
    return _into(out, result, name)


def extreme(name, x, axis, out, keepdims, *, initial=None, where=None):
    """Return the greatest or least of the selected elements and of `initial`.

    >>> import gputensor as gt
    >>> gt.max(gt.zeros((2, 0), device="host"), axis=1, initial=-1.0).tolist()
    [-1.0, -1.0]
    """
    reduce, join = (fn.max, fn.maximum) if "max" in name else (fn.min, fn.minimum)
    mask = _mask(x, where, name)
    if initial is None:
        if mask is not None:
            got = Described("where without initial")
            rule = "a value for slices without selected elements"
            raise argument_error(ValueError, f"{name}: initial", got, rule)
        return reduce(x, axis, out, keepdims)
    initial = _start(x, initial)
    if mask is not None:
        x = fn.where(mask, x, initial)
    if x.size:
        return _into(out, join(reduce(x, axis, keepdims=keepdims), initial), name)
    shape = fn.any(x, axis, keepdims=keepdims).shape
    return _into(out, full(shape, initial, x.dtype, device=x.device), name)


def extreme_with_index(name, x, axis, keepdims):
    """Return what PyTorch returns for ``x.max(axis, keepdims)``.

    >>> import gputensor as gt
    >>> [one.tolist() for one in gt.max(gt.asarray([[3, 1, 3]], device="host"), 1, True)]
    [[[3]], [[0]]]
    """
    return (max_with_index if name == "max" else min_with_index)(x, axis, keepdims)


def unbiased(name, x, axis, is_unbiased, keepdims):
    """Return what PyTorch returns for ``x.std(axis, is_unbiased, keepdims)``.

    >>> import gputensor as gt
    >>> gt.std(gt.asarray([1.0, 5.0, 3.0], device="host"), 0, True).item()
    2.0
    """
    reduce = unbiased_var if name == "var" else unbiased_std
    return reduce(x, axis, is_unbiased, keepdims=keepdims is not None and keepdims)


def truth(name, x, axis, out, keepdims, *, where=None):
    """Return whether any, or every, selected element is nonzero.

    >>> import gputensor as gt
    >>> x = gt.asarray([0, 2], device="host")
    >>> gt.all(x, where=x > 0).item(), gt.any(x, where=x < 1).item()
    (True, False)
    """
    reduce = fn.any if name == "any" else fn.all
    mask = _mask(x, where, name)
    if mask is not None:
        x = fn.logical_and(mask, x) if name == "any" else fn.logical_or(fn.logical_not(mask), x)
    return reduce(x, axis, out, keepdims)


def _count(x, axis, mask, name):
    """Return how many elements are selected, with the axes kept; an int without a mask."""
    axes = range(x.ndim) if axis is None else axis if isinstance(axis, (tuple, list)) else (axis,)
    axes = () if not x.ndim and axis in (0, -1) else axes
    axes = [axis_argument(one, x.ndim, name) for one in axes]
    if mask is not None:
        return fn.sum(mask, axis, keepdims=True)
    return math.prod(x.shape[one] for one in axes)


def _mean(x, axis, mask, wide, name):
    count = _count(x, axis, mask, name)
    chosen = x if mask is None else fn.where(mask, x, 0)
    return fn.divide(fn.sum(chosen, axis, wide, keepdims=True), count)


def _dtypes(x, dtype):
    """Return the dtype to compute in and that of the result."""
    if dtype is not None:
        return dtype, dtype
    if x.dtype.kind not in "fcV":
        return float64, float32
    return (x.dtype if x.dtype.itemsize > 2 else float32), x.dtype


def _without_axes(result, x, axis, keepdims):
    """Return a result, computed with reduced axes kept, with or without them."""
    if keepdims:
        return result
    return result.reshape(fn.any(x, axis).shape)


def mean(name, x, axis, dtype, out, keepdims, *, where=None):
    """Return the mean of the selected elements; NaN if there are none.

    >>> import gputensor as gt
    >>> x = gt.asarray([1.0, 2.0, 6.0], device="host")
    >>> gt.mean(x, where=x > 1).item()
    4.0
    """
    mask = _mask(x, where, name)
    wide, dtype = _dtypes(x, dtype)
    result = astype(_mean(x, axis, mask, wide, name), dtype, copy=False)
    return _into(out, _without_axes(result, x, axis, keepdims), name)


def variance(name, x, axis, dtype, out, keepdims, *, ddof=0, where=None):
    """Return the variance of the selected elements, or its root for `name` std.

    >>> import gputensor as gt
    >>> x = gt.asarray([1.0, 2.0, 6.0], device="host")
    >>> gt.var(x, where=x > 1).item()
    4.0
    """
    mask = _mask(x, where, name)
    wide, dtype = _dtypes(x, dtype)
    middle = _mean(x, axis, mask, wide, name)
    distance = fn.abs(fn.subtract(astype(x, wide, copy=False), middle))
    square = fn.square(distance)
    square = square if mask is None else fn.where(mask, square, 0)
    count = _count(x, axis, mask, name)
    count = max(count - ddof, 0) if isinstance(count, int) else fn.maximum(count - ddof, 0)
    result = fn.divide(fn.sum(square, axis, keepdims=True), count)
    result = fn.sqrt(result) if name == "std" else result
    if x.dtype.kind != "c":  # a complex tensor has a real variance
        result = astype(result, dtype, copy=False)
    return _into(out, _without_axes(result, x, axis, keepdims), name)
