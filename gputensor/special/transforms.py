"""Transforms of numbers: powers of Box and Cox, entropies, losses, degrees and integrals."""

import math

from gputensor.special.arguments import both, rounded, several, wide
from gputensor.tensor import functions as fn
from gputensor.tensor.functions import ellipkm1, expn

__all__ = [
    "boxcox", "boxcox1p", "cosdg", "cosm1", "cotdg", "ellipk", "exp1", "huber", "inv_boxcox",
    "inv_boxcox1p", "kl_div", "pseudo_huber", "radian", "sindg", "tandg", "zetac",
]  # fmt: skip


def _power_of(logarithm, power):
    is_log = fn.less(fn.abs(power), 1e-19)
    share = fn.where(is_log, 1.0, power)
    return fn.where(is_log, logarithm, fn.expm1(share * logarithm) / share)


def boxcox(x, lmbda, /):
    """Return the Box-Cox transform: (x**lmbda - 1) / lmbda, and log(x) where lmbda is 0.

    >>> import gputensor as gt
    >>> boxcox(gt.asarray([4.0], device="host"), 0.5).tolist()
    [2.0]
    """
    x, power, dtype = both(x, lmbda, "boxcox")
    return rounded(_power_of(fn.log(x), power), dtype)


def boxcox1p(x, lmbda, /):
    """Return the Box-Cox transform of 1 + x, exact near 0.

    >>> import gputensor as gt
    >>> boxcox1p(gt.asarray([3.0], device="host"), 0.5).tolist()
    [2.0]
    """
    x, power, dtype = both(x, lmbda, "boxcox1p")
    return rounded(_power_of(fn.log1p(x), power), dtype)


def _logarithm_of(y, power):
    is_log = fn.equal(power, 0)
    share = fn.where(is_log, 1.0, power)
    return fn.where(is_log, y, fn.log1p(share * y) / share)


def inv_boxcox(y, lmbda, /):
    """Return the x whose Box-Cox transform is y.

    >>> import gputensor as gt
    >>> inv_boxcox(gt.asarray([2.0], device="host"), 0.5).tolist()
    [4.0]
    """
    y, power, dtype = several("inv_boxcox", y, lmbda)
    return rounded(fn.exp(_logarithm_of(y, power)), dtype)


def inv_boxcox1p(y, lmbda, /):
    """Return the x for which 1 + x has the Box-Cox transform y, exact near 0.

    >>> import gputensor as gt
    >>> inv_boxcox1p(gt.asarray([2.0], device="host"), 0.5).tolist()
    [3.0]
    """
    y, power, dtype = several("inv_boxcox1p", y, lmbda)
    return rounded(fn.expm1(_logarithm_of(y, power)), dtype)


def kl_div(x, y, /):
    """Return x * log(x / y) - x + y: y where x is 0 and y is not negative.

    It is inf for other x and y that are not both above 0.

    >>> import gputensor as gt
    >>> kl_div(gt.asarray([0.0, 1.0, -1.0], device="host"), 1.0).tolist()
    [1.0, 0.0, inf]
    """
    x, y, dtype = several("kl_div", x, y)
    is_positive = fn.logical_and(x > 0, y > 0)
    is_zero = fn.logical_and(fn.equal(x, 0), y >= 0)
    value = x * fn.log(fn.where(is_positive, x / y, 1.0)) - x + y
    value = fn.where(is_positive, value, fn.where(is_zero, y, math.inf))
    return rounded(fn.where(fn.isnan(x + y), math.nan, value), dtype)


def huber(delta, r, /):
    """Return r**2 / 2 up to a size of delta, and delta * (abs(r) - delta / 2) beyond.

    It is inf where delta is negative.

    >>> import gputensor as gt
    >>> huber(1.0, gt.asarray([0.5, 3.0], device="host")).tolist()
    [0.125, 2.5]
    """
    delta, r, dtype = several("huber", delta, r)
    size = fn.abs(r)
    value = fn.where(size <= delta, 0.5 * r * r, delta * (size - 0.5 * delta))
    return rounded(fn.where(delta < 0, math.inf, value), dtype)


def pseudo_huber(delta, r, /):
    """Return delta**2 * (sqrt(1 + (r / delta)**2) - 1): 0 where delta or r is 0.

    It is inf where delta is negative.

    >>> import gputensor as gt
    >>> pseudo_huber(3.0, gt.asarray([0.0, 4.0], device="host")).tolist()
    [0.0, 6.0]
    """
    delta, r, dtype = several("pseudo_huber", delta, r)
    ratio = r / delta
    value = delta * delta * (ratio * ratio) / (fn.sqrt(1 + ratio * ratio) + 1)
    value = fn.where(fn.logical_or(fn.equal(delta, 0), fn.equal(r, 0)), 0.0, value)
    return rounded(fn.where(delta < 0, math.inf, value), dtype)


def cosm1(x, /):
    """Return cos(x) - 1, exact near 0.

    >>> import gputensor as gt
    >>> round(cosm1(gt.asarray([1e-9], device="host")).item() * 1e18, 4)
    -0.5
    """
    x, dtype = wide(x, "cosm1")
    half = fn.sin(x / 2)
    return rounded(-2 * half * half, dtype)


def _turned(x, quarters):
    """Return the sine of x degrees plus a number of right angles, exact where that is known."""
    turn = fn.round(x / 90)
    rest = (x - turn * 90) * (math.pi / 180)
    place = fn.remainder(turn + quarters, 4)
    is_even = fn.equal(fn.remainder(place, 2), 0)
    size = fn.where(is_even, fn.sin(rest), fn.cos(rest))
    return fn.where(place >= 2, 0.0 - size, size)


def sindg(x, /):
    """Return the sine of x degrees.

    >>> import gputensor as gt
    >>> sindg(gt.asarray([90.0, 180.0], device="host")).tolist()
    [1.0, 0.0]
    """
    x, dtype = wide(x, "sindg")
    return rounded(_turned(x, 0), dtype)


def cosdg(x, /):
    """Return the cosine of x degrees.

    >>> import gputensor as gt
    >>> cosdg(gt.asarray([90.0, 180.0], device="host")).tolist()
    [0.0, -1.0]
    """
    x, dtype = wide(x, "cosdg")
    return rounded(_turned(x, 1), dtype)


def tandg(x, /):
    """Return the tangent of x degrees: inf at odd multiples of 90.

    >>> import gputensor as gt
    >>> tandg(gt.asarray([0.0, 90.0], device="host")).tolist()
    [0.0, inf]
    """
    x, dtype = wide(x, "tandg")
    below = _turned(x, 1)
    return rounded(fn.where(fn.equal(below, 0), math.inf, _turned(x, 0) / below), dtype)


def cotdg(x, /):
    """Return the cotangent of x degrees: inf at multiples of 180.

    >>> import gputensor as gt
    >>> cotdg(gt.asarray([0.0, 90.0], device="host")).tolist()
    [inf, 0.0]
    """
    x, dtype = wide(x, "cotdg")
    below = _turned(x, 0)
    return rounded(fn.where(fn.equal(below, 0), math.inf, _turned(x, 1) / below), dtype)


def radian(d, m, s, /):
    """Return an angle of degrees, minutes and seconds in radians.

    >>> import gputensor as gt
    >>> round(radian(gt.asarray([180.0], device="host"), 0, 0).item(), 4)
    3.1416
    """
    d, m, s, dtype = several("radian", d, m, s)
    return rounded((d + (m + s / 60) / 60) * (math.pi / 180), dtype)


def ellipk(m, /):
    """Return the complete elliptic integral K of parameter m: NaN above 1, and inf at 1.

    >>> import gputensor as gt
    >>> round(ellipk(gt.asarray([0.0], device="host")).item(), 4)
    1.5708
    """
    m, dtype = wide(m, "ellipk")
    return rounded(ellipkm1(1 - m), dtype)


def exp1(x, /):
    """Return the exponential integral E1(x): inf at 0, and NaN below.

    >>> import gputensor as gt
    >>> round(exp1(gt.asarray([1.0], device="host")).item(), 4)
    0.2194
    """
    x, dtype = wide(x, "exp1")
    return rounded(expn(1.0, x), dtype)


def zetac(x, /):
    """Return Riemann's zeta function minus 1, for x of 1 or more; NaN below.

    >>> import gputensor as gt
    >>> round(zetac(gt.asarray([2.0], device="host")).item(), 4)
    0.6449
    """
    x, dtype = wide(x, "zetac")
    return rounded(fn.zeta(x, 2.0), dtype)
