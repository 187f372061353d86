"""Random tensors of each distribution.

The numbers follow from the seed, the generator's counter and the index of the element: they are the
same on every GPU and on the host device, bit for bit. Each draw begins a new block of 128 bits.
"""

import math
import operator
from typing import Any, NamedTuple

import numpy as np

from gputensor._arrays.dtypes import bool_, dtype_code, float32, float64, int64
from gputensor._arrays.element_types import DTYPES
from gputensor.errors import Described, argument_error
from gputensor.random.states import state_of
from gputensor.tensor import functions as fn
from gputensor.tensor.core import Tensor
from gputensor.tensor.engine import queue_call
from gputensor.tensor.interop import astype
from gputensor.tensor.manipulation import empty
from gputensor.tensor.manipulation.axes import broadcast_shapes

__all__ = [
    "bernoulli", "exponential", "gumbel", "integers", "normal", "poisson", "rand", "randint",
    "randn", "random", "standard_normal", "uniform",
]  # fmt: skip


class Target(NamedTuple):
    """Where a draw goes: the arguments that all functions share."""

    size: Any = None
    dtype: Any = None
    device: Any = None
    generator: Any = None


def draw(name, distribution, ends, target):
    """Queue one draw; the numbers `ends` fit the distribution."""
    state = state_of(target.generator, target.device, name)
    shape = () if target.size is None else target.size
    out = empty(shape, dtype=target.dtype, device=state.device)
    if out.size:
        queue_call("random", (distribution, *ends), (out, state), (), name)
    return out


def _element(dtype, default, kinds, name):
    """The row of a dtype argument whose kind is one of those."""
    row = DTYPES[dtype_code(default if dtype is None else dtype)]
    if row.kind not in kinds:
        rule = "a floating-point dtype" if "float" in kinds else "bool or an integer dtype"
        raise argument_error(TypeError, f"{name}: dtype", Described(row.name), rule)
    return row


def _finite(value, name, title, least=-math.inf):
    number = float(value)
    if not math.isfinite(number) or number < least:
        rule = "a finite number" if least < 0 else f"a finite number, {least} or more"
        raise argument_error(ValueError, f"{name}: {title}", value, rule)
    return number


def _floats(name, distribution, pair, target):
    """A draw with place and scale, either of which may be a tensor."""
    dtype = _element(target.dtype, float32, ("float",), name).numpy
    target = target._replace(dtype=dtype)
    tensors = [one for one in pair if type(one) is Tensor]
    if not tensors:
        return draw(name, distribution, pair, target)
    if target.size is None:
        target = target._replace(size=broadcast_shapes(*(one.shape for one in tensors)))
    if target.generator is None and target.device is None:
        target = target._replace(device=tensors[0].device)
    made = draw(name, distribution, (0.0, 1.0), target)
    place, scale = pair
    return astype(fn.add(fn.multiply(made, scale), place), dtype, copy=False)


def uniform(low=0.0, high=1.0, size=None, *, dtype=None, device=None, generator=None):
    """Return numbers of low to high, without high, every one as likely.

    Parameters
    ----------
    low, high : float or Tensor
    size : int or sequence of int, optional
        The shape; one number when not given.
    dtype : dtype, optional
        float32 when not given, float64, float16 or bfloat16; a number has as many random bits as
        the dtype has between 0.5 and 1.
    device : optional
        The generator's, or the current device.
    generator : Generator, optional
        The default generator of the device when not given; a state of a program, too.

    >>> import gputensor as gt
    >>> rng = gt.random.generator(seed=0, device="host")
    >>> (uniform(2, 3, size=2, generator=rng) * 10).astype("int32").tolist()
    [23, 28]
    """
    target = Target(size, dtype, device, generator)
    if type(low) is Tensor or type(high) is Tensor:
        return _floats("uniform", "uniform", (low, fn.subtract(high, low)), target)
    low = _finite(low, "uniform", "low")
    high = _finite(high, "uniform", "high")
    if low > high:
        raise argument_error(ValueError, "uniform: high", high, f"{low} or more, as low is")
    return _floats("uniform", "uniform", (low, high), target)


def random(size=None, *, dtype=None, device=None, generator=None):
    """Return uniform numbers of 0 to 1, without 1; see :func:`uniform`.

    >>> random((2, 3), device="host").shape
    (2, 3)
    """
    return _floats("random", "uniform", (0.0, 1.0), Target(size, dtype, device, generator))


def rand(*size, dtype=None, device=None, generator=None):
    """Return uniform numbers of 0 to 1; the extents are arguments, as in PyTorch.

    >>> rand(2, 3, device="host").shape
    (2, 3)
    """
    target = Target(_extents(size), dtype, device, generator)
    return _floats("rand", "uniform", (0.0, 1.0), target)


def _extents(size):
    is_one = len(size) == 1 and isinstance(size[0], (tuple, list))
    return size[0] if is_one else size


def normal(loc=0.0, scale=1.0, size=None, *, dtype=None, device=None, generator=None):
    """Return numbers of the normal distribution with a mean and a standard deviation.

    Parameters
    ----------
    loc, scale : float or Tensor
    size, dtype, device, generator
        As in :func:`uniform`.

    >>> import gputensor as gt
    >>> rng = gt.random.generator(seed=0, device="host")
    >>> normal(5, 2, size=(3, 4), generator=rng).shape
    (3, 4)
    """
    return _scaled("normal", "normal", (loc, scale), Target(size, dtype, device, generator))


def _scaled(name, distribution, pair, target):
    place, scale = pair
    if type(place) is not Tensor:
        place = _finite(place, name, "loc")
    if type(scale) is not Tensor:
        scale = _finite(scale, name, "scale", 0)
    return _floats(name, distribution, (place, scale), target)


def standard_normal(size=None, *, dtype=None, device=None, generator=None):
    """Return numbers of the normal distribution with mean 0 and deviation 1.

    >>> standard_normal((2, 3), device="host").shape
    (2, 3)
    """
    target = Target(size, dtype, device, generator)
    return _floats("standard_normal", "normal", (0.0, 1.0), target)


def randn(*size, dtype=None, device=None, generator=None):
    """Return normal numbers of mean 0 and deviation 1; the extents are arguments, as in PyTorch.

    >>> randn(2, 3, device="host").shape
    (2, 3)
    """
    target = Target(_extents(size), dtype, device, generator)
    return _floats("randn", "normal", (0.0, 1.0), target)


def exponential(scale=1.0, size=None, *, dtype=None, device=None, generator=None):
    """Return numbers of the exponential distribution with a mean, `scale`.

    >>> bool((exponential(2.0, 100, device="host") >= 0).all())
    True
    """
    target = Target(size, dtype, device, generator)
    return _scaled("exponential", "exponential", (0.0, scale), target)


def gumbel(loc=0.0, scale=1.0, size=None, *, dtype=None, device=None, generator=None):
    """Return numbers of the Gumbel distribution, of the greatest of many.

    >>> gumbel(size=(2, 3), device="host").shape
    (2, 3)
    """
    return _scaled("gumbel", "gumbel", (loc, scale), Target(size, dtype, device, generator))


def integers(low, high=None, size=None, *, dtype=None, endpoint=False, device=None, generator=None):
    """Return integers of low to high, without high, every one exactly as likely.

    Parameters
    ----------
    low, high : int
        0 and `low` when `high` is not given.
    size, device, generator
        As in :func:`uniform`.
    dtype : dtype, optional
        int64 when not given, any other integer dtype, bool.
    endpoint : bool
        Whether `high` is among them.

    >>> import gputensor as gt
    >>> integers(6, size=5, generator=gt.random.generator(seed=0, device="host")).tolist()
    [2, 5, 4, 3, 5]
    """
    return _integers("integers", (low, high, endpoint), Target(size, dtype, device, generator))


def _integers(name, ends, target):
    low, high, endpoint = ends
    low, high = (0, low) if high is None else (low, high)
    low, greatest = operator.index(low), operator.index(high) - (not endpoint)
    row = _element(target.dtype, int64, ("bool", "int", "uint"), name)
    limits = (0, 1) if row.kind == "bool" else (np.iinfo(row.numpy).min, np.iinfo(row.numpy).max)
    if low > greatest:
        got = Described(f"{low} to {greatest}")
        raise argument_error(ValueError, f"{name}: ends", got, "one integer at least")
    for value in (low, greatest):
        if not limits[0] <= value <= limits[1]:
            rule = f"{limits[0]} to {limits[1]}, which {row.name} holds"
            raise argument_error(ValueError, f"{name}: ends", value, rule)
    return draw(name, "integers", (low, greatest), target._replace(dtype=row.numpy))


def randint(low, high=None, size=None, *, dtype=None, device=None, generator=None):
    """Return integers of low to high, without high; ``randint(high, (2, 3))`` as in PyTorch, too.

    >>> randint(10, (2, 3), device="host").shape
    (2, 3)
    """
    if isinstance(high, (tuple, list)) and size is None:
        high, size = None, high
    return _integers("randint", (low, high, False), Target(size, dtype, device, generator))


def poisson(lam=1.0, size=None, *, dtype=None, device=None, generator=None):
    """Return counts of the Poisson distribution with mean `lam`, as floats.

    Parameters
    ----------
    lam : float or Tensor
        0 or more.
    size, device, generator
        As in :func:`uniform`.
    dtype : dtype, optional
        float32, or that of a floating-point tensor `lam`, when not given; any real dtype.

    >>> import gputensor as gt
    >>> rng = gt.random.generator(seed=0, device="host")
    >>> poisson(3.0, 4, generator=rng).tolist()
    [5.0, 3.0, 2.0, 0.0]
    """
    target = Target(size, float64, device, generator)
    if type(lam) is Tensor:
        if size is None:
            target = target._replace(size=lam.shape)
        if generator is None and device is None:
            target = target._replace(device=lam.device)
        if dtype is None:
            dtype = lam.dtype if lam.dtype.kind in "fV" else float32
    else:
        lam = _finite(lam, "poisson", "lam", 0)
    # In float64, whose shares have enough bits for the rare counts.
    share = draw("poisson", "uniform", (0.0, 1.0), target)
    return astype(fn.poisson_quantile(share, lam), dtype or float32, copy=False)


def bernoulli(p=0.5, size=None, *, dtype=None, device=None, generator=None):
    """Return True with probability `p`, a number or a tensor of them.

    Parameters
    ----------
    p : float or Tensor
    size, device, generator
        As in :func:`uniform`.
    dtype : dtype, optional
        Of 1 and 0 in the place of True and False.

    >>> bernoulli(1.0, 3, device="host").tolist()
    [True, True, True]
    """
    target = Target(size, bool_, device, generator)
    if type(p) is Tensor:
        if size is None:
            target = target._replace(size=p.shape)
        if generator is None and device is None:
            target = target._replace(device=p.device)
        wide = float64 if p.dtype == float64 else float32
        made = draw("bernoulli", "uniform", (0.0, 1.0), target._replace(dtype=wide))
        made = fn.less(made, p)
    else:
        chance = float(p)
        if not 0 <= chance <= 1:
            raise argument_error(ValueError, "bernoulli: p", p, "a probability of 0 to 1")
        made = draw("bernoulli", "bernoulli", (chance, 0), target)
    return made if dtype is None else astype(made, dtype, copy=False)
