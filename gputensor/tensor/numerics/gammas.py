"""The gamma function's derivatives and its multivariate form, composed of operations on tensors."""

import math
from fractions import Fraction

from gputensor._arrays.dtypes import float32, isdtype
from gputensor.errors import Described, argument_error
from gputensor.tensor import functions as fn
from gputensor.tensor.core import tensor_argument
from gputensor.tensor.interop import astype

__all__ = ["mvlgamma", "polygamma"]

# B(2 k) / (2 k)! for k of 1 to 12, from the Bernoulli numbers (NIST DLMF, table 24.2.1).
BERNOULLI = (
    "1/6 -1/30 1/42 -1/30 5/66 -691/2730 7/6 -3617/510 43867/798 -174611/330 854513/138 "
    "-236364091/2730"
).split()
TAIL = [float(Fraction(one) / math.factorial(2 * k)) for k, one in enumerate(BERNOULLI, 1)]
SHIFT = 10  # from where on the terms of the asymptotic series fall below 2**-53


def computed(x, name):
    """Return x in a dtype to compute in, and the dtype of the result."""
    x = tensor_argument(x, name)
    if not isdtype(x.dtype, ("bool", "integral", "real floating")):
        raise argument_error(TypeError, f"{name}: x", Described(x.dtype.name), "a real dtype")
    is_float = isdtype(x.dtype, "real floating")
    dtype = x.dtype if is_float else float32
    return astype(x, float32 if dtype.itemsize < 4 else dtype, copy=False), dtype


def _zeta(s, x):
    """Return the sum of (x + k)**-s over all k from 0, for x above 0 and an integer s above 1."""
    total = fn.pow(x, -float(s))
    for k in range(1, SHIFT):
        total = total + fn.pow(x + k, -float(s))
    a = x + SHIFT
    power = fn.pow(a, -float(s))
    total = total + fn.pow(a, 1.0 - s) / (s - 1) + power / 2
    factor = 1.0
    power = power / a
    for k, share in enumerate(TAIL):
        factor = factor * (s + 2 * k - 1) * (s + 2 * k) if k else float(s)
        total = total + (share * factor) * power
        power = power / (a * a)
    return total


def _reflected(n, x):
    """Return pi times the nth derivative of cot(pi x), a polynomial of the cotangent."""
    rest = x - fn.round(x)
    cotangent = fn.cos(math.pi * rest) / fn.sin(math.pi * rest)
    coefficients = [0, 1]  # the derivative of c**k is -pi k (c**(k - 1) + c**(k + 1))
    for _ in range(n):
        found = [0] * (len(coefficients) + 1)
        for k, one in enumerate(coefficients):
            if k:
                found[k - 1] -= k * one
                found[k + 1] -= k * one
        coefficients = found
    value = fn.multiply(cotangent, 0.0)
    for one in reversed(coefficients):
        value = value * cotangent + float(one)
    return value * math.pi ** (n + 1)


def polygamma(n, x, /):
    """Return derivative `n` of the digamma function; infinite at 0 and at negative integers.

    Parameters
    ----------
    n : int
        0 to 100; 0 is the digamma function itself.
    x : Tensor
        Of a real dtype.

    >>> import gputensor as gt
    >>> round(polygamma(1, gt.asarray([1.0], device="host")).item(), 4)
    1.6449
    """
    if isinstance(n, bool) or not isinstance(n, int) or not 0 <= n <= 100:
        raise argument_error(ValueError, "polygamma: n", n, "an int from 0 to 100")
    if n == 0:
        return fn.digamma(x)
    x, dtype = computed(x, "polygamma")
    sign = 1.0 if n % 2 else -1.0
    is_below = x <= 0
    made = sign * math.factorial(n) * _zeta(n + 1, fn.where(is_below, 1 - x, x))
    is_pole = fn.logical_and(is_below, fn.floor(x) == x)
    mirrored = fn.where(is_below, -sign * made - _reflected(n, x), made)
    return astype(fn.where(is_pole, sign * math.inf, mirrored), dtype, copy=False)


def mvlgamma(x, /, p):
    """Return the logarithm of the multivariate gamma function of dimension `p`.

    Parameters
    ----------
    x : Tensor
        Of a real dtype; above ``(p - 1) / 2``, elsewhere the results mean nothing.
    p : int
        1 or more.

    >>> import gputensor as gt
    >>> round(mvlgamma(gt.asarray([2.0], device="host"), 2).item(), 4)
    0.4516
    """
    if isinstance(p, bool) or not isinstance(p, int) or not 1 <= p <= 10_000:
        raise argument_error(ValueError, "mvlgamma: p", p, "an int from 1 to 10000")
    x, dtype = computed(x, "mvlgamma")
    total = fn.lgamma(x)
    for k in range(1, p):
        total = total + fn.lgamma(x - k / 2)
    return astype(total + p * (p - 1) / 4 * math.log(math.pi), dtype, copy=False)
