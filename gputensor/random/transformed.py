"""Further distributions of NumPy: transforms of uniform, exponential and normal numbers.

As those of `families`, they make a fixed number of draws, so they need no wait.
"""

import math

from gputensor._arrays.dtypes import float32, float64, int64
from gputensor.errors import Described, argument_error, float_argument, has_elements
from gputensor.linalg.decompositions import svd
from gputensor.random.distributions import Target, _element, normal, poisson
from gputensor.random.families import Family, chisquare, gamma
from gputensor.tensor import functions as fn
from gputensor.tensor.core import Tensor
from gputensor.tensor.interop import asarray, astype
from gputensor.tensor.manipulation.axes import broadcast_shapes
from gputensor.tensor.products import matmul

__all__ = [
    "f", "multivariate_normal", "negative_binomial", "noncentral_chisquare", "noncentral_f",
    "pareto", "power", "rayleigh", "standard_cauchy", "triangular", "wald",
]  # fmt: skip


def rayleigh(scale=1.0, size=None, *, dtype=None, device=None, generator=None):
    """Return numbers of the Rayleigh distribution: lengths of vectors of two normal numbers.

    >>> rayleigh(2.0, (2, 3), device="host").shape
    (2, 3)
    """
    family = Family("rayleigh", Target(size, dtype, device, generator), {"scale": (scale, True)})
    return family.result(fn.sqrt(2 * family.draw("exponential")) * family.given[0])


def pareto(a, size=None, *, dtype=None, device=None, generator=None):
    """Return numbers of the Pareto II distribution with shape `a`: the Pareto one minus 1.

    >>> bool((pareto(3.0, 100, device="host") >= 0).all())
    True
    """
    family = Family("pareto", Target(size, dtype, device, generator), {"a": (a, True)})
    return family.result(fn.expm1(family.draw("exponential") / family.given[0]))


def power(a, size=None, *, dtype=None, device=None, generator=None):
    """Return numbers from 0 to 1 whose distribution function is ``x**a``.

    >>> power(3.0, (2, 3), device="host").shape
    (2, 3)
    """
    family = Family("power", Target(size, dtype, device, generator), {"a": (a, True)})
    return family.result(fn.pow(-fn.expm1(-family.draw("exponential")), 1 / family.given[0]))


def standard_cauchy(size=None, *, dtype=None, device=None, generator=None):
    """Return numbers of the Cauchy distribution: quotients of two normal numbers.

    >>> standard_cauchy((2, 3), device="host").shape
    (2, 3)
    """
    family = Family("standard_cauchy", Target(size, dtype, device, generator), {})
    return family.result(fn.tan(math.pi * (family.draw("uniform") - 0.5)))


def triangular(left, mode, right, size=None, *, dtype=None, device=None, generator=None):
    """Return numbers from `left` to `right` whose density is a triangle with its peak at `mode`.

    >>> bool((triangular(1, 2, 5, 100, device="host") >= 1).all())
    True
    """
    target = Target(size, dtype, device, generator)
    parameters = {"left": (left, False), "mode": (mode, False), "right": (right, False)}
    family = Family("triangular", target, parameters)
    left, mode, right = family.given
    if not any(type(one) is Tensor for one in family.given) and (
        not left <= mode <= right or left == right
    ):
        got = Described(f"{left}, {mode}, {right}")
        raise argument_error(ValueError, "triangular: left, mode, right", got, "ascending numbers")
    u, width = family.draw("uniform"), right - left
    rising = left + fn.sqrt(u * width * (mode - left))
    falling = right - fn.sqrt((1 - u) * width * (right - mode))
    return family.result(fn.where(u * width < mode - left, rising, falling))


def wald(mean, scale, size=None, *, dtype=None, device=None, generator=None):
    """Return numbers of the Wald, or inverse Gaussian, distribution.

    Made by the method of Michael, Schucany and Haas (1976).

    >>> bool((wald(1.0, 2.0, 100, device="host") > 0).all())
    True
    """
    target = Target(size, dtype, device, generator)
    family = Family("wald", target, {"mean": (mean, True), "scale": (scale, True)})
    mean, scale = family.given
    y = fn.square(family.draw("normal")) * mean
    # The smaller root of the quadratic equation, written without a cancellation.
    small = mean * 2 * scale / (2 * scale + y + fn.sqrt(y * (4 * scale + y)))
    is_small = family.draw("uniform") * (mean + small) <= mean
    return family.result(fn.where(is_small, small, mean * mean / small))


def f(dfnum, dfden, size=None, *, dtype=None, device=None, generator=None):
    """Return numbers of the F distribution: quotients of chi-square numbers over their degrees.

    >>> f(3.0, 4.0, (2, 3), device="host").shape
    (2, 3)
    """
    dtype = _element(dtype, float32, ("float",), "f").numpy
    dfnum = dfnum if isinstance(dfnum, Tensor) else float_argument("f: dfnum", dfnum)
    dfden = dfden if isinstance(dfden, Tensor) else float_argument("f: dfden", dfden)
    if size is None:
        size = broadcast_shapes(*(getattr(one, "shape", ()) for one in (dfnum, dfden)))
    options = {"dtype": float64, "device": device, "generator": generator}
    above, below = (chisquare(df, size, **options) / df for df in (dfnum, dfden))
    return astype(above / below, dtype, copy=False)


def noncentral_chisquare(df, nonc, size=None, *, dtype=None, device=None, generator=None):
    """Return sums of squares of `df` normal numbers whose squared means sum to `nonc`.

    >>> noncentral_chisquare(3.0, 2.0, (2, 3), device="host").shape
    (2, 3)
    """
    dtype = _element(dtype, float32, ("float",), "noncentral_chisquare").numpy
    df = df if isinstance(df, Tensor) else float_argument("noncentral_chisquare: df", df)
    nonc = nonc if isinstance(nonc, Tensor) else float_argument("noncentral_chisquare: nonc", nonc)
    if size is None:
        size = broadcast_shapes(*(getattr(one, "shape", ()) for one in (df, nonc)))
    options = {"dtype": float64, "device": device, "generator": generator}
    further = 2 * poisson(nonc / 2, size, **options)
    made = gamma((df + further) / 2, 2.0, size, **options)
    return astype(made, dtype, copy=False)


def noncentral_f(dfnum, dfden, nonc, size=None, *, dtype=None, device=None, generator=None):
    """Return numbers of the F distribution whose numerator has the noncentrality `nonc`.

    >>> noncentral_f(3.0, 4.0, 1.0, (2, 3), device="host").shape
    (2, 3)
    """
    dtype = _element(dtype, float32, ("float",), "noncentral_f").numpy
    dfnum = dfnum if isinstance(dfnum, Tensor) else float_argument("noncentral_f: dfnum", dfnum)
    dfden = dfden if isinstance(dfden, Tensor) else float_argument("noncentral_f: dfden", dfden)
    nonc = nonc if isinstance(nonc, Tensor) else float_argument("noncentral_f: nonc", nonc)
    if size is None:
        size = broadcast_shapes(*(getattr(one, "shape", ()) for one in (dfnum, dfden, nonc)))
    options = {"dtype": float64, "device": device, "generator": generator}
    above = noncentral_chisquare(dfnum, nonc, size, **options) / dfnum
    return astype(above / (chisquare(dfden, size, **options) / dfden), dtype, copy=False)


def negative_binomial(n, p, size=None, *, dtype=None, device=None, generator=None):
    """Return the number of failures before `n` successes, each of probability `p`.

    >>> negative_binomial(3, 0.5, (2, 3), device="host").shape
    (2, 3)
    """
    dtype = _element(dtype, int64, ("int", "uint", "float"), "negative_binomial").numpy
    n = n if isinstance(n, Tensor) else float_argument("negative_binomial: n", n)
    p = p if isinstance(p, Tensor) else float_argument("negative_binomial: p", p)
    if size is None:
        size = broadcast_shapes(*(getattr(one, "shape", ()) for one in (n, p)))
    options = {"dtype": float64, "device": device, "generator": generator}
    return astype(poisson(gamma(n, (1 - p) / p, size, **options), **options), dtype, copy=False)


def multivariate_normal(mean, cov, size=None, *, dtype=None, device=None, generator=None):
    """Return normally distributed vectors with a given mean and covariance matrix.

    Parameters
    ----------
    mean : Tensor or list
        One dimension, n numbers.
    cov : Tensor or list
        Two dimensions, n by n; symmetric, with eigenvalues of 0 or more.
    size, dtype, device, generator
        As in :func:`uniform`; the vectors are along a new last axis.

    >>> multivariate_normal([0, 1], [[1, 0], [0, 2]], 5, device="host").shape
    (5, 2)
    """
    dtype = _element(dtype, float32, ("float",), "multivariate_normal").numpy
    place = next((one.device for one in (mean, cov) if isinstance(one, Tensor)), device)
    if generator is not None and not hasattr(generator, "device"):
        raise argument_error(TypeError, "multivariate_normal: generator", generator, "a Generator")
    place = generator.device if place is None and generator is not None else place
    mean, cov = (
        astype(one if isinstance(one, Tensor) else asarray(one, device=place), float64)
        for one in (mean, cov)
    )
    if mean.ndim != 1 or cov.shape != mean.shape * 2:
        got = Described(f"shapes {mean.shape} and {cov.shape}")
        raise argument_error(ValueError, "multivariate_normal: mean, cov", got, "(n,) and (n, n)")
    size = () if size is None else tuple(size) if has_elements(size) else (size,)
    drawn = normal(0.0, 1.0, (*size, mean.size), dtype=float64, device=mean.device,
                   generator=generator)  # fmt: skip
    u, s, _ = svd(cov)
    # The symmetric root is the same on every device; the signs of the columns of `u` are not.
    made = matmul(drawn, matmul(u * fn.sqrt(s), u.T))
    return astype(made + mean, dtype, copy=False)
