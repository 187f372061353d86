"""Functions of the array API that are composed of several kernels instead of having their own.

None is in the inner loop of any program that we know. Bool and integer tensors become float32 first
(except in signbit); one of two arguments may be a number.
"""

import functools
import math
from numbers import Number

import numpy as np

from gputensor._arrays.dtypes import float32, iinfo, int16, int32, int64
from gputensor._arrays.promotion import result_type
from gputensor.errors import Described, argument_error
from gputensor.tensor.core import Tensor, tensor_argument
from gputensor.tensor.functions import (
    abs,
    bitwise_and,
    bitwise_or,
    equal,
    exp,
    less,
    log1p,
    logical_or,
    maximum,
    minimum,
    numbers_too,
    sqrt,
    where,
)
from gputensor.tensor.interop import astype, reinterpreted
from gputensor.tensor.manipulation import full
from gputensor.tensor.manipulation.axes import broadcast_shapes

__all__ = ["copysign", "hypot", "logaddexp", "signbit"]


def rounded_once(function):
    """Decorate a composed function: if its result is a small float, compute it in float32.

    Otherwise each step would round to 16 bits, and a difference of steps can lose all of them.
    """

    @functools.wraps(function)
    def compute(*values, **options):
        given = [one for one in (*values, *options.values()) if type(one) is Tensor]
        kind = result_type(*given) if given else None
        if kind is None or kind.itemsize > 2 or kind.kind in "iub":
            return function(*values, **options)
        wide = [_wide(one) for one in values]
        return astype(function(*wide, **{k: _wide(v) for k, v in options.items()}), kind)

    return compute


def _wide(value):
    """Return a tensor of small floats as float32, and anything else unchanged."""
    is_small = type(value) is Tensor and value.dtype.itemsize < 4 and value.dtype.kind not in "iub"
    return astype(value, float32) if is_small else value


def _floating(x1, x2, name):
    """Return both as tensors of their common dtype, or of float32 for bool and integers."""
    first = tensor_argument(x1 if type(x1) is Tensor else x2, name)
    for x in (x1, x2):
        if type(x) is not Tensor and not isinstance(x, (Number, np.generic)):
            raise argument_error(TypeError, f"{name}: argument", x, "a Tensor or a number")
    dtype = result_type(x1, x2)
    if dtype.kind in "iub":
        dtype = float32
    both = [
        astype(x, dtype, copy=False)
        if type(x) is Tensor
        else full((), x, dtype=dtype, device=first.device)
        for x in (x1, x2)
    ]
    try:
        broadcast_shapes(*(x.shape for x in both))
    except ValueError:
        got = Described(f"shapes {both[0].shape} and {both[1].shape}")
        raise argument_error(ValueError, name, got, "extents that are equal or 1") from None
    return both


# Size in bytes of a float -> the integer dtype of its bits. Signs are read from the bits, because
# kernels drop the sign of NaN.
_BITS = {2: int16, 4: int32, 8: int64}


def _bits(x, name):
    if x.dtype.kind == "c" or x.dtype.itemsize not in _BITS:
        rule = "a real dtype of 16 bits or more"
        raise argument_error(TypeError, f"{name}: dtype", Described(x.dtype), rule)
    return reinterpreted(x, _BITS[x.dtype.itemsize])


@numbers_too
def signbit(x, /):
    """Return where the sign bit of real `x` is set, including that of -0.0 and NaN.

    >>> import gputensor as gt
    >>> signbit(gt.asarray([-1.5, -0.0, 0.0], device="host")).numpy()
    array([ True,  True, False])
    """
    is_whole = tensor_argument(x, "signbit").dtype.kind in "iub"
    return less(x if is_whole else _bits(x, "signbit"), 0)


@numbers_too
def copysign(x1, x2, /):
    """Return the magnitude of x1 with the sign of x2, as determined by :func:`signbit`.

    >>> import gputensor as gt
    >>> x, y = gt.asarray([1.0, 2.0], device="host"), gt.asarray([-0.0, 3.0], device="host")
    >>> copysign(x, y).numpy()
    array([-1.,  2.], dtype=float32)
    """
    size, _ = _floating(x1, x2, "copysign")
    bits = _bits(size, "copysign")
    if type(x2) is Tensor:
        minus = signbit(x2)  # before a conversion, which could lose the sign of NaN
    else:
        minus = full((), math.copysign(1.0, x2) < 0, device=size.device)
    lowest = iinfo(bits.dtype).min
    signed = where(minus, bitwise_or(bits, lowest), bitwise_and(bits, ~lowest))
    return reinterpreted(signed, size.dtype)


@numbers_too
@rounded_once
def hypot(x1, x2, /):
    """Return sqrt(x1**2 + x2**2) without intermediate overflow.

    >>> import gputensor as gt
    >>> hypot(gt.asarray([3.0, 0.0], device="host"), gt.asarray([4.0, 0.0], device="host")).numpy()
    array([5., 0.], dtype=float32)
    """
    x1, x2 = _floating(x1, x2, "hypot")
    a, b = abs(x1), abs(x2)
    large, small = maximum(a, b), minimum(a, b)
    ratio = where(equal(large, small), large * 0 + 1, small / large)
    size = large * sqrt(1 + ratio * ratio)
    size = where(equal(large, 0), large, size)
    return where(logical_or(equal(a, float("inf")), equal(b, float("inf"))), float("inf"), size)


@numbers_too
@rounded_once
def logaddexp(x1, x2, /):
    """Return log(exp(x1) + exp(x2)) without intermediate overflow.

    >>> import gputensor as gt
    >>> x = gt.asarray([-1000.0, 1000.0], device="host")
    >>> logaddexp(x, -x).numpy()
    array([1000., 1000.], dtype=float32)
    """
    large, distance = log_distance(x1, x2, "logaddexp")
    return large + log1p(exp(distance))


def log_distance(x1, x2, name):
    """Return the larger of both, and the other one minus it, which is at most 0.

    >>> import gputensor as gt
    >>> x = gt.asarray([1.0, 3.0], device="host")
    >>> [one.tolist() for one in log_distance(x, 2.0, "logaddexp")]
    [[2.0, 3.0], [-1.0, -1.0]]
    """
    x1, x2 = _floating(x1, x2, name)
    large, small = maximum(x1, x2), minimum(x1, x2)
    # The difference of equal infinities would be NaN.
    distance = where(equal(large, small), large * 0, small - large)
    return large, where(equal(distance, distance), distance, 0)
