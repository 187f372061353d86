"""Polynomials as vectors of coefficients, the highest power first, as in NumPy.

Functions of a `poly1d` return one.
"""

import functools

from gputensor._arrays.dtypes import float32, uint64
from gputensor._arrays.promotion import result_type
from gputensor.errors import Described, argument_error, int_argument
from gputensor.tensor import functions as fn
from gputensor.tensor.core import Tensor, tensor_argument
from gputensor.tensor.interop import asarray, astype
from gputensor.tensor.interop.arrays import beside
from gputensor.tensor.manipulation import arange, empty, reshape, zeros
from gputensor.tensor.manipulation.joining import concat
from gputensor.tensor.series import convolve

__all__ = ["polyadd", "polyder", "polydiv", "polyint", "polymul", "polysub"]

MOST_INTEGRATIONS = 1000  # each takes a few kernels


def _vectors(name, *values):
    """Return the values as vectors, on the device of those that are tensors."""
    first = next((one for one in values if isinstance(one, Tensor)), None)
    found = []
    for one in values:
        one = asarray(one) if first is None else beside(one, first)
        if one.ndim > 1:
            got = Described(f"{one.ndim} dimensions")
            raise argument_error(ValueError, f"{name}: p", got, "at most 1")
        one = reshape(one, -1)
        if one.size == 0:
            got = Described("no elements")
            raise argument_error(ValueError, f"{name}: p", got, "at least one")
        found.append(one)
    return found


def _of_objects(function):
    """Let a function of coefficients take objects that have some, and then return such objects."""

    @functools.wraps(function)
    def call(*arguments, **options):
        kinds = [type(p) for p in arguments if isinstance(getattr(p, "coeffs", None), Tensor)]
        if not kinds:
            return function(*arguments, **options)
        result = function(*(getattr(p, "coeffs", p) for p in arguments), **options)
        kind = kinds[0]
        return tuple(map(kind, result)) if isinstance(result, tuple) else kind(result)

    return call


def _aligned(a, b):
    """Return both, padded to the same length with zeros for the highest powers."""
    length = max(a.size, b.size)
    return tuple(
        one if one.size == length
        else concat([zeros(length - one.size, one.dtype, device=one.device), one])
        for one in (a, b)
    )  # fmt: skip


@_of_objects
def polyadd(p1, p2, /):
    """Return the coefficients of the sum of two polynomials.

    >>> import gputensor as gt
    >>> polyadd(gt.asarray([1, 2], device="host"), [1, 0, 5]).tolist()
    [1, 1, 7]
    """
    return fn.add(*_aligned(*_vectors("polyadd", p1, p2)))


@_of_objects
def polysub(p1, p2, /):
    """Return the coefficients of the difference of two polynomials.

    >>> import gputensor as gt
    >>> polysub(gt.asarray([1, 2], device="host"), [1, 0, 5]).tolist()
    [-1, 1, -3]
    """
    return fn.subtract(*_aligned(*_vectors("polysub", p1, p2)))


@_of_objects
def polymul(p1, p2, /):
    """Return the coefficients of the product of two polynomials.

    >>> import gputensor as gt
    >>> polymul(gt.asarray([1, 2], device="host"), [1, -2]).tolist()
    [1, 0, -4]
    """
    return convolve(*_vectors("polymul", p1, p2))


@_of_objects
def polydiv(u, v, /):
    """Return the coefficients of quotient and remainder of two polynomials.

    Each coefficient of the quotient takes a few kernels.

    >>> import gputensor as gt
    >>> quotient, rest = polydiv(gt.asarray([1.0, 0.0, -3.0], device="host"), [1.0, -2.0])
    >>> quotient.tolist(), rest.tolist()
    ([1.0, 2.0], [1.0])
    """
    u, v = _vectors("polydiv", u, v)
    dtype = result_type(u.dtype, v.dtype)
    dtype = float32 if dtype.kind in "biu" else dtype
    v = astype(v, dtype, copy=False)
    rest = astype(u, dtype)
    count = max(rest.size - v.size + 1, 1)
    quotient = zeros(count, dtype, device=rest.device)
    if rest.size < v.size:
        return quotient, rest
    for i in range(count):
        factor = fn.divide(rest[i], v[0])
        quotient[i] = factor
        rest[i : i + v.size] = fn.subtract(rest[i : i + v.size], fn.multiply(v, factor))
    # As in NumPy, the remainder begins with its first coefficient that is not nearly 0.
    rest = rest[count:]
    is_kept = fn.greater(fn.abs(rest), 1e-8).nonzero()[0]
    first = int(is_kept[0]) if is_kept.size else rest.size - 1
    return quotient, rest[first:] if rest.size else zeros(1, dtype, device=u.device)


def _order(m, name):
    m = int_argument(f"{name}: m", m)
    if m < 0:
        raise argument_error(ValueError, f"{name}: m", m, "0 or more")
    return m


@_of_objects
def polyder(p, m=1):
    """Return the coefficients of the derivative of order `m`.

    >>> import gputensor as gt
    >>> polyder(gt.asarray([1, 2, 3], device="host")).tolist()
    [2, 2]
    """
    (p,) = _vectors("polyder", p)
    for _ in range(min(_order(m, "polyder"), p.size)):
        # The powers of integers are int64, so products with them have 64 bits.
        powers = arange(p.size - 1, 0, -1, device=p.device)
        is_float = p.dtype.kind in "fc" or p.dtype == uint64
        p = fn.multiply(p[:-1], astype(powers, p.dtype, copy=False) if is_float else powers)
    return fn.positive(p)


@_of_objects
def polyint(p, m=1, k=0):
    """Return the coefficients of the integral of order `m`.

    Parameters
    ----------
    p : Tensor or sequence
    m : int
    k : number or sequence of numbers
        The constant of each integration, or one for all.

    >>> import gputensor as gt
    >>> polyint(gt.asarray([2.0, 2.0], device="host"), k=3).tolist()
    [1.0, 2.0, 3.0]
    """
    (p,) = _vectors("polyint", p)
    count = _order(m, "polyint")
    if count > MOST_INTEGRATIONS:
        raise argument_error(ValueError, "polyint: m", m, f"at most {MOST_INTEGRATIONS}")
    constants = list(k) if hasattr(k, "__iter__") else [k] * count
    if len(constants) < count:
        got = Described(f"{len(constants)} constants")
        raise argument_error(ValueError, "polyint: k", got, f"{count}, one for each integration")
    p = astype(p, float32) if p.dtype.kind in "biu" else p
    for constant in constants[:count]:
        result = empty(p.size + 1, p.dtype, device=tensor_argument(p, "polyint").device)
        powers = arange(p.size, 0, -1, device=p.device)
        result[:-1] = fn.divide(p, astype(powers, p.dtype))
        result[-1] = constant
        p = result
    return fn.positive(p)
