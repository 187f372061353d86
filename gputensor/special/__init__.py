"""Special functions under the names of ``torch.special`` and ``cupyx.scipy.special``.

>>> import gputensor as gt
>>> expit(gt.asarray([0.0], device="host")).tolist()
[0.5]
"""

import math
import sys

from gputensor.nn import log_softmax, logsumexp, softmax
from gputensor.nn.activations import logsigmoid
from gputensor.special.arguments import NUMBERS, wide
from gputensor.special.betas import beta, betaln, binom, poch
from gputensor.special.probabilities import (
    bdtr,
    bdtrc,
    btdtr,
    btdtri,
    chdtr,
    chdtrc,
    chdtri,
    fdtr,
    fdtrc,
    fdtri,
    gdtr,
    gdtrc,
    nbdtr,
    nbdtrc,
    pdtr,
    pdtrc,
    pdtri,
    stdtr,
)
from gputensor.special.transforms import (
    boxcox,
    boxcox1p,
    cosdg,
    cosm1,
    cotdg,
    ellipk,
    exp1,
    huber,
    inv_boxcox,
    inv_boxcox1p,
    kl_div,
    pseudo_huber,
    radian,
    sindg,
    tandg,
    zetac,
)
from gputensor.tensor import functions as fn
from gputensor.tensor.blends import logit, xlogy
from gputensor.tensor.core import tensor_argument
from gputensor.tensor.functions import (
    betainc,
    betaincinv,
    cbrt,
    digamma,
    ellipkm1,
    erf,
    erfc,
    erfcinv,
    erfcx,
    erfinv,
    expi,
    expm1,
    expn,
    gamma,
    gammainccinv,
    gammaincinv,
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
from gputensor.tensor.manipulation.composed import rounded_once
from gputensor.tensor.numerics.gammas import computed, mvlgamma, polygamma
from gputensor.tensor.parameter_names import given_names

__all__ = [
    "bdtr", "bdtrc", "bessel_j0", "bessel_j1", "bessel_y0", "bessel_y1", "beta", "betainc",
    "betaincinv", "betaln", "binom", "boxcox", "boxcox1p", "btdtr", "btdtri", "cbrt", "chdtr",
    "chdtrc", "chdtri", "cosdg", "cosm1", "cotdg", "digamma", "ellipk", "ellipkm1", "entr",
    "erf", "erfc", "erfcinv", "erfcx", "erfinv", "exp1", "exp10", "exp2", "expi", "expit",
    "expm1", "expn", "exprel", "fdtr", "fdtrc", "fdtri", "gamma", "gammainc", "gammaincc",
    "gammainccinv", "gammaincinv", "gammaln", "gdtr", "gdtrc", "huber", "i0", "i0e", "i1",
    "i1e", "inv_boxcox", "inv_boxcox1p", "j0", "j1", "k0", "k0e", "k1", "k1e", "kl_div",
    "log1p", "log_expit", "log_ndtr", "log_softmax", "loggamma", "logit", "logsumexp",
    "modified_bessel_i0", "modified_bessel_i1", "modified_bessel_k0", "modified_bessel_k1",
    "multigammaln", "nbdtr", "nbdtrc", "ndtr", "ndtri", "pdtr", "pdtrc", "pdtri", "poch",
    "polygamma", "pseudo_huber", "psi", "radian", "rel_entr", "rgamma", "round",
    "scaled_modified_bessel_k0", "scaled_modified_bessel_k1", "sinc", "sindg", "softmax",
    "spherical_bessel_j0", "stdtr", "tandg", "xlog1py", "xlogy", "y0", "y1", "zeta", "zetac",
]  # fmt: skip

round = fn.round
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
    x, dtype = wide(x, "rgamma")
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


@rounded_once
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


def exprel(x, /):
    """Return (exp(x) - 1) / x, and 1 at 0.

    >>> import gputensor as gt
    >>> exprel(gt.asarray([0.0], device="host")).tolist()
    [1.0]
    """
    x, dtype = wide(x, "exprel")
    is_zero = fn.equal(x, 0)
    value = fn.expm1(x) / fn.where(is_zero, 1.0, x)
    value = fn.where(fn.equal(x, math.inf), math.inf, value)
    return astype(fn.where(is_zero, 1.0, value), dtype, copy=False)


def zeta(x, q=1, /):
    """Return Hurwitz's zeta function: the sum of ``(q + k)**-x`` over all k from 0.

    With q of 1 it is Riemann's. inf at x of 1, and where q is 0 or a negative integer; NaN for
    smaller x and for other negative q. SciPy's function of one argument continues Riemann's
    function to x below 1; this one is NaN there.

    >>> import gputensor as gt
    >>> f"{zeta(gt.asarray([2.0], device='host')).item():.4f}"
    '1.6449'
    """
    if isinstance(x, NUMBERS) and isinstance(q, NUMBERS):
        x = tensor_argument(x, "zeta")
    return fn.zeta(x, q)


given_names(sys.modules[__name__])


def __dir__():
    return sorted(__all__)
