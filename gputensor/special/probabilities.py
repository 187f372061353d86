"""Distribution functions under SciPy's names; those that end in c are 1 minus the others."""

import math

from gputensor.special.arguments import rounded, several
from gputensor.tensor import functions as fn
from gputensor.tensor.functions import (
    betainc,
    betaincinv,
    gammainccinv,
    igamma,
    igammac,
)

__all__ = [
    "bdtr", "bdtrc", "btdtr", "btdtri", "chdtr", "chdtrc", "chdtri", "fdtr", "fdtrc", "fdtri",
    "gdtr", "gdtrc", "nbdtr", "nbdtrc", "pdtr", "pdtrc", "pdtri", "stdtr",
]  # fmt: skip


def _known(condition, value):
    return fn.where(condition, value, math.nan)


def _binomial(name, k, n, p):
    k, n, p, dtype = several(name, k, n, p)
    k = fn.floor(k)
    is_known = fn.logical_and(fn.logical_and(p >= 0, p <= 1), fn.logical_and(k >= 0, k <= n))
    return k, n, p, is_known, dtype


def bdtr(k, n, p, /):
    """Return the probability of k or fewer successes in n trials, each of probability p.

    >>> import gputensor as gt
    >>> bdtr(gt.asarray([0.0, 1.0, 2.0], device="host"), 2, 0.5).tolist()
    [0.25, 0.75, 1.0]
    """
    k, n, p, is_known, dtype = _binomial("bdtr", k, n, p)
    share = betainc(fn.maximum(n - k, 0.5), k + 1, 1 - p)
    return rounded(_known(is_known, fn.where(fn.equal(k, n), 1.0, share)), dtype)


def bdtrc(k, n, p, /):
    """Return the probability of more than k successes in n trials, each of probability p.

    >>> import gputensor as gt
    >>> bdtrc(gt.asarray([0.0, 1.0, 2.0], device="host"), 2, 0.5).tolist()
    [0.75, 0.25, 0.0]
    """
    k, n, p, is_known, dtype = _binomial("bdtrc", k, n, p)
    share = betainc(k + 1, fn.maximum(n - k, 0.5), p)
    return rounded(_known(is_known, fn.where(fn.equal(k, n), 0.0, share)), dtype)


def btdtr(a, b, x, /):
    """Return the distribution function of the beta distribution: betainc.

    >>> import gputensor as gt
    >>> btdtr(2, 3, gt.asarray([0.5], device="host")).tolist()
    [0.6875]
    """
    a, b, x, dtype = several("btdtr", a, b, x)
    return rounded(betainc(a, b, x), dtype)


def btdtri(a, b, p, /):
    """Return the quantile of the beta distribution: betaincinv.

    >>> import gputensor as gt
    >>> btdtri(2, 3, gt.asarray([0.6875], device="host")).tolist()
    [0.5]
    """
    a, b, p, dtype = several("btdtri", a, b, p)
    return rounded(betaincinv(a, b, p), dtype)


def chdtr(v, x, /):
    """Return the distribution function of the chi square distribution with v degrees of freedom.

    >>> import gputensor as gt
    >>> round(chdtr(2, gt.asarray([2.0], device="host")).item(), 4)
    0.6321
    """
    v, x, dtype = several("chdtr", v, x)
    return rounded(igamma(v / 2, x / 2), dtype)


def chdtrc(v, x, /):
    """Return 1 - chdtr(v, x).

    >>> import gputensor as gt
    >>> round(chdtrc(2, gt.asarray([2.0], device="host")).item(), 4)
    0.3679
    """
    v, x, dtype = several("chdtrc", v, x)
    return rounded(fn.where(x < 0, 1.0, igammac(v / 2, fn.maximum(x, 0) / 2)), dtype)


def chdtri(v, p, /):
    """Return the x at which chdtrc(v, x) is p.

    >>> import gputensor as gt
    >>> round(chdtri(2, gt.asarray([0.5], device="host")).item(), 4)
    1.3863
    """
    v, p, dtype = several("chdtri", v, p)
    return rounded(2 * gammainccinv(v / 2, p), dtype)


def _ratios(name, dfn, dfd, x):
    """Return half of the degrees of freedom, the shares of both in the variance, and the dtype."""
    dfn, dfd, x, dtype = several(name, dfn, dfd, x)
    total = dfd + dfn * x
    first = fn.where(fn.isinf(x), 1.0, dfn * x / total)
    return dfn / 2, dfd / 2, _known(x >= 0, first), _known(x >= 0, dfd / total), dtype


def fdtr(dfn, dfd, x, /):
    """Return the distribution function of the F distribution.

    >>> import gputensor as gt
    >>> fdtr(2, 2, gt.asarray([1.0], device="host")).tolist()
    [0.5]
    """
    a, b, first, _rest, dtype = _ratios("fdtr", dfn, dfd, x)
    return rounded(betainc(a, b, first), dtype)


def fdtrc(dfn, dfd, x, /):
    """Return 1 - fdtr(dfn, dfd, x).

    >>> import gputensor as gt
    >>> fdtrc(2, 2, gt.asarray([3.0], device="host")).tolist()
    [0.25]
    """
    a, b, _first, rest, dtype = _ratios("fdtrc", dfn, dfd, x)
    return rounded(betainc(b, a, rest), dtype)


def fdtri(dfn, dfd, p, /):
    """Return the x at which fdtr(dfn, dfd, x) is p, for p between 0 and 1.

    >>> import gputensor as gt
    >>> round(fdtri(2, 2, gt.asarray([0.5], device="host")).item(), 4)
    1.0
    """
    dfn, dfd, p, dtype = several("fdtri", dfn, dfd, p)
    p = _known(fn.logical_and(p > 0, p < 1), p)
    # From the side on which the share is exact.
    near = betaincinv(dfn / 2, dfd / 2, p)
    far = betaincinv(dfd / 2, dfn / 2, 1 - p)
    value = fn.where(near < 0.5, dfd * near / (dfn * (1 - near)), dfd * (1 - far) / (dfn * far))
    return rounded(value, dtype)


def gdtr(a, b, x, /):
    """Return the distribution function of the gamma distribution with rate a and shape b.

    >>> import gputensor as gt
    >>> round(gdtr(1, 1, gt.asarray([1.0], device="host")).item(), 4)
    0.6321
    """
    a, b, x, dtype = several("gdtr", a, b, x)
    return rounded(igamma(b, a * x), dtype)


def gdtrc(a, b, x, /):
    """Return 1 - gdtr(a, b, x).

    >>> import gputensor as gt
    >>> round(gdtrc(1, 1, gt.asarray([1.0], device="host")).item(), 4)
    0.3679
    """
    a, b, x, dtype = several("gdtrc", a, b, x)
    return rounded(igammac(b, a * x), dtype)


def nbdtr(k, n, p, /):
    """Return the probability of k or fewer failures before success n, each of probability 1 - p.

    >>> import gputensor as gt
    >>> nbdtr(gt.asarray([0.0, 1.0], device="host"), 1, 0.5).tolist()
    [0.5, 0.75]
    """
    k, n, p, dtype = several("nbdtr", k, n, p)
    k = fn.floor(k)
    return rounded(_known(k >= 0, betainc(n, k + 1, p)), dtype)


def nbdtrc(k, n, p, /):
    """Return 1 - nbdtr(k, n, p).

    >>> import gputensor as gt
    >>> nbdtrc(gt.asarray([0.0, 1.0], device="host"), 1, 0.5).tolist()
    [0.5, 0.25]
    """
    k, n, p, dtype = several("nbdtrc", k, n, p)
    k = fn.floor(k)
    return rounded(_known(k >= 0, betainc(k + 1, n, 1 - p)), dtype)


def pdtr(k, m, /):
    """Return the probability of k or fewer events in a Poisson distribution of mean m.

    >>> import gputensor as gt
    >>> round(pdtr(gt.asarray([0.0], device="host"), 1).item(), 4)
    0.3679
    """
    k, m, dtype = several("pdtr", k, m)
    return rounded(_known(k >= 0, igammac(fn.floor(k) + 1, m)), dtype)


def pdtrc(k, m, /):
    """Return 1 - pdtr(k, m).

    >>> import gputensor as gt
    >>> round(pdtrc(gt.asarray([0.0], device="host"), 1).item(), 4)
    0.6321
    """
    k, m, dtype = several("pdtrc", k, m)
    return rounded(_known(k >= 0, igamma(fn.floor(k) + 1, m)), dtype)


def pdtri(k, y, /):
    """Return the mean m at which pdtr(k, m) is y.

    >>> import gputensor as gt
    >>> round(pdtri(gt.asarray([0.0], device="host"), 0.5).item(), 4)
    0.6931
    """
    k, y, dtype = several("pdtri", k, y)
    return rounded(_known(k >= 0, gammainccinv(fn.floor(k) + 1, y)), dtype)


def stdtr(df, t, /):
    """Return the distribution function of Student's distribution with df degrees of freedom.

    >>> import gputensor as gt
    >>> stdtr(1, gt.asarray([0.0, 1.0], device="host")).tolist()
    [0.5, 0.75]
    """
    df, t, dtype = several("stdtr", df, t)
    square = t * t
    is_far = fn.isinf(square)
    near = 0.5 - betainc(0.5, df / 2, fn.where(is_far, 1.0, square / (df + square))) / 2
    far = betainc(df / 2, 0.5, fn.where(is_far, 0.0, df / (df + square))) / 2
    tail = fn.where(near > 0.05, near, far)  # from the side on which it is exact
    below = fn.where(t > 0, 1 - tail, tail)
    below = fn.where(fn.isinf(df), fn.erfc(t * -math.sqrt(0.5)) / 2, below)  # normal
    return rounded(_known(df > 0, below), dtype)
