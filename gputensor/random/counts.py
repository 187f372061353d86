"""Distributions of counts: the hypergeometric ones and the logarithmic one."""

import operator

import numpy as np

from gputensor._arrays.dtypes import float64, int64
from gputensor.errors import argument_error, has_elements, list_argument
from gputensor.random.distributions import Target
from gputensor.random.families import Family
from gputensor.tensor import functions as fn
from gputensor.tensor.core import Tensor
from gputensor.tensor.interop import asarray, astype
from gputensor.tensor.sorting import searchsorted

__all__ = ["hypergeometric", "logseries", "multivariate_hypergeometric"]

KINDS = ("int", "uint", "float")
LARGEST = 10**9  # of the number of items, as in NumPy's generators
DEVIATIONS = 12  # beyond this many standard deviations, probabilities are below 1e-30


def _int(name, value):
    try:
        value = operator.index(value)
    except TypeError:
        raise argument_error(TypeError, name, value, "an int") from None
    if not 0 <= value < LARGEST:
        raise argument_error(ValueError, name, value, f"0 to {LARGEST - 1}")
    return value


def _distribution(good, bad, chosen):
    """Return the least count of a table, and the distribution function from there on."""
    low, high = max(0, chosen - bad), min(good, chosen)
    total = good + bad
    mean = chosen * (good / total) if total else 0
    variance = mean * (bad / total) * ((total - chosen) / max(total - 1, 1)) if total else 0
    reach = DEVIATIONS * variance**0.5 + 200
    low, high = max(low, int(mean - reach)), min(high, int(mean + reach) + 1)
    k = np.arange(low, high, dtype=np.float64)
    steps = np.log((good - k) * (chosen - k)) - np.log((k + 1) * (bad - chosen + k + 1))
    logs = np.concatenate([[0.0], np.cumsum(steps)])
    shares = np.exp(logs - logs.max())
    sums = np.cumsum(shares)
    return low, sums / sums[-1]


def hypergeometric(ngood, nbad, nsample, size=None, *, dtype=None, device=None, generator=None):
    """Return how many of `nsample` items, drawn without replacement, are good ones.

    Made by inversion of the distribution function, which the host computes.

    Parameters
    ----------
    ngood, nbad, nsample : int
        0 or more and below 10**9; `nsample` is at most ``ngood + nbad``.
    size, device, generator
        As in :func:`uniform`.
    dtype : dtype, optional
        An integer or floating-point dtype; default: int64.

    >>> hypergeometric(5, 0, 3, 2, device="host").tolist()
    [3, 3]
    """
    name = "hypergeometric"
    good, bad = _int(f"{name}: ngood", ngood), _int(f"{name}: nbad", nbad)
    chosen = _int(f"{name}: nsample", nsample)
    if chosen > good + bad:
        rule = f"at most {good + bad}, the number of items"
        raise argument_error(ValueError, f"{name}: nsample", nsample, rule)
    family = Family(name, Target(size, dtype, device, generator), {}, KINDS, int64)
    low, sums = _distribution(good, bad, chosen)
    u = family.draw("uniform")
    table = asarray(sums[:-1], float64, device=u.device)
    found = searchsorted(table, u, "right") if table.size else fn.multiply(u, 0)
    return family.result(astype(found, float64) + low)


def _inverted(u, good, bad, chosen):
    """Return the counts at `u` of the distribution function, for an array of `chosen`."""
    counts = np.empty(u.shape, np.int64)
    for number in np.unique(chosen):
        low, sums = _distribution(good, bad, int(number))
        at = chosen == number
        counts[at] = low + np.searchsorted(sums[:-1], u[at], "right")
    return counts


def multivariate_hypergeometric(
    colors, nsample, size=None, *, dtype=None, device=None, generator=None
):
    """Return how many of `nsample` items, drawn without replacement, have each color.

    Made color by color: the number of one color among the items left is hypergeometric. The host
    inverts the distribution functions, so the call waits for the device.

    Parameters
    ----------
    colors : Tensor or sequence of int
        The number of items of each color; their sum is below 10**9.
    nsample : int
        At most the sum of `colors`.
    size, device, generator
        As in :func:`uniform`; the counts are along a new last axis.
    dtype : dtype, optional
        An integer or floating-point dtype; default: int64.

    >>> multivariate_hypergeometric([2, 0, 3], 5, 2, device="host").tolist()
    [[2, 0, 3], [2, 0, 3]]
    """
    name = "multivariate_hypergeometric"
    if isinstance(colors, Tensor) and generator is None and device is None:
        device = colors.device
    given = colors.tolist() if hasattr(colors, "tolist") else colors
    numbers = [_int(f"{name}: colors", one) for one in list_argument(f"{name}: colors", given)]
    total, chosen = sum(numbers), _int(f"{name}: nsample", nsample)
    if total >= LARGEST:
        raise argument_error(ValueError, f"{name}: colors", colors, f"a sum below {LARGEST}")
    if chosen > total:
        rule = f"at most {total}, the number of items"
        raise argument_error(ValueError, f"{name}: nsample", nsample, rule)
    shape = () if size is None else tuple(size) if has_elements(size) else (size,)
    draws = max(len(numbers) - 1, 0)
    target = Target((*shape, draws), dtype, device, generator)
    family = Family(name, target, {}, KINDS, int64)
    u = family.draw("uniform")
    shares = u.numpy()
    counts = np.zeros((*shares.shape[:-1], len(numbers)), np.int64)
    left = np.full(shares.shape[:-1], chosen)
    for place in range(draws):
        total -= numbers[place]
        counts[..., place] = _inverted(shares[..., place], numbers[place], total, left)
        left = left - counts[..., place]
    if numbers:
        counts[..., -1] = left
    return family.result(asarray(counts, device=u.device))


def logseries(p, size=None, *, dtype=None, device=None, generator=None):
    """Return integers k of 1 or more with probabilities proportional to ``p**k / k``.

    Made by the method LK of Kemp (1981).

    Parameters
    ----------
    p : float or Tensor
        From 0 to 1, excluding 1.
    size, device, generator
        As in :func:`uniform`.
    dtype : dtype, optional
        An integer or floating-point dtype; default: int64.

    >>> logseries(0.0, 3, device="host").tolist()
    [1, 1, 1]
    """
    target = Target(size, dtype, device, generator)
    family = Family("logseries", target, {"p": (p, False)}, KINDS, int64)
    (p,) = family.given
    if type(p) is not Tensor and not 0 <= p < 1:
        raise argument_error(ValueError, "logseries: p", p, "0 to 1, excluding 1")
    v, u = 1 - family.draw("uniform"), family.draw("uniform")
    rate = fn.log1p(-p) if type(p) is Tensor else float(np.log1p(-p))
    q = -fn.expm1(rate * u)
    made = fn.floor(1 + fn.log(v) / fn.log(q))
    return family.result(fn.where(fn.logical_or(v >= p, q <= 0), 1.0, fn.maximum(made, 1.0)))
