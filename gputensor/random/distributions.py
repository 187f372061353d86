"""Random tensors from several distributions.

The numbers depend on the seed, the generator's counter and the index of the element: they are the
same on every GPU and on the host device, bit for bit. Each draw begins a new block of 128 bits.
"""

import math
from typing import Any, NamedTuple

import numpy as np

from gputensor._arrays.dtypes import bool_, dtype_code, float32, float64, int64, uint64
from gputensor._arrays.element_types import DTYPES
from gputensor.errors import Described, argument_error, float_argument, int_argument
from gputensor.random.states import state_of
from gputensor.tensor import functions as fn
from gputensor.tensor.core import Tensor, spellings
from gputensor.tensor.engine import queue_call
from gputensor.tensor.interop import asarray, astype, reinterpreted
from gputensor.tensor.manipulation import empty
from gputensor.tensor.manipulation.axes import broadcast_shapes

__all__ = [
    "bernoulli", "exponential", "gumbel", "integers", "normal", "poisson", "rand", "randint",
    "randn", "random", "standard_normal", "uniform",
]  # fmt: skip


class Target(NamedTuple):
    """The target of a draw: the arguments that all functions share."""

    size: Any = None
    dtype: Any = None
    device: Any = None
    generator: Any = None


def draw(name, distribution, ends, target):
    """Queue one draw; `ends` are the two parameters of the distribution."""
    state = state_of(target.generator, target.device, name)
    shape = () if target.size is None else target.size
    out = empty(shape, dtype=target.dtype, device=state.device)
    if out.size:
        queue_call("random", (distribution, *ends), (out, state), (), name)
    return out


def _element(dtype, default, kinds, name):
    """Return the row of a dtype argument, whose kind must be one of `kinds`."""
    row = DTYPES[dtype_code(default if dtype is None else dtype)]
    if row.kind not in kinds:
        rule = "a floating-point dtype" if "float" in kinds else "bool or an integer dtype"
        raise argument_error(TypeError, f"{name}: dtype", Described(row.name), rule)
    return row


def _finite(value, name, title, least=-math.inf):
    try:
        number = float(value)
    except (TypeError, ValueError):
        raise argument_error(TypeError, f"{name}: {title}", value, "a number or a Tensor") from None
    if not math.isfinite(number) or number < least:
        rule = "a finite number" if least < 0 else f"a finite number, {least} or more"
        raise argument_error(ValueError, f"{name}: {title}", value, rule)
    return number


def _listed(value, target):
    """Return a list as a tensor on the device of the draw, and any other value as it is."""
    if not isinstance(value, (list, tuple)):
        return value
    device = getattr(target.generator, "device", target.device)
    return asarray(value, device=device)


def _floats(name, distribution, pair, target):
    """Draw with a location and a scale, either of which may be a tensor."""
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
    """Return uniformly distributed numbers from low to high, excluding high.

    Parameters
    ----------
    low, high : float, Tensor or list
    size : int or sequence of int, optional
        The shape; default: one number, or the broadcast shape of `low` and `high`.
    dtype : dtype, optional
        float32 (default), float64, float16 or bfloat16. A number has as many random bits as the
        dtype resolves between 0.5 and 1.
    device : optional
        Default: the device of the generator or of a tensor argument, or the current device.
    generator : Generator, optional
        Default: the default generator of the device. It may also be the state of a generator in a
        program.

    >>> import gputensor as gt
    >>> rng = gt.random.generator(seed=0, device="host")
    >>> (uniform(2, 3, size=2, generator=rng) * 10).astype("int32").tolist()
    [23, 28]
    """
    target = Target(size, dtype, device, generator)
    low, high = _listed(low, target), _listed(high, target)
    if type(low) is Tensor or type(high) is Tensor:
        return _floats("uniform", "uniform", (low, fn.subtract(high, low)), target)
    low = _finite(low, "uniform", "low")
    high = _finite(high, "uniform", "high")
    if low > high:
        raise argument_error(ValueError, "uniform: high", high, f"at least low, which is {low}")
    return _floats("uniform", "uniform", (low, high), target)


def random(size=None, dtype=None, *, device=None, generator=None):
    """Return uniform numbers from 0 to 1, excluding 1; see :func:`uniform`.

    >>> random((2, 3), device="host").shape
    (2, 3)
    """
    return _floats("random", "uniform", (0.0, 1.0), Target(size, dtype, device, generator))


def rand(*extents, size=None, dtype=None, device=None, generator=None):
    """Return uniform numbers from 0 to 1, excluding 1; each extent is an argument, as in PyTorch.

    >>> rand(2, 3, device="host").shape
    (2, 3)
    """
    target = Target(_extents(extents, size, "rand"), dtype, device, generator)
    return _floats("rand", "uniform", (0.0, 1.0), target)


def _extents(extents, size, name):
    """Return the shape of a draw: extents, or one sequence of them, or ``size=`` of PyTorch."""
    if size is not None:
        if extents:
            got = Described("extents as well")
            raise argument_error(TypeError, f"{name}: size", got, "it or extents")
        return size
    is_one = len(extents) == 1 and isinstance(extents[0], (tuple, list))
    return extents[0] if is_one else extents


@spellings(mean="loc", std="scale")
def normal(loc=0.0, scale=1.0, size=None, *, dtype=None, device=None, generator=None):
    """Return normally distributed numbers with mean `loc` and standard deviation `scale`.

    Parameters
    ----------
    loc, scale : float, Tensor or list
    size, dtype, device, generator
        As in :func:`uniform`.

    >>> import gputensor as gt
    >>> rng = gt.random.generator(seed=0, device="host")
    >>> normal(5, 2, size=(3, 4), generator=rng).shape
    (3, 4)
    """
    return _scaled("normal", "normal", (loc, scale), Target(size, dtype, device, generator))


def _scaled(name, distribution, pair, target):
    place, scale = (_listed(one, target) for one in pair)
    if type(place) is not Tensor:
        place = _finite(place, name, "loc")
    if type(scale) is not Tensor:
        scale = _finite(scale, name, "scale", 0)
    return _floats(name, distribution, (place, scale), target)


def standard_normal(size=None, dtype=None, *, device=None, generator=None):
    """Return normally distributed numbers with mean 0 and standard deviation 1.

    >>> standard_normal((2, 3), device="host").shape
    (2, 3)
    """
    target = Target(size, dtype, device, generator)
    return _floats("standard_normal", "normal", (0.0, 1.0), target)


def randn(*extents, size=None, dtype=None, device=None, generator=None):
    """Return numbers as :func:`standard_normal`; each extent is an argument, as in PyTorch.

    >>> randn(2, 3, device="host").shape
    (2, 3)
    """
    target = Target(_extents(extents, size, "randn"), dtype, device, generator)
    return _floats("randn", "normal", (0.0, 1.0), target)


def exponential(scale=1.0, size=None, *, dtype=None, device=None, generator=None):
    """Return exponentially distributed numbers with mean `scale`.

    >>> bool((exponential(2.0, 100, device="host") >= 0).all())
    True
    """
    target = Target(size, dtype, device, generator)
    return _scaled("exponential", "exponential", (0.0, scale), target)


def gumbel(loc=0.0, scale=1.0, size=None, *, dtype=None, device=None, generator=None):
    """Return numbers of the Gumbel distribution with location `loc` and scale `scale`.

    >>> gumbel(size=(2, 3), device="host").shape
    (2, 3)
    """
    return _scaled("gumbel", "gumbel", (loc, scale), Target(size, dtype, device, generator))


def integers(low, high=None, size=None, dtype=None, endpoint=False, *, device=None, generator=None):
    """Return uniformly distributed integers from low to high, excluding high, without bias.

    Parameters
    ----------
    low, high : int, Tensor or list
        Without `high`: 0 to `low`. Between bounds that are tensors or lists, the probabilities of
        two integers differ by at most their number / 2**64 of them. Bounds in lists are checked;
        those in tensors are not, because that would wait for the device.
    size, device, generator
        As in :func:`uniform`.
    dtype : dtype, optional
        int64 (default), another integer dtype, or bool.
    endpoint : bool
        Whether to include `high`.

    >>> import gputensor as gt
    >>> integers(6, size=5, generator=gt.random.generator(seed=0, device="host")).tolist()
    [2, 5, 4, 3, 5]
    """
    return _integers("integers", (low, high, endpoint), Target(size, dtype, device, generator))


def _limits(row):
    return int(np.iinfo(row.numpy).min), int(np.iinfo(row.numpy).max)


def _integers(name, ends, target):
    low, high, endpoint = ends
    low, high = (0, low) if high is None else (low, high)
    if any(isinstance(one, (Tensor, list, tuple)) for one in (low, high)):
        return integers_between(name, (low, high, endpoint), target)
    low = int_argument("integers: low", low)
    greatest = int_argument("integers: high", high) - (not endpoint)
    row = _element(target.dtype, int64, ("bool", "int", "uint"), name)
    limits = (0, 1) if row.kind == "bool" else _limits(row)
    if low > greatest:
        got = Described(f"{low} to {greatest}")
        raise argument_error(ValueError, f"{name}: ends", got, "at least one integer")
    for value in (low, greatest):
        if not limits[0] <= value <= limits[1]:
            rule = f"{limits[0]} to {limits[1]}, which {row.name} holds"
            raise argument_error(ValueError, f"{name}: ends", value, rule)
    return draw(name, "integers", (low, greatest), target._replace(dtype=row.numpy))


def integers_between(name, ends, target):
    """Return integers between bounds that are tensors or lists, which broadcast.

    >>> import gputensor as gt
    >>> gt.random.integers([0, 5], [1, 6], device="host").tolist()
    [0, 5]
    """
    low, high, endpoint = ends
    row = _element(target.dtype, int64, ("bool", "int", "uint"), name)
    wide = uint64 if row.numpy == uint64 else int64
    hosts = [one for one in (low, high) if not isinstance(one, Tensor)]
    for one in hosts:
        _whole(one, row, name, endpoint or one is low)
    if len(hosts) == 2:
        gap = np.subtract(high, low, dtype=object) + endpoint
        if np.size(gap) and np.min(gap) < 1:
            got = Described("a high end below the low one")
            raise argument_error(ValueError, f"{name}: ends", got, "at least one integer")
    tensors = [one for one in (low, high) if isinstance(one, Tensor)]
    if target.generator is None and target.device is None and tensors:
        target = target._replace(device=tensors[0].device)
    device = getattr(target.generator, "device", target.device)
    low, high = (_bound(one, wide, device, name) for one in (low, high))
    if target.size is None:
        target = target._replace(size=broadcast_shapes(low.shape, high.shape))
    bits = draw(name, "integers", (0, (1 << 64) - 1), target._replace(dtype=uint64))
    low = reinterpreted(low, uint64)
    count = fn.subtract(reinterpreted(high, uint64), low)
    count = fn.maximum(fn.add(count, 1) if endpoint else count, 1)
    found = fn.add(low, fn.remainder(bits, count))
    return astype(reinterpreted(found, wide), row.numpy, copy=False)


def _whole(values, row, name, is_included):
    """Check that a bound on the host is an int, or ints in lists, which the dtype holds."""
    values = np.asarray(values)
    least, most = (0, 1) if row.kind == "bool" else _limits(row)
    most = most if is_included else most + 1
    for one in values.ravel().tolist():
        if not isinstance(one, int):
            raise argument_error(TypeError, f"{name}: ends", one, "ints")
        if not least <= one <= most:
            rule = f"{least} to {most}, which {row.name} holds"
            raise argument_error(ValueError, f"{name}: ends", one, rule)


def _bound(value, wide, device, name):
    if isinstance(value, Tensor):
        if value.dtype.kind not in "biu":
            got = Described(value.dtype.name)
            raise argument_error(TypeError, f"{name}: ends", got, "an integer dtype")
        return astype(value, wide, copy=False).contiguous()
    # As the bits of the number: a high end may be one above the greatest of the dtype.
    words = np.asarray(np.asarray(value, object) % (1 << 64), np.uint64)
    return reinterpreted(asarray(words, device=device), wide)


def randint(low, high=None, size=None, dtype=None, *, device=None, generator=None):
    """Return integers from low to high, excluding high, as NumPy; also ``randint(high, (2, 3))``.

    >>> randint(10, (2, 3), device="host").shape
    (2, 3)
    """
    is_shape = isinstance(high, (tuple, list)) and not isinstance(low, (Tensor, tuple, list))
    if is_shape and size is None:
        high, size = None, high
    return _integers("randint", (low, high, False), Target(size, dtype, device, generator))


def poisson(lam=1.0, size=None, *, dtype=None, device=None, generator=None):
    """Return counts of the Poisson distribution with mean `lam`, as floats.

    Parameters
    ----------
    lam : float, Tensor or list
        0 or more.
    size, device, generator
        As in :func:`uniform`.
    dtype : dtype, optional
        Any real dtype; default: float32, or the dtype of a floating-point tensor `lam`.

    >>> import gputensor as gt
    >>> rng = gt.random.generator(seed=0, device="host")
    >>> poisson(3.0, 4, generator=rng).tolist()
    [5.0, 3.0, 2.0, 0.0]
    """
    target = Target(size, float64, device, generator)
    lam = _listed(lam, target)
    if type(lam) is Tensor:
        if size is None:
            target = target._replace(size=lam.shape)
        if generator is None and device is None:
            target = target._replace(device=lam.device)
        if dtype is None:
            dtype = lam.dtype if lam.dtype.kind in "fV" else float32
    else:
        lam = _finite(lam, "poisson", "lam", 0)
    # float64, because rare counts need that many random bits.
    share = draw("poisson", "uniform", (0.0, 1.0), target)
    return astype(fn.poisson_quantile(share, lam), float32 if dtype is None else dtype, copy=False)


def bernoulli(p=0.5, size=None, *, dtype=None, device=None, generator=None):
    """Return True with probability `p`, a number or a tensor, else False.

    Parameters
    ----------
    p : float or Tensor
    size, device, generator
        As in :func:`uniform`.
    dtype : dtype, optional
        bool (default), or the dtype of 1 and 0 instead of True and False.

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
        chance = float_argument("bernoulli: p", p)
        if not 0 <= chance <= 1:
            raise argument_error(ValueError, "bernoulli: p", p, "0 to 1")
        made = draw("bernoulli", "bernoulli", (chance, 0), target)
    return made if dtype is None else astype(made, dtype, copy=False)
