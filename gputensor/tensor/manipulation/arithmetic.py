"""Element-wise functions composed of those of the table of operations.

Each launches a few kernels. `out`, `where` and `dtype` have the same meaning as in the functions of
the table; those that a function lacks are provided by `numbers_too`.
"""

import builtins
import math

import numpy as np

from gputensor._arrays.dtypes import (
    bool_,
    finfo,
    float16,
    float32,
    float64,
    int16,
    int32,
    int64,
    uint64,
)
from gputensor._arrays.promotion import result_type
from gputensor.errors import Described, argument_error, int_argument
from gputensor.tensor.core import Tensor, tensor_argument
from gputensor.tensor.functions import (
    abs,
    add,
    atan2,
    bitwise_and,
    clip,
    divide,
    equal,
    exp,
    floor_divide,
    greater,
    imag,
    isfinite,
    isinf,
    isnan,
    less,
    logical_and,
    logical_or,
    maximum,
    minimum,
    multiply,
    negative,
    not_equal,
    numbers_too,
    positive,
    pow,
    real,
    remainder,
    subtract,
    trunc,
    where,
)
from gputensor.tensor.functions import round as rint
from gputensor.tensor.interop import astype, part_view, reinterpreted
from gputensor.tensor.manipulation import full

__all__ = [
    "angle", "deg2rad", "divmod", "exp2", "fabs", "float_power", "fmax", "fmin", "fmod",
    "heaviside", "iscomplex", "isneginf", "isposinf", "isreal", "ldexp", "modf", "nan_to_num",
    "nextafter", "rad2deg", "round",
]  # fmt: skip


def _real(x, name):
    if tensor_argument(x, name).dtype.kind == "c":
        raise argument_error(TypeError, f"{name}: x", Described(x.dtype.name), "a real dtype")
    return x


@numbers_too
def divmod(x1, x2, /):
    """Return ``(x1 // x2, x1 % x2)``.

    >>> import gputensor as gt
    >>> [part.item() for part in divmod(gt.asarray(7, device="host"), 2)]
    [3, 1]
    """
    return floor_divide(x1, x2), remainder(x1, x2)


@numbers_too
def exp2(x, /, out=None):
    """Return 2 to the power x.

    >>> import gputensor as gt
    >>> exp2(gt.asarray([3, -1], device="host")).tolist()
    [8.0, 0.5]
    """
    if tensor_argument(x, "exp2").dtype.kind != "c":
        return pow(2.0, x, out=out)
    # pow multiplies by the logarithm of 2 as a complex number, which makes NaN of infinite parts.
    parts = multiply(reinterpreted(x.contiguous()[..., None], x.real.dtype), math.log(2))
    scaled = reinterpreted(parts, x.dtype)[..., 0]
    return where(isfinite(x), pow(2.0, x), exp(scaled), out=out)


@numbers_too
def float_power(x1, x2, /):
    """Return x1 to the power x2, computed in float64 or complex128.

    >>> import gputensor as gt
    >>> float_power(gt.asarray([2], device="host"), -1).tolist()
    [0.5]
    """
    tensors = [x for x in (x1, x2) if type(x) is Tensor]
    dtype = result_type(*(tensors or [tensor_argument(x1, "float_power")]), float64)
    x1, x2 = (astype(x, dtype, copy=False) if type(x) is Tensor else x for x in (x1, x2))
    return pow(x1, x2)


@numbers_too
def fmod(x1, x2, /, out=None):
    """Return the remainder of x1 / x2 with the sign of x1, as C does; compare :func:`remainder`.

    >>> import gputensor as gt
    >>> fmod(gt.asarray([7, -7], device="host"), 3).tolist()
    [1, -1]
    """
    if result_type(x1, x2).kind in "iub":
        rest = remainder(x1, x2)
        differs = logical_and(not_equal(rest, 0), not_equal(less(rest, 0), _is_minus(x1)))
        return where(differs, subtract(rest, x2), rest, out=out)
    # For two positive numbers the remainder is exact, and the same by both definitions. The least
    # integer has a magnitude only as a float.
    dtype = result_type(x1, x2)
    if dtype.kind == "c":
        got = Described(dtype.name)
        raise argument_error(TypeError, "fmod: dtype", got, "a real dtype")
    x1, x2 = (astype(x, dtype, copy=False) if type(x) is Tensor else x for x in (x1, x2))
    rest = remainder(_magnitude(x1), _magnitude(x2))
    return where(_is_minus(x1), negative(rest), rest, out=out)


def _magnitude(x):
    return abs(x) if type(x) is Tensor else -x if x < 0 else x


def _is_minus(x):
    return less(x, 0) if type(x) is Tensor else x < 0


@numbers_too
def modf(x, /):
    """Return the fractional and the whole part of x, both with its sign.

    >>> import gputensor as gt
    >>> [part.tolist() for part in modf(gt.asarray([1.5, -2.25], device="host"))]
    [[0.5, -0.25], [1.0, -2.0]]
    """
    if _real(x, "modf").dtype.kind in "iub":
        x = astype(x, float32)
    whole = trunc(x)
    return where(isinf(x), 0.0, subtract(x, whole)), whole


def _by_parts(x, function, out):
    """Return the complex numbers whose parts are a function of those of x, infinities included."""
    result = positive(x)
    for is_imaginary, part in enumerate((real, imag)):
        part_view(result, is_imaginary)[...] = function(part(x))
    return result if out is None else positive(result, out=out)


@numbers_too
def round(x, /, decimals=0, out=None):
    """Return x rounded to `decimals` decimal places; halves go to the even neighbour.

    Negative `decimals` round to tens, hundreds and so on.

    >>> import gputensor as gt
    >>> round(gt.asarray([2.5, 1.26], device="host"), 1).tolist()
    [2.5, 1.2999999523162842]
    """
    if isinstance(decimals, Tensor) and (decimals.ndim or decimals.dtype.kind not in "iu"):
        # NumPy's rint has `out` there.
        decimals, out = 0, decimals
    places = int_argument("round: decimals", decimals)
    kind = tensor_argument(x, "round").dtype.kind
    if kind == "c":
        return _by_parts(x, lambda part: round(part, places), out)
    if builtins.abs(places) > 308:  # more than any dtype has, behind the point or before it
        return positive(x, out=out) if places > 0 else multiply(x, 0, out=out)
    if places == 0 or kind in "iub" and places > 0:
        return rint(x, out=out)
    scale = 10.0 ** builtins.abs(places)
    if kind in "iu":
        if places < -19:
            return multiply(x, 0, out=out)
        scale = 10**-places
        if places == -19 and x.dtype != uint64:  # more than int64 has: ±10**19 or 0, wrapped
            signs = subtract(astype(greater(x, scale // 2), int64), less(x, -scale // 2))
            signs = signs if x.dtype == int64 else multiply(signs, 0)
            result = astype(multiply(signs, scale - 2**64), x.dtype, copy=False)
            return result if out is None else positive(result, out=out)
        wide = x if x.dtype == uint64 else astype(x, int64, copy=False)
        low = floor_divide(wide, scale)
        rest = subtract(wide, multiply(low, scale))
        up = logical_or(
            greater(rest, scale // 2),
            logical_and(equal(rest, scale // 2), equal(bitwise_and(low, 1), 1)),
        )
        result = astype(multiply(add(low, up), scale), x.dtype, copy=False)
        return result if out is None else positive(result, out=out)
    if places > 0:
        return divide(rint(multiply(x, scale)), scale, out=out)
    return multiply(rint(divide(x, scale)), scale, out=out)


def nan_to_num(x, /, copy=True, nan=0.0, posinf=None, neginf=None, out=None):
    """Return x with NaN and infinities replaced by numbers.

    Parameters
    ----------
    copy : bool
        False writes to `x` itself.
    nan, posinf, neginf : float
        The replacement of each; None means the greatest or least finite number of the dtype.

    >>> import gputensor as gt
    >>> nan_to_num(gt.asarray([float("nan"), 1.0], device="host")).tolist()
    [0.0, 1.0]
    """
    kind = tensor_argument(x, "nan_to_num").dtype.kind
    out = x if not copy and out is None else out
    if kind in "iub":
        return astype(x, x.dtype) if out is None else out if out is x else positive(x, out=out)
    if kind == "c":
        return _by_parts(x, lambda part: nan_to_num(part, True, nan, posinf, neginf), out)
    limits = finfo(x.dtype)
    low = limits.min if neginf is None else neginf
    high = limits.max if posinf is None else posinf
    if posinf is None and neginf is None:
        return where(isnan(x), nan, clip(x, low, high), out=out)
    finite = where(equal(x, math.inf), high, where(equal(x, -math.inf), low, x))
    return where(isnan(x), nan, finite, out=out)


def _ignoring_nan(choose, x1, x2, out):
    if type(x1) is not Tensor:
        x1, x2 = x2, x1  # the order does not matter
    if type(x2) is Tensor:
        result = where(isnan(x2), x1, choose(x1, x2))
        return where(isnan(x1), x2, result, out=out)
    if x2 == x2:
        return where(isnan(x1), x2, choose(x1, x2), out=out)
    return positive(astype(x1, result_type(x1, x2), copy=False), out=out)


@numbers_too
def fmax(x1, x2, /, out=None):
    """Return the greater of x1 and x2; if only one is NaN, return the other.

    >>> import gputensor as gt
    >>> fmax(gt.asarray([1.0, float("nan")], device="host"), 0.5).tolist()
    [1.0, 0.5]
    """
    return _ignoring_nan(maximum, x1, x2, out)


@numbers_too
def fmin(x1, x2, /, out=None):
    """Return the lesser of x1 and x2; if only one is NaN, return the other.

    >>> import gputensor as gt
    >>> fmin(gt.asarray([1.0, float("nan")], device="host"), 0.5).tolist()
    [0.5, 0.5]
    """
    return _ignoring_nan(minimum, x1, x2, out)


@numbers_too
def fabs(x, /, out=None):
    """Return the magnitude of real x, as a float even for integers.

    >>> import gputensor as gt
    >>> fabs(gt.asarray([-2], device="host")).tolist()
    [2.0]
    """
    is_whole = _real(x, "fabs").dtype.kind in "iub"
    return abs(astype(x, float32) if is_whole else x, out=out)


@numbers_too
def angle(x, /, deg=False):
    """Return the angle of complex x in radians, or in degrees; real x is 0 or pi.

    >>> import gputensor as gt
    >>> angle(gt.asarray([1 + 1j], device="host"), deg=True).tolist()
    [45.0]
    """
    if tensor_argument(x, "angle").dtype.kind == "c":
        result = atan2(imag(x), real(x))
    else:
        x = astype(x, float32) if x.dtype.kind in "iub" else x
        result = atan2(0.0, x)
    return rad2deg(result) if deg else result


def _floating(x, name):
    return astype(x, float32) if tensor_argument(x, name).dtype.kind in "iub" else x


@numbers_too
def deg2rad(x, /, out=None):
    """Return degrees as radians.

    >>> import gputensor as gt
    >>> deg2rad(gt.asarray([180.0], device="host")).numpy()
    array([3.1415927], dtype=float32)
    """
    return multiply(_floating(x, "deg2rad"), math.pi / 180, out=out)


@numbers_too
def rad2deg(x, /, out=None):
    """Return radians as degrees.

    >>> import gputensor as gt
    >>> rad2deg(gt.asarray([0.0], device="host")).tolist()
    [0.0]
    """
    return multiply(_floating(x, "rad2deg"), 180 / math.pi, out=out)


@numbers_too
def heaviside(x1, x2, /, out=None):
    """Return 0 where x1 < 0, x2 where x1 == 0, 1 where x1 > 0, and NaN where x1 is NaN.

    >>> import gputensor as gt
    >>> heaviside(gt.asarray([-1.0, 0.0, 2.0], device="host"), 0.5).tolist()
    [0.0, 0.5, 1.0]
    """
    x1 = _floating(x1, "heaviside")
    above = where(isnan(x1), x1, astype(greater(x1, 0), x1.dtype))
    return where(equal(x1, 0), x2, above, out=out)


@numbers_too
def ldexp(x1, x2, /, out=None):
    """Return x1 times 2 to the power x2, rounded once if x2 is an integer.

    >>> import gputensor as gt
    >>> ldexp(gt.asarray([1.5], device="host"), 4).tolist()
    [24.0]
    """
    x1 = _floating(x1, "ldexp") if type(x1) is Tensor else x1
    dtype = float64 if type(x1) is Tensor and x1.dtype == float64 else float32
    if isinstance(x2, complex):
        raise argument_error(TypeError, "ldexp: x2", x2, "a real number")
    if type(x2) is Tensor:
        if x2.dtype.kind not in "biu":
            return multiply(x1, pow(2.0, x2), out=out)
        x2 = astype(minimum(x2, 2**20) if x2.dtype == uint64 else x2, int64)
    elif type(x1) is Tensor and x1.dtype == float16:
        dtype = float16  # the results are float16 too
    # The part beyond one power of 2 is applied first: those steps are exact, or decide the result.
    own, has_places = getattr(x1, "dtype", None), type(x2) is Tensor
    first, *more = _exponents(x2, dtype)
    for part in more[::-1]:
        if type(part) is Tensor or part:
            x1 = multiply(x1, _power_of_two(part, dtype))
    result = multiply(x1, _power_of_two(first, dtype), out=out)
    # Those of 16 bits are exact in float32 wherever the last rounding does not lose them.
    is_narrow = has_places and own is not None and own.itemsize == 2 and out is None
    return astype(result, own) if is_narrow else result


def _exponents(exponent, dtype):
    """Return three exponents of normal numbers whose sum is `exponent`, or has the same effect."""
    most = _FORMATS[dtype.itemsize][0]
    parts = []
    for _ in range(3):
        if type(exponent) is Tensor:
            part = clip(exponent, 1 - most, most)
        else:
            part = builtins.max(1 - most, builtins.min(most, exponent))
        parts.append(part)
        exponent = exponent - part
    return parts


def _power_of_two(exponent, dtype):
    """Return 2 to the power of integers within the exponents of normal numbers, made from bits."""
    if type(exponent) is not Tensor:
        return 2.0**exponent
    most, digits = _FORMATS[dtype.itemsize]
    bits = multiply(add(exponent, most), 2**digits)
    return reinterpreted(astype(bits, _BITS[dtype.itemsize]), dtype)


@numbers_too
def isposinf(x, /, out=None):
    """Return, element by element, whether real x is positive infinity.

    >>> import gputensor as gt
    >>> isposinf(gt.asarray([1.0, float("inf")], device="host")).tolist()
    [False, True]
    """
    return equal(_floating(_real(x, "isposinf"), "isposinf"), math.inf, out)


@numbers_too
def isneginf(x, /, out=None):
    """Return, element by element, whether real x is negative infinity.

    >>> import gputensor as gt
    >>> isneginf(gt.asarray([1.0, -float("inf")], device="host")).tolist()
    [False, True]
    """
    return equal(_floating(_real(x, "isneginf"), "isneginf"), -math.inf, out)


def isreal(x, /):
    """Return, element by element, whether the imaginary part of x is zero.

    >>> import gputensor as gt
    >>> isreal(gt.asarray([1 + 0j, 1j], device="host")).tolist()
    [True, False]
    """
    if tensor_argument(x, "isreal").dtype.kind == "c":
        return equal(imag(x), 0)
    return full(x.shape, True, dtype=bool_, device=x.device)


def iscomplex(x, /):
    """Return, element by element, whether the imaginary part of x is not zero.

    >>> import gputensor as gt
    >>> iscomplex(gt.asarray([1 + 0j, 1j], device="host")).tolist()
    [False, True]
    """
    if tensor_argument(x, "iscomplex").dtype.kind == "c":
        return not_equal(imag(x), 0)
    return full(x.shape, False, dtype=bool_, device=x.device)


@numbers_too
def nextafter(x1, x2, /):
    """Return the next floating-point number after x1 towards x2, in their common dtype.

    As in NumPy, integers without a tensor of floats beside them become float16, float32 or
    float64, by their width.

    >>> import gputensor as gt
    >>> nextafter(gt.asarray([0.0, 1.0], device="host"), 1.0).tolist()
    [1.401298464324817e-45, 1.0]
    >>> nextafter(gt.asarray([1], device="host"), 2).tolist()
    [1.0000000000000002]
    """
    tensors = [x for x in (x1, x2) if type(x) is Tensor]
    dtype = result_type(*(tensors or [tensor_argument(x1, "nextafter")]))
    if dtype.kind in "biu":
        is_wide = any(isinstance(x, float) for x in (x1, x2))
        dtype = float64 if is_wide else np.result_type(result_type(x1, x2), float16)
        x1, x2 = (astype(x, dtype) if type(x) is Tensor else x for x in (x1, x2))
    if dtype.kind not in "fV" or dtype.itemsize not in _BITS:
        got = Described(dtype.name)
        raise argument_error(TypeError, "nextafter: x1", got, "a floating-point dtype")
    first, second = (multiply(x, _one(dtype, tensors[0])) for x in (x1, x2))
    bits = reinterpreted(first, _BITS[dtype.itemsize])
    # Read as integers, the bits of floats grow with the magnitude, for both signs.
    is_away = equal(less(first, second), greater(first, 0))
    step = astype(where(is_away, 1, -1), bits.dtype)
    stepped = reinterpreted(add(bits, step), dtype)
    tiny = reinterpreted(where(less(second, 0), _LOWEST[dtype.itemsize], bits * 0) + 1, dtype)
    stepped = where(equal(first, 0), tiny, stepped)
    result = where(equal(first, second), second, stepped)
    return where(logical_or(isnan(first), isnan(second)), math.nan, result)


# By size in bytes: the greatest exponent of a float, and the number of bits of its fraction.
_FORMATS = {2: (15, 10), 4: (127, 23), 8: (1023, 52)}
# By size in bytes: the integer dtype of that size, and its least value, the bits of -0.0.
_BITS = {2: int16, 4: int32, 8: int64}
_LOWEST = {2: -(2**15), 4: -(2**31), 8: -(2**63)}


def _one(dtype, like):
    return full((), 1, dtype=dtype, device=like.device)
