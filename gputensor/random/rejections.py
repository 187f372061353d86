"""Distributions made by rejection, with a fixed number of attempts: Zipf's and von Mises'.

An element without success in all attempts, one in 1e10 or fewer, gets the mode.
"""

import math

from gputensor._arrays.dtypes import int64
from gputensor.errors import argument_error
from gputensor.random.distributions import Target, _finite
from gputensor.random.families import Family
from gputensor.tensor import functions as fn
from gputensor.tensor.core import Tensor

__all__ = ["vonmises", "zipf"]

# Devroye's method for Zipf's law accepts at least 69 % of its attempts, Best and Fisher's at least
# 65 %: 0.31**20 and 0.35**22 are below 1e-10.
ZIPF_ATTEMPTS, MISES_ATTEMPTS = 20, 22
LARGEST = float(1 << 62)
ALMOST_FLAT, ALMOST_NORMAL = 1e-8, 1e6  # of kappa, as in NumPy


def zipf(a, size=None, *, dtype=None, device=None, generator=None):
    """Return integers k of 1 or more with probabilities proportional to ``k**-a``.

    Made by the method of Devroye (1986, X.6.1); numbers above 2**62 do not occur.

    Parameters
    ----------
    a : float or Tensor
        Above 1.
    size, device, generator
        As in :func:`uniform`.
    dtype : dtype, optional
        An integer or floating-point dtype; default: int64.

    >>> bool((zipf(2.0, 100, device="host") >= 1).all())
    True
    """
    target = Target(size, dtype, device, generator)
    family = Family("zipf", target, {"a": (a, True)}, ("int", "uint", "float"), int64)
    (a,) = family.given
    if type(a) is not Tensor and a <= 1:
        raise argument_error(ValueError, "zipf: a", a, "a number above 1")
    power = fn.maximum(a - 1, 1e-15) if type(a) is Tensor else a - 1
    b = fn.exp(power * math.log(2)) if type(a) is Tensor else 2.0 ** min(power, 1000)
    least = fn.exp(-power * math.log(LARGEST)) if type(a) is Tensor else LARGEST**-power
    made = done = None
    for _ in range(ZIPF_ATTEMPTS):
        u, v = family.draw("uniform"), family.draw("uniform")
        u = u * least + (1 - u)  # from `least` to 1, so that no number is too large
        x = fn.floor(fn.exp(fn.log(u) / -power))
        t = fn.exp(fn.log1p(1 / x) * power)
        accepted = v * x * (t - 1) / (b - 1) <= t / b
        made = fn.where(accepted, x, 1.0) if made is None else fn.where(done, made, x)
        done = accepted if done is None else fn.logical_or(done, accepted)
    return family.result(fn.where(done, made, 1.0))


def vonmises(mu, kappa, size=None, *, dtype=None, device=None, generator=None):
    """Return angles from -pi to pi of the von Mises distribution, the normal one on a circle.

    Made by the method of Best and Fisher (1979).

    Parameters
    ----------
    mu : float or Tensor
        The mean angle.
    kappa : float or Tensor
        The concentration, 0 or more.
    size, dtype, device, generator
        As in :func:`uniform`.

    >>> bool((abs(vonmises(0.0, 4.0, 100, device="host")) < 3.15).all())
    True
    """
    target = Target(size, dtype, device, generator)
    family = Family("vonmises", target, {"mu": (mu, False), "kappa": (kappa, False)})
    mu, kappa = family.given
    if type(kappa) is not Tensor:
        _finite(kappa, "vonmises", "kappa", 0)
    flat = math.pi * (2 * family.draw("uniform") - 1)
    k = fn.clip(kappa, ALMOST_FLAT, ALMOST_NORMAL) if type(kappa) is Tensor else (
        min(max(kappa, ALMOST_FLAT), ALMOST_NORMAL)
    )  # fmt: skip
    s = _shape(k)
    made = done = None
    for _ in range(MISES_ATTEMPTS):
        z = fn.cos(math.pi * family.draw("uniform"))
        w = (1 + s * z) / (s + z)
        y = k * (s - w)
        v = family.draw("uniform")
        accepted = fn.logical_or(y * (2 - y) >= v, fn.log(y / v) + 1 >= y)
        made = fn.where(accepted, w, 1.0) if made is None else fn.where(done, made, w)
        done = accepted if done is None else fn.logical_or(done, accepted)
    angle = fn.acos(fn.clip(fn.where(done, made, 1.0), -1, 1))
    angle = fn.where(family.draw("uniform") < 0.5, -angle, angle)
    normal = family.draw("normal")
    if type(kappa) is Tensor:
        angle = fn.where(kappa > ALMOST_NORMAL, normal / fn.sqrt(kappa), angle)
        angle = fn.where(kappa < ALMOST_FLAT, flat, angle)
    elif kappa > ALMOST_NORMAL:
        angle = normal / math.sqrt(kappa)
    elif kappa < ALMOST_FLAT:
        angle = flat
    return family.result(fn.remainder(angle + mu + math.pi, 2 * math.pi) - math.pi)


def _shape(k):
    """Return the parameter of the wrapped Cauchy distribution that covers that of kappa."""
    sqrt = fn.sqrt if type(k) is Tensor else math.sqrt
    # rho is (r - sqrt(2 r)) / (2 k), written without the cancellation near 0.
    r = 1 + sqrt(1 + 4 * k * k)
    rho = 2 * k / (r + sqrt(2 * r))
    return (1 + rho * rho) / (2 * rho)
