"""Named short formulas of NumPy and PyTorch: blends, logits, and pairs of statistics."""

import math

from gputensor._arrays.promotion import result_type
from gputensor.errors import (
    Described,
    argument_error,
    float_argument,
    int_argument,
    list_argument,
)
from gputensor.tensor import functions as fn
from gputensor.tensor.core import axis_argument, spellings, tensor_argument
from gputensor.tensor.interop.arrays import tensors
from gputensor.tensor.manipulation import reshape
from gputensor.tensor.manipulation.arithmetic import fmod
from gputensor.tensor.manipulation.composed import log_distance, rounded_once

__all__ = [
    "addcdiv", "addcmul", "div", "frac", "lerp", "logaddexp2", "logit", "narrow", "numel",
    "std_mean", "unflatten", "var_mean", "xlogy",
]  # fmt: skip

_LOG2 = 0.6931471805599453


def div(x1, x2, /, out=None, *, rounding_mode=None):
    """Return x1 divided by x2, with PyTorch's rounding: None, "floor", or "trunc" towards zero.

    >>> import gputensor as gt
    >>> div(gt.asarray([-7, 7], device="host"), 2, rounding_mode="trunc").tolist()
    [-3, 3]
    """
    if rounding_mode is None:
        return fn.divide(x1, x2, out)
    if rounding_mode == "floor":
        return fn.floor_divide(x1, x2, out)
    if rounding_mode != "trunc":
        rule = "None, 'floor' or 'trunc'"
        raise argument_error(ValueError, "div: rounding_mode", rounding_mode, rule)
    if result_type(x1, x2).kind in "biu":
        return fn.floor_divide(fn.subtract(x1, fmod(x1, x2)), x2, out)
    return fn.trunc(fn.divide(x1, x2), out)


@rounded_once
def lerp(x, end, weight, /):
    """Return ``x + weight * (end - x)``.

    >>> import gputensor as gt
    >>> x = gt.asarray([0.0, 4.0], device="host")
    >>> lerp(x, x + 2, 0.5).tolist()
    [1.0, 5.0]
    """
    return fn.add(x, fn.multiply(fn.subtract(end, tensor_argument(x, "lerp")), weight))


@rounded_once
def addcmul(x, first, second, /, *, value=1):
    """Return ``x + value * first * second``.

    >>> import gputensor as gt
    >>> x = gt.asarray([1.0], device="host")
    >>> addcmul(x, x + 1, x + 2, value=2).tolist()
    [13.0]
    """
    x, first, second = tensors((x, first, second))
    return fn.add(x, fn.multiply(fn.multiply(first, second), value))


@rounded_once
def addcdiv(x, first, second, /, *, value=1):
    """Return ``x + value * first / second``.

    >>> import gputensor as gt
    >>> x = gt.asarray([1.0], device="host")
    >>> addcdiv(x, x + 5, x + 1, value=2).tolist()
    [7.0]
    """
    x, first, second = tensors((x, first, second))
    return fn.add(x, fn.multiply(fn.divide(first, second), value))


def frac(x, /):
    """Return the fractional part, with the sign of x.

    >>> import gputensor as gt
    >>> frac(gt.asarray([1.5, -2.25], device="host")).tolist()
    [0.5, -0.25]
    """
    return fn.subtract(tensor_argument(x, "frac"), fn.trunc(x))


@rounded_once
def xlogy(x, y, /):
    """Return ``x * log(y)``, and 0 where x is 0 and y is not NaN.

    >>> import gputensor as gt
    >>> xlogy(gt.asarray([0.0, 2.0], device="host"), gt.asarray([0.0, 1.0], device="host")).tolist()
    [0.0, 0.0]
    """
    x, y = tensors((x, y))
    product = fn.multiply(x, fn.log(y))
    is_zero = fn.logical_and(fn.equal(x, 0), fn.logical_not(fn.isnan(y)))
    return fn.where(is_zero, 0.0, product)


@rounded_once
def logit(x, /, eps=None):
    """Return ``log(x / (1 - x))``; if `eps` is given, x is first clipped to `eps` and ``1 - eps``.

    >>> import gputensor as gt
    >>> logit(gt.asarray([0.5], device="host")).tolist()
    [0.0]
    """
    x = tensor_argument(x, "logit")
    if eps is not None:
        eps = float_argument("logit: eps", eps)
        x = fn.clip(x, eps, 1 - eps)
    return fn.log(fn.divide(x, fn.subtract(1, x)))


@fn.numbers_too
@rounded_once
def logaddexp2(x1, x2, /):
    """Return ``log2(2**x1 + 2**x2)`` without overflow.

    >>> import gputensor as gt
    >>> logaddexp2(gt.asarray([3.0], device="host"), gt.asarray([3.0], device="host")).tolist()
    [4.0]
    """
    large, distance = log_distance(x1, x2, "logaddexp2")
    # The factors are exact enough because the logarithm is at most 1.
    return large + fn.log1p(fn.exp(distance * _LOG2)) / _LOG2


@spellings(dim="axis", keepdim="keepdims")
def var_mean(x, /, axis=None, *, correction=1, keepdims=False, unbiased=True):
    """Return the variance and the mean over `axis`, with PyTorch's correction of 1.

    With ``unbiased=False`` the correction is 0.

    >>> import gputensor as gt
    >>> [one.item() for one in var_mean(gt.asarray([1.0, 3.0], device="host"))]
    [2.0, 2.0]
    """
    variance = fn.var(x, axis, correction=correction if unbiased else 0, keepdims=keepdims)
    return variance, fn.mean(x, axis, keepdims=keepdims)


@spellings(dim="axis", keepdim="keepdims")
def std_mean(x, /, axis=None, *, correction=1, keepdims=False, unbiased=True):
    """Return the standard deviation and the mean over `axis`, with PyTorch's correction of 1.

    With ``unbiased=False`` the correction is 0.

    >>> import gputensor as gt
    >>> [one.item() for one in std_mean(gt.asarray([1.0, 3.0], device="host"), correction=0)]
    [1.0, 2.0]
    """
    deviation = fn.std(x, axis, correction=correction if unbiased else 0, keepdims=keepdims)
    return deviation, fn.mean(x, axis, keepdims=keepdims)


def numel(x, /):
    """Return the number of elements.

    >>> import gputensor as gt
    >>> numel(gt.ones((2, 3), device="host"))
    6
    """
    return tensor_argument(x, "numel").size


@spellings(dim="axis")
def narrow(x, /, axis, start, length):
    """Return a view of `length` slices along `axis`, beginning at `start`.

    >>> import gputensor as gt
    >>> narrow(gt.arange(5, device="host"), 0, 1, 3).tolist()
    [1, 2, 3]
    """
    axis = axis_argument(axis, tensor_argument(x, "narrow").ndim, "narrow")
    extent = x.shape[axis]
    start, length = int_argument("narrow: start", start), int_argument("narrow: length", length)
    start = start + extent if start < 0 else start
    if not 0 <= start <= start + length <= extent:
        got = Described(f"{start} and {length}")
        rule = f"a range within the extent {extent}"
        raise argument_error(ValueError, "narrow: start, length", got, rule)
    return x[(slice(None),) * axis + (slice(start, start + length),)]


@spellings(dim="axis")
def unflatten(x, /, axis, sizes):
    """Return `x` with one axis split into several; one of their extents may be -1.

    >>> import gputensor as gt
    >>> unflatten(gt.ones((2, 6), device="host"), 1, (3, -1)).shape
    (2, 3, 2)
    """
    axis = axis_argument(axis, tensor_argument(x, "unflatten").ndim, "unflatten")
    sizes = [int_argument("unflatten: sizes", n) for n in list_argument("unflatten: sizes", sizes)]
    extent = x.shape[axis]
    if sizes.count(-1) == 1:
        known = -math.prod(sizes)
        sizes[sizes.index(-1)] = extent // known if known else 0
    if math.prod(sizes) != extent or min(sizes, default=0) < 0:
        rule = f"extents whose product is {extent}"
        raise argument_error(ValueError, "unflatten: sizes", sizes, rule)
    return reshape(x, (*x.shape[:axis], *sizes, *x.shape[axis + 1 :]))
