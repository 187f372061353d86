"""Special functions under the names of ``torch.special`` and ``cupyx.scipy.special``.

>>> import gputensor as gt
>>> expit(gt.asarray([0.0], device="host")).tolist()
[0.5]
"""

import math
import sys

from gputensor._arrays.dtypes import float64
from gputensor.nn import log_softmax, logsumexp, softmax
from gputensor.nn.activations import logsigmoid
from gputensor.tensor import functions as fn
from gputensor.tensor.blends import logit, xlogy
from gputensor.tensor.functions import (
    cbrt,
    digamma,
    erf,
    erfc,
    erfinv,
    expm1,
    i0,
    igamma,
    igammac,
    lgamma,
    log1p,
    sigmoid,
    sinc,
)
from gputensor.tensor.interop import astype
from gputensor.tensor.manipulation.arithmetic import exp2
from gputensor.tensor.numerics.gammas import computed, mvlgamma, polygamma
from gputensor.tensor.parameter_names import given_names

__all__ = [
    "cbrt", "digamma", "entr", "erf", "erfc", "erfinv", "exp10", "exp2", "expit", "expm1", "gamma",
    "gammainc", "gammaincc", "gammaln", "i0", "log1p", "log_expit", "log_softmax", "logit",
    "logsumexp", "multigammaln", "ndtr", "polygamma", "psi", "rel_entr", "sinc", "softmax",
    "xlog1py", "xlogy",
]  # fmt: skip

expit, gammainc, gammaincc, gammaln = sigmoid, igamma, igammac, lgamma
log_expit, multigammaln, psi = logsigmoid, mvlgamma, digamma


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


def gamma(x, /):
    """Return the gamma function; inf at 0, and NaN at negative integers.

    It is computed in float64 from its logarithm: the relative error is below 1e-12.

    >>> import gputensor as gt
    >>> gt.round(gamma(gt.asarray([1.0, 4.0], device="host")), 4).tolist()
    [1.0, 6.0]
    """
    x, dtype = computed(x, "gamma")
    wide = astype(x, float64, copy=False)
    whole = fn.floor(wide)
    is_odd = fn.logical_and(wide < 0, fn.not_equal(fn.remainder(whole, 2), 0))
    size = fn.exp(fn.lgamma(wide))
    size = fn.where(fn.equal(wide, 0), 1 / wide, fn.where(is_odd, 0.0 - size, size))
    is_pole = fn.logical_and(wide < 0, fn.equal(whole, wide))
    return astype(fn.where(is_pole, math.nan, size), dtype, copy=False)


given_names(sys.modules[__name__])


def __dir__():
    return sorted(__all__)
