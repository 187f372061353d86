"""Distributions made of uniform and normal numbers: gamma, beta, binomial and others.

A call makes a fixed number of draws, so it needs no wait and runs in captures and compiled
programs. It computes in float64 and rounds once, so devices give the same numbers except where a
last bit of float64 decides about a rounding.
"""

import math

from gputensor._arrays.dtypes import float32, float64, int64
from gputensor.errors import Described, argument_error, has_elements, int_argument
from gputensor.random.distributions import Target, _element, _finite, _listed, draw, normal
from gputensor.tensor import functions as fn
from gputensor.tensor.core import Tensor
from gputensor.tensor.interop import asarray, astype
from gputensor.tensor.manipulation import expand_dims
from gputensor.tensor.manipulation.axes import broadcast_shapes

__all__ = [
    "beta", "binomial", "chisquare", "dirichlet", "gamma", "geometric", "laplace", "logistic",
    "lognormal", "standard_exponential", "standard_gamma", "standard_t", "weibull",
]  # fmt: skip

# Marsaglia and Tsang's method accepts at least 95 % of its attempts, and above ENOUGH 99.9 %. The
# last attempt of an element without success, one in 3e10 or fewer, is replaced by the mode.
ATTEMPTS, ENOUGH, FEW_ATTEMPTS = 8, 100, 4


class Family:
    """One call: its parameters in float64, and the target of its draws."""

    def __init__(self, name, target, parameters, kinds=("float",), default=float32):
        self.name = name
        self.dtype = _element(target.dtype, default, kinds, name).numpy
        self.given = [self._checked(title, *one, target) for title, one in parameters.items()]
        tensors = [one for one in self.given if type(one) is Tensor]
        if target.size is None and tensors:
            target = target._replace(size=broadcast_shapes(*(one.shape for one in tensors)))
        if target.generator is None and target.device is None and tensors:
            target = target._replace(device=tensors[0].device)
        self.target = target._replace(dtype=float64)

    def _checked(self, title, value, is_positive, target):
        value = _listed(value, target)
        if type(value) is Tensor:
            return astype(value, float64, copy=False)
        number = _finite(value, self.name, title)
        if is_positive and number <= 0:
            raise argument_error(ValueError, f"{self.name}: {title}", value, "a number above 0")
        return number

    def draw(self, distribution):
        return draw(self.name, distribution, (0.0, 1.0), self.target)

    def result(self, x):
        return astype(x, self.dtype, copy=False)

    def log_gamma(self, shape):
        """Return logarithms of gamma variates, which also hold those of shapes near 0."""
        is_number = type(shape) is not Tensor
        raised = shape if is_number and shape >= 1 else (
            shape + 1 if is_number else fn.where(shape < 1, shape + 1, shape)
        )  # fmt: skip
        d = raised - 1 / 3
        c = 1 / (math.sqrt(9 * d) if is_number else fn.sqrt(9 * d))
        log_d = math.log(d) if is_number else fn.log(d)
        made = done = None
        for _ in range(FEW_ATTEMPTS if is_number and shape >= ENOUGH else ATTEMPTS):
            z, u = self.draw("normal"), self.draw("uniform")
            log_v = 3 * fn.log(1 + c * z)  # NaN, which is not accepted, below 0
            accepted = fn.log(u) < 0.5 * z * z + d * (1 + log_v - fn.exp(log_v))
            made = fn.where(accepted, log_v, 0.0) if made is None else fn.where(done, made, log_v)
            done = accepted if done is None else fn.logical_or(done, accepted)
        made = fn.where(done, made, 0.0) + log_d
        if is_number and shape >= 1:
            return made
        lowered = made + fn.log1p(-self.draw("uniform")) / shape
        return lowered if is_number else fn.where(shape < 1, lowered, made)


def standard_gamma(shape, size=None, dtype=None, *, device=None, generator=None):
    """Return numbers of the gamma distribution with scale 1; see :func:`gamma`.

    >>> standard_gamma(2.0, (2, 3), device="host").shape
    (2, 3)
    """
    target = Target(size, dtype, device, generator)
    family = Family("standard_gamma", target, {"shape": (shape, True)})
    return family.result(fn.exp(family.log_gamma(*family.given)))


def gamma(shape, scale=1.0, size=None, *, dtype=None, device=None, generator=None):
    """Return numbers of the gamma distribution.

    Parameters
    ----------
    shape, scale : float or Tensor
        Above 0; the mean is ``shape * scale``.
    size, dtype, device, generator
        As in :func:`uniform`.

    >>> bool((gamma(0.5, 2.0, 100, device="host") >= 0).all())
    True
    """
    target = Target(size, dtype, device, generator)
    family = Family("gamma", target, {"shape": (shape, True), "scale": (scale, True)})
    shape, scale = family.given
    return family.result(fn.exp(family.log_gamma(shape)) * scale)


def chisquare(df, size=None, *, dtype=None, device=None, generator=None):
    """Return numbers of the chi-square distribution with `df` degrees of freedom, above 0.

    >>> chisquare(3, size=4, device="host").shape
    (4,)
    """
    target = Target(size, dtype, device, generator)
    family = Family("chisquare", target, {"df": (df, True)})
    return family.result(2 * fn.exp(family.log_gamma(family.given[0] / 2)))


def standard_t(df, size=None, *, dtype=None, device=None, generator=None):
    """Return numbers of Student's t distribution with `df` degrees of freedom, above 0.

    >>> standard_t(3, size=4, device="host").shape
    (4,)
    """
    target = Target(size, dtype, device, generator)
    family = Family("standard_t", target, {"df": (df, True)})
    half = family.given[0] / 2
    return family.result(family.draw("normal") / fn.sqrt(fn.exp(family.log_gamma(half)) / half))


def beta(a, b, size=None, *, dtype=None, device=None, generator=None):
    """Return numbers of the beta distribution, from 0 to 1.

    Parameters
    ----------
    a, b : float or Tensor
        Above 0; the mean is ``a / (a + b)``.
    size, dtype, device, generator
        As in :func:`uniform`.

    >>> bool((beta(0.5, 2.0, 100, device="host") <= 1).all())
    True
    """
    target = Target(size, dtype, device, generator)
    family = Family("beta", target, {"a": (a, True), "b": (b, True)})
    return family.result(_beta(family, *family.given))


def _beta(family, a, b):
    return fn.sigmoid(family.log_gamma(a) - family.log_gamma(b))


def dirichlet(alpha, size=None, *, dtype=None, device=None, generator=None):
    """Return vectors along the last axis whose elements sum to 1, of the Dirichlet distribution.

    `alpha`, a Tensor or a list of numbers above 0, ends with that axis; `size` counts the vectors.

    >>> import gputensor as gt
    >>> dirichlet(gt.ones(3, device="host"), 2).shape
    (2, 3)
    """
    if isinstance(alpha, (list, tuple)):
        alpha = asarray(alpha, device=device if generator is None else generator.device)
    if type(alpha) is not Tensor or not alpha.ndim:
        raise argument_error(TypeError, "dirichlet: alpha", alpha, "a Tensor with an axis")
    if size is not None:
        size = (*(size if has_elements(size) else (size,)), alpha.shape[-1])
    target = Target(size, dtype, device, generator)
    family = Family("dirichlet", target, {"alpha": (alpha, True)})
    made = family.log_gamma(*family.given)
    made = fn.exp(made - fn.max(made, axis=-1, keepdims=True))
    return family.result(made / fn.sum(made, axis=-1, keepdims=True))


def binomial(n, p, size=None, *, dtype=None, device=None, generator=None):
    """Return how many of `n` trials succeed, each with probability `p`.

    Parameters
    ----------
    n : int, Tensor or list
        0 or more. A tensor waits for the device, because its greatest element counts the draws.
    p : float or Tensor
        From 0 to 1.
    size, device, generator
        As in :func:`uniform`.
    dtype : dtype, optional
        An integer or floating-point dtype; default: int64.

    >>> binomial(10, 1.0, 3, device="host").tolist()
    [10, 10, 10]
    """
    if isinstance(n, (Tensor, list, tuple)):
        return binomial_of_each(n, p, Target(size, dtype, device, generator))
    n = int_argument("binomial: n", n)
    if not 0 <= n < 1 << 53:
        raise argument_error(ValueError, "binomial: n", n, "0 to 2**53 - 1")
    target = Target(size, dtype, device, generator)
    kinds = ("int", "uint", "float")
    family = Family("binomial", target, {"p": (p, False)}, kinds, int64)
    (p,) = family.given
    if type(p) is not Tensor and not 0 <= p <= 1:
        raise argument_error(ValueError, "binomial: p", p, "0 to 1")
    count = None
    while n > 32:
        if n % 2 == 0:
            n, won = n - 1, family.draw("uniform") < p
            count = _sum(count, won)
        # The middle one of n uniform numbers has a beta distribution. If it is below p, so is its
        # half of the trials; the other half is again uniform, below it or above it.
        n = n // 2
        middle = _beta(family, n + 1, n + 1)
        is_below = middle <= p
        count = _sum(count, fn.where(is_below, float(n + 1), 0.0))
        p = fn.where(is_below, (p - middle) / (1 - middle), p / middle)
    while n:
        some = min(n, 8)
        draws = draw("binomial", "uniform", (0.0, 1.0), _wider(family.target, some))
        count = _sum(count, fn.sum(draws < (expand_dims(p, 0) if type(p) is Tensor else p), axis=0))
        n -= some
    return family.result(family.draw("uniform") * 0 if count is None else count)


def binomial_of_each(n, p, target):
    """Return numbers of the binomial distribution with a number of trials for each element.

    >>> import gputensor as gt
    >>> gt.random.binomial([3, 70], 1.0, device="host").tolist()
    [3, 70]
    """
    tensors = [one for one in (n, p) if isinstance(one, Tensor)]
    if target.generator is None and target.device is None and tensors:
        target = target._replace(device=tensors[0].device)
    trials = _listed(n, target)
    if trials.dtype.kind not in "biu" and trials.size:
        got = Described(trials.dtype.name)
        raise argument_error(TypeError, "binomial: n", got, "an integer dtype")
    family = Family("binomial", target, {"n": (trials, False), "p": (p, False)},
                    ("int", "uint", "float"), int64)  # fmt: skip
    n, p = family.given
    if type(p) is not Tensor and not 0 <= p <= 1:
        raise argument_error(ValueError, "binomial: p", p, "0 to 1")
    least, most = (int(fn.min(n)), int(fn.max(n))) if n.size else (0, 0)
    if least < 0 or most >= 1 << 53:
        raise argument_error(ValueError, "binomial: n", min(least, most), "0 to 2**53 - 1")
    count = family.draw("uniform") * 0
    while most > 32:  # as for one number of trials, where more than 32 are left
        is_many = n > 32
        is_even = is_many & (fn.remainder(n, 2) == 0)
        count = count + fn.where(is_even & (family.draw("uniform") < p), 1.0, 0.0)
        half = fn.floor(fn.where(is_even, n - 1, n) / 2)
        middle = _beta(family, half + 1, half + 1)
        is_below = middle <= p
        count = count + fn.where(is_many & is_below, half + 1, 0.0)
        other = fn.where(is_below, (p - middle) / (1 - middle), p / middle)
        p, n = fn.where(is_many, other, p), fn.where(is_many, half, n)
        most //= 2
    for first in range(0, most, 8):
        draws = draw("binomial", "uniform", (0.0, 1.0), _wider(family.target, min(8, most - first)))
        for i in range(draws.shape[0]):
            count = count + fn.where((draws[i] < p) & (first + i < n), 1.0, 0.0)
    return family.result(count)


def _sum(count, more):
    more = astype(more, float64, copy=False)
    return more if count is None else count + more


def _wider(target, some):
    size = () if target.size is None else target.size
    return target._replace(size=(some, *(size if has_elements(size) else (size,))))


def lognormal(mean=0.0, sigma=1.0, size=None, *, dtype=None, device=None, generator=None):
    """Return numbers whose logarithms are normal with mean `mean` and deviation `sigma`.

    >>> bool((lognormal(0, 0.5, 100, device="host") > 0).all())
    True
    """
    dtype = _element(dtype, float32, ("float",), "lognormal").numpy
    logs = normal(mean, sigma, size, dtype=float64, device=device, generator=generator)
    return astype(fn.exp(logs), dtype, copy=False)


def standard_exponential(size=None, dtype=None, *, device=None, generator=None):
    """Return exponentially distributed numbers with mean 1.

    >>> standard_exponential((2, 3), device="host").shape
    (2, 3)
    """
    target = Target(size, dtype, device, generator)
    row = _element(dtype, float32, ("float",), "standard_exponential")
    return draw("standard_exponential", "exponential", (0.0, 1.0), target._replace(dtype=row.numpy))


def weibull(a, size=None, *, dtype=None, device=None, generator=None):
    """Return numbers of the Weibull distribution with scale 1 and shape `a`, above 0.

    >>> weibull(1.5, (2, 3), device="host").shape
    (2, 3)
    """
    family = Family("weibull", Target(size, dtype, device, generator), {"a": (a, True)})
    return family.result(fn.pow(family.draw("exponential"), 1 / family.given[0]))


def _placed(name, loc, scale, target):
    family = Family(name, target, {"loc": (loc, False), "scale": (scale, False)})
    if type(family.given[1]) is not Tensor:
        _finite(scale, name, "scale", 0)
    return family, *family.given


def laplace(loc=0.0, scale=1.0, size=None, *, dtype=None, device=None, generator=None):
    """Return numbers of the Laplace distribution: exponential on both sides of `loc`.

    >>> laplace(size=(2, 3), device="host").shape
    (2, 3)
    """
    target = Target(size, dtype, device, generator)
    family, loc, scale = _placed("laplace", loc, scale, target)
    made = family.draw("exponential") - family.draw("exponential")
    return family.result(loc + scale * made)


def logistic(loc=0.0, scale=1.0, size=None, *, dtype=None, device=None, generator=None):
    """Return numbers of the logistic distribution with location `loc` and scale `scale`.

    >>> logistic(size=(2, 3), device="host").shape
    (2, 3)
    """
    target = Target(size, dtype, device, generator)
    family, loc, scale = _placed("logistic", loc, scale, target)
    made = family.draw("gumbel") - family.draw("gumbel")
    return family.result(loc + scale * made)


def geometric(p, size=None, *, dtype=None, device=None, generator=None):
    """Return the number of trials up to the first success, each with probability `p`.

    Parameters
    ----------
    p : float or Tensor
        Above 0, at most 1.
    size, device, generator
        As in :func:`uniform`.
    dtype : dtype, optional
        An integer or floating-point dtype; default: int64.

    >>> geometric(1.0, 3, device="host").tolist()
    [1, 1, 1]
    """
    target = Target(size, dtype, device, generator)
    family = Family("geometric", target, {"p": (p, True)}, ("int", "uint", "float"), int64)
    (p,) = family.given
    if type(p) is not Tensor and p > 1:
        raise argument_error(ValueError, "geometric: p", p, "above 0, at most 1")
    rate = -fn.log1p(-p) if type(p) is Tensor else -math.log1p(-p) if p < 1 else math.inf
    trials = fn.ceil(family.draw("exponential") / rate)
    return family.result(fn.maximum(trials, 1.0))
