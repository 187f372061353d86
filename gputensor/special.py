"""Special functions under the names of ``torch.special`` and ``cupyx.scipy.special``.

>>> import gputensor as gt
>>> expit(gt.asarray([0.0], device="host")).tolist()
[0.5]
"""

import math
import sys
from fractions import Fraction

import numpy as np

from gputensor._arrays.dtypes import float32, float64
from gputensor._arrays.promotion import result_type
from gputensor.nn import log_softmax, logsumexp, softmax
from gputensor.nn.activations import logsigmoid
from gputensor.tensor import functions as fn
from gputensor.tensor.blends import logit, xlogy
from gputensor.tensor.core import tensor_argument
from gputensor.tensor.functions import (
    cbrt,
    digamma,
    erf,
    erfc,
    erfcinv,
    erfcx,
    erfinv,
    expm1,
    gamma,
    i0,
    i0e,
    i1,
    i1e,
    igamma,
    igammac,
    j0,
    j1,
    k0,
    k0e,
    k1,
    k1e,
    lgamma,
    log1p,
    log_ndtr,
    ndtri,
    sigmoid,
    sinc,
    y0,
    y1,
)
from gputensor.tensor.interop import astype
from gputensor.tensor.interop.arrays import tensors
from gputensor.tensor.manipulation.arithmetic import exp2
from gputensor.tensor.numerics.gammas import computed, mvlgamma, polygamma
from gputensor.tensor.parameter_names import given_names

__all__ = [
    "bessel_j0", "bessel_j1", "bessel_y0", "bessel_y1", "beta", "betaln", "binom", "boxcox",
    "cbrt", "digamma", "entr", "erf", "erfc", "erfcinv", "erfcx", "erfinv", "exp10", "exp2",
    "expit", "expm1", "exprel", "gamma", "gammainc", "gammaincc", "gammaln", "i0", "i0e", "i1",
    "i1e", "j0", "j1", "k0", "k0e", "k1", "k1e", "log1p", "log_expit", "log_ndtr",
    "log_softmax", "loggamma", "logit", "logsumexp", "modified_bessel_i0", "modified_bessel_i1",
    "modified_bessel_k0", "modified_bessel_k1", "multigammaln", "ndtr", "ndtri", "polygamma",
    "psi", "rel_entr", "rgamma", "scaled_modified_bessel_k0", "scaled_modified_bessel_k1", "sinc",
    "softmax", "spherical_bessel_j0", "xlog1py", "xlogy", "y0", "y1", "zeta",
]  # fmt: skip

expit, gammainc, gammaincc, gammaln = sigmoid, igamma, igammac, lgamma
log_expit, multigammaln, psi = logsigmoid, mvlgamma, digamma
bessel_j0, bessel_j1, bessel_y0, bessel_y1 = j0, j1, y0, y1
modified_bessel_i0, modified_bessel_i1, modified_bessel_k0, modified_bessel_k1 = i0, i1, k0, k1
scaled_modified_bessel_k0, scaled_modified_bessel_k1 = k0e, k1e


def spherical_bessel_j0(x, /):
    """Return the spherical Bessel function of the first kind of order 0: sin(x) / x, and 1 at 0.

    >>> import gputensor as gt
    >>> spherical_bessel_j0(gt.asarray([0.0], device="host")).tolist()
    [1.0]
    """
    x, dtype = computed(x, "spherical_bessel_j0")
    value = fn.where(fn.equal(x, 0), 1.0, fn.sin(x) / x)
    return astype(fn.where(fn.isinf(x), 0.0, value), dtype, copy=False)


def loggamma(x, /):
    """Return the logarithm of gamma of a real number: NaN below 0, where gamma may be negative.

    >>> import gputensor as gt
    >>> loggamma(gt.asarray([1.0, -0.5], device="host")).tolist()
    [0.0, nan]
    """
    x, dtype = computed(x, "loggamma")
    return astype(fn.where(x < 0, math.nan, lgamma(x)), dtype, copy=False)


def rgamma(x, /):
    """Return 1 / gamma(x), with 0 where gamma is infinite: at 0, -1, -2 and so on, and from 172 on.

    >>> import gputensor as gt
    >>> rgamma(gt.asarray([3.0, -1.0], device="host")).tolist()
    [0.5, 0.0]
    """
    x, dtype = _wide(x, "rgamma")
    is_pole = (x <= 0) & (x == fn.floor(x))
    return astype(fn.where(is_pole, 0.0, 1 / gamma(x)), dtype, copy=False)


def entr(x, /):
    """Return -x * log(x): 0 at 0, and -inf below.

    >>> import gputensor as gt
    >>> entr(gt.asarray([0.0, 1.0, -1.0], device="host")).tolist()
    [0.0, 0.0, -inf]
    """
    x, dtype = computed(x, "entr")
    result = fn.where(x < 0, -math.inf, 0.0 - xlogy(x, fn.maximum(x, 0)))
    return astype(fn.where(fn.isnan(x), x, result), dtype, copy=False)


def rel_entr(x, y, /):
    """Return x * log(x / y): 0 where x is 0 and y is not negative, otherwise inf unless x, y > 0.

    >>> import gputensor as gt
    >>> rel_entr(gt.asarray([0.0, 1.0, -1.0], device="host"), 1.0).tolist()
    [0.0, 0.0, inf]
    """
    x, dtype = computed(x, "rel_entr")
    is_positive = fn.logical_and(x > 0, fn.greater(y, 0))
    is_zero = fn.logical_and(fn.equal(x, 0), fn.greater_equal(y, 0))
    value = x * fn.log(fn.where(is_positive, x / y, 1.0))
    result = fn.where(is_positive, value, fn.where(is_zero, 0.0, math.inf))
    is_nan = fn.not_equal(x + y, x + y) if not _is_number(y) else fn.isnan(x)
    return astype(fn.where(is_nan, math.nan, result), dtype, copy=False)


def _is_number(value):
    return isinstance(value, (int, float))


def xlog1py(x, y, /):
    """Return x * log(1 + y): 0 where x is 0 and y is not NaN.

    >>> import gputensor as gt
    >>> xlog1py(gt.asarray([0.0, 1.0], device="host"), 0.0).tolist()
    [0.0, 0.0]
    """
    x, y = tensors((x, y))
    is_zero = fn.logical_and(fn.equal(x, 0), fn.equal(y, y))
    return fn.where(is_zero, 0.0, fn.multiply(x, fn.log1p(fn.where(is_zero, 0.0, y))))


def ndtr(x, /):
    """Return the distribution function of the standard normal distribution.

    >>> import gputensor as gt
    >>> ndtr(gt.asarray([0.0], device="host")).tolist()
    [0.5]
    """
    x, dtype = computed(x, "ndtr")
    return astype(fn.erfc(x * -math.sqrt(0.5)) / 2, dtype, copy=False)


def exp10(x, /):
    """Return 10**x.

    >>> import gputensor as gt
    >>> exp10(gt.asarray([0.0, 2.0], device="host")).tolist()
    [1.0, 100.0]
    """
    x, dtype = computed(x, "exp10")
    return astype(fn.pow(10.0, x), dtype, copy=False)


def _wide(x, name):
    """Return x in float64, and the dtype of the result."""
    x, dtype = computed(x, name)
    return astype(x, float64, copy=False), dtype


def _both(x, y, name):
    """Return both in float64, and the dtype of the result: that of their sum."""
    numbers = (int, float, np.generic)
    if isinstance(x, numbers) and isinstance(y, numbers):
        tensor_argument(x, name)
    (x, first), (y, second) = (
        (float(one), one) if isinstance(one, numbers) else _wide(one, name) for one in (x, y)
    )
    dtype = result_type(first, second)
    return x, y, float32 if dtype.kind in "biu" else dtype


def betaln(a, b, /):
    """Return the logarithm of the magnitude of the beta function.

    >>> import gputensor as gt
    >>> round(betaln(gt.asarray([1e9], device="host"), 2.0).item(), 3)
    -41.447
    """
    a, b, dtype = _both(a, b, "betaln")
    return astype(_betaln(a, b), dtype, copy=False)


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
    a, b, dtype = _both(a, b, "beta")
    size = fn.exp(_betaln(a, b))
    signs = [_is_gamma_negative(one) for one in (a, b, a + b)]
    is_negative = fn.not_equal(fn.not_equal(signs[0], signs[1]), signs[2])
    return astype(fn.where(is_negative, 0.0 - size, size), dtype, copy=False)


def binom(n, k, /):
    """Return the binomial coefficient of real n and k, both 0 or more; 0 where k is above n.

    >>> import gputensor as gt
    >>> binom(gt.asarray([5.0, 5.0], device="host"), 2.0).tolist()
    [10.0, 10.0]
    """
    n, k, dtype = _both(n, k, "binom")
    rest = fn.subtract(n, k)
    size = fn.exp(0.0 - _betaln(fn.maximum(rest, 0.0) + 1.0, fn.add(k, 1.0))) / fn.add(n, 1.0)
    is_whole = fn.logical_and(fn.equal(fn.floor(n), n), fn.equal(fn.floor(k), k))
    size = fn.where(fn.logical_and(is_whole, size < 2.0**40), fn.round(size), size)
    size = fn.where(fn.logical_and(rest < 0, is_whole), 0.0, size)
    is_known = fn.logical_and(fn.greater_equal(n, 0), fn.greater_equal(k, 0))
    is_known = fn.logical_and(is_known, fn.logical_or(rest >= 0, is_whole))
    return astype(fn.where(is_known, size, math.nan), dtype, copy=False)


def boxcox(x, lmbda, /):
    """Return the Box-Cox transform: (x**lmbda - 1) / lmbda, and log(x) where lmbda is 0.

    >>> import gputensor as gt
    >>> boxcox(gt.asarray([4.0], device="host"), 0.5).tolist()
    [2.0]
    """
    x, power, dtype = _both(x, lmbda, "boxcox")
    logarithm = fn.log(x)
    is_log = fn.less(fn.abs(power), 1e-19)
    share = fn.where(is_log, 1.0, power)
    value = fn.where(is_log, logarithm, fn.expm1(share * logarithm) / share)
    return astype(value, dtype, copy=False)


def exprel(x, /):
    """Return (exp(x) - 1) / x, and 1 at 0.

    >>> import gputensor as gt
    >>> exprel(gt.asarray([0.0], device="host")).tolist()
    [1.0]
    """
    x, dtype = _wide(x, "exprel")
    is_zero = fn.equal(x, 0)
    value = fn.expm1(x) / fn.where(is_zero, 1.0, x)
    value = fn.where(fn.equal(x, math.inf), math.inf, value)
    return astype(fn.where(is_zero, 1.0, value), dtype, copy=False)


def zeta(x, q=1, /):
    """Return Hurwitz's zeta function: the sum of ``(q + k)**-x`` over all k from 0.

    With q of 1 it is Riemann's. inf at x of 1, and where q is 0 or a negative integer; NaN for
    smaller x and for other negative q.

    >>> import gputensor as gt
    >>> round(zeta(gt.asarray([2.0], device="host")).item(), 4)
    1.6449
    """
    numbers = (int, float, np.generic)
    if isinstance(x, numbers) and isinstance(q, numbers):
        x = tensor_argument(x, "zeta")
    return fn.zeta(x, q)


given_names(sys.modules[__name__])


def __dir__():
    return sorted(__all__)
