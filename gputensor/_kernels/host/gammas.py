"""The regularized incomplete gamma functions on the host device: the formulas of gammas.cuh.

Each formula is computed for the elements that need it, in float64.
"""

import functools
import math

import numpy as np

__all__ = ["igamma", "igammac"]

# zeta(k) for k of 2 to 15
ZETA = (
    1.6449340668482264, 1.2020569031595943, 1.0823232337111382, 1.0369277551433699,
    1.0173430619844491, 1.0083492773819228, 1.0040773561979443, 1.0020083928260822,
    1.0009945751278181, 1.0004941886041195, 1.0002460865533080, 1.0001227133475785,
    1.0000612481350587, 1.0000305882363070,
)  # fmt: skip
STIRLING = (1 / 12, -1 / 360, 1 / 1260, -1 / 1680, 1 / 1188)

_lgamma = np.vectorize(math.lgamma, otypes=[np.float64])


@functools.cache
def _nodes():
    return np.polynomial.legendre.leggauss(32)


def _log1p_rest(u):
    """Return log(1 + u) - u for u above -1, accurate near 0."""
    r = u / (2 + u)
    square, total = r * r, 0.0
    for k in range(18, 0, -1):
        total = square * (1 / (2 * k + 1) + total)
    return np.where((u > -0.5) & (u < 1), 2 * r * total - u * r, np.log1p(u) - u)


def _lgamma1p(a):
    """Return log(gamma(1 + a)) for a from 0 to 1, accurate near 0."""
    total = 0.0
    for k in range(15, 1, -1):
        total = a * (ZETA[k - 2] / k - total)
    return np.where(a > 0.1, _lgamma(1 + a), a * (total - np.euler_gamma))


def _density(a, x):
    """Return x**a * exp(-x) / gamma(a + 1)."""
    tail = sum(factor * a ** (-1.0 - 2 * k) for k, factor in enumerate(STIRLING))
    away = (x - a) / a
    power = np.where(away > -0.5, a * _log1p_rest(away), a * np.log(x / a) - (x - a))
    large = np.exp(power - tail) / (math.sqrt(2 * math.pi) * np.sqrt(a))
    small = np.exp(a * np.log(x) - x - _lgamma(np.minimum(a, 20) + 1))
    return np.where(a < 20, small, large)


def _integral(b, slope, sign, end):
    """Return the integral of exp(b (log(1 + s u) - s u) - slope u) from 0 to about `end`."""
    for _ in range(6):
        height = slope * end - b * _log1p_rest(sign * end) - 40
        end = end - height / (slope + b * end / (1 + sign * end))
    total = 0.0
    for node, weight in zip(*_nodes(), strict=True):
        u = end * (1 + node) / 2
        total = total + weight * np.exp(b * _log1p_rest(sign * u) - slope * u)
    return total * end / 2


def _for_large(a, x):
    """Return P and Q for a of 20 or more."""
    b, scale = a - 1, _density(a, x) * a
    is_above = x >= a
    above = np.minimum(np.where(b < 240, np.inf, np.sqrt(240 / b)), 40 / np.abs(x - b))
    below = np.minimum(-np.expm1(-1 - 41 / b), np.sqrt(82 / b))
    below = np.minimum(below, np.where(b > x, 40 / np.abs(b - x), np.inf))
    part = _integral(b, np.abs(x - b) * np.where(is_above | (b > x), 1, -1),
                     np.where(is_above, 1, -1), np.where(is_above, above, below))  # fmt: skip
    part = np.where(scale == 0, 0.0, scale * part)
    return np.where(is_above, 1 - part, part), np.where(is_above, part, 1 - part)


def _near_zero(a, x):
    """Return P and Q for a below 1 and x below 1.5, from a series of Q."""
    power = a * np.log(x) - _lgamma1p(a)
    total, term = 0.0, 1.0
    for n in range(1, 40):
        term = term * (-x / n)
        total = total + term / (a + n)
    upper = -np.expm1(power) - np.exp(power) * a * total
    return 1 - upper, upper


def _by_series(a, x):
    total = term = np.ones_like(a)
    n = 0
    while n < 200 and (term > total * 1e-17).any():
        n += 1
        term = term * (x / (a + n))
        total = total + term
    lower = _density(a, x) * total
    return lower, 1 - lower


def _by_fraction(a, x):
    """Return P and Q by Lentz's algorithm."""
    b = x + 1 - a
    d = 1 / b
    part, c, n = d, np.full_like(a, 1e300), 0
    while n < 300:
        n += 1
        factor, b = n * (a - n), b + 2
        d = 1 / (factor * d + b)
        c = b + factor / c
        part = part * (c * d)
        if not (np.abs(c * d - 1) >= 2e-16).any():
            break
    density = _density(a, x)
    upper = np.where(density == 0, 0.0, part * density * a)
    return 1 - upper, upper


def _computed(a, x, upper):
    wide, at = np.broadcast_arrays(a.astype(np.float64), x.astype(np.float64))
    with np.errstate(all="ignore"):
        is_known = (wide >= 0) & (at >= 0) & ~((wide == 0) & (at == 0))
        is_known &= ~(np.isinf(wide) & np.isinf(at))
        is_all = is_known & ((wide == 0) | np.isinf(at))
        is_none = is_known & ~is_all & ((at == 0) | np.isinf(wide))
        result = np.where(is_all, not upper, np.where(is_none, upper, np.nan))
        rest = is_known & ~is_all & ~is_none
        for is_here, function in (
            (wide >= 20, _for_large),
            ((wide < 1) & (at < 1.5) & (upper | (at > wide + 1)), _near_zero),
            (at <= wide + 1, _by_series),
            (True, _by_fraction),
        ):
            here = rest & is_here
            rest = rest & ~here
            if here.any():
                result[here] = function(wide[here], at[here])[upper]
    return result.astype(a.dtype)


def igamma(a, x):
    return _computed(a, x, False)


def igammac(a, x):
    return _computed(a, x, True)
