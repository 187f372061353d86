"""The beta function and its relatives, computed from the logarithm of the gamma function."""

import math
from fractions import Fraction

from gputensor.special.arguments import both, rounded, several
from gputensor.tensor import functions as fn

__all__ = ["beta", "betaln", "binom", "poch"]


def betaln(a, b, /):
    """Return the logarithm of the magnitude of the beta function.

    >>> import gputensor as gt
    >>> round(betaln(gt.asarray([1e9], device="host"), 2.0).item(), 3)
    -41.447
    """
    a, b, dtype = both(a, b, "betaln")
    return rounded(_betaln(a, b), dtype)


def _betaln(a, b):
    large, small = fn.maximum(a, b), fn.minimum(a, b)
    plain = fn.lgamma(large) - fn.lgamma(large + small)
    # For large a: Stirling's formula for both, so that their leading terms do not cancel.
    far = fn.maximum(large, 10.0)
    base = fn.maximum(small, 0.0)
    total = far + base
    difference = base - (far - 0.5) * fn.log1p(base / far) - base * fn.log(total)
    difference = difference + _stirling(far) - _stirling(total)
    is_far = fn.logical_and(large >= 10, small > 0)
    return fn.lgamma(small) + fn.where(is_far, difference, plain)


def _stirling(x):
    """Return the rest of Stirling's formula for the logarithm of gamma, for x from 10 on."""
    square, total = 1 / (x * x), 0.0
    # B(2 k) / (2 k (2 k - 1)) for k of 1 to 8 (NIST DLMF, 5.11.1).
    shares = "1/12 -1/360 1/1260 -1/1680 1/1188 -691/360360 1/156 -3617/122400".split()
    for share in reversed(shares):
        total = total * square + float(Fraction(share))
    return total / x


def _is_gamma_negative(x):
    whole = fn.floor(x)
    return fn.logical_and(fn.less(x, 0), fn.not_equal(fn.remainder(whole, 2), 0))


def beta(a, b, /):
    """Return the beta function, gamma(a) * gamma(b) / gamma(a + b).

    >>> import gputensor as gt
    >>> round(beta(gt.asarray([2.0], device="host"), 3.0).item(), 6)
    0.083333
    """
    a, b, dtype = both(a, b, "beta")
    size = fn.exp(_betaln(a, b))
    signs = [_is_gamma_negative(one) for one in (a, b, a + b)]
    is_negative = fn.not_equal(fn.not_equal(signs[0], signs[1]), signs[2])
    return rounded(fn.where(is_negative, 0.0 - size, size), dtype)


def binom(n, k, /):
    """Return the binomial coefficient of real n and k, both 0 or more; 0 where k is above n.

    >>> import gputensor as gt
    >>> binom(gt.asarray([5.0, 5.0], device="host"), 2.0).tolist()
    [10.0, 10.0]
    """
    n, k, dtype = both(n, k, "binom")
    rest = fn.subtract(n, k)
    size = fn.exp(0.0 - _betaln(fn.maximum(rest, 0.0) + 1.0, fn.add(k, 1.0))) / fn.add(n, 1.0)
    is_whole = fn.logical_and(fn.equal(fn.floor(n), n), fn.equal(fn.floor(k), k))
    size = fn.where(fn.logical_and(is_whole, size < 2.0**40), fn.round(size), size)
    size = fn.where(fn.logical_and(rest < 0, is_whole), 0.0, size)
    is_known = fn.logical_and(fn.greater_equal(n, 0), fn.greater_equal(k, 0))
    is_known = fn.logical_and(is_known, fn.logical_or(rest >= 0, is_whole))
    return rounded(fn.where(is_known, size, math.nan), dtype)


def poch(z, m, /):
    """Return the rising factorial of real z and m: gamma(z + m) / gamma(z).

    >>> import gputensor as gt
    >>> poch(gt.asarray([2.0, 0.5], device="host"), 3.0).tolist()
    [24.0, 1.875]
    """
    z, m, dtype = several("poch", z, m)
    total = z + m
    plain = fn.lgamma(total) - fn.lgamma(z)
    # Where m is the smaller: from the beta function, so that leading terms do not cancel.
    is_near = fn.logical_and(m > 0, z >= m)
    near = fn.lgamma(fn.where(is_near, m, 1.0)) - _betaln(
        fn.where(is_near, z, 1.0), fn.where(is_near, m, 1.0)
    )
    size = fn.exp(fn.where(is_near, near, plain))
    is_negative = fn.not_equal(_is_gamma_negative(total), _is_gamma_negative(z))
    size = fn.where(is_negative, 0.0 - size, size)
    # Where gamma(z) has a pole: 0, or the quotient of the residues if gamma(z + m) has one, too.
    has_pole, ends_at_pole = (
        fn.logical_and(one <= 0, fn.equal(fn.floor(one), one)) for one in (z, total)
    )
    quotient = fn.exp(fn.lgamma(1 - z) - fn.lgamma(1 - total))
    is_odd = fn.not_equal(fn.remainder(m, 2), 0)
    quotient = fn.where(is_odd, 0.0 - quotient, quotient)
    quotient = fn.where(m > 0, fn.round(quotient), quotient)
    at_pole = fn.where(ends_at_pole, quotient, 0.0)
    size = fn.where(has_pole, at_pole, fn.where(ends_at_pole, math.inf, size))
    return rounded(fn.where(fn.equal(m, 0), 1.0, size), dtype)
