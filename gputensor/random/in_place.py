"""PyTorch's methods that fill a tensor with random numbers: ``x.normal_()``, ``x.uniform_()``."""

from gputensor.errors import argument_error, float_argument
from gputensor.random.distributions import bernoulli, exponential, integers, normal, uniform
from gputensor.random.families import geometric, lognormal
from gputensor.random.transformed import standard_cauchy
from gputensor.tensor.core import tensor_argument

__all__ = [
    "bernoulli_", "cauchy_", "exponential_", "geometric_", "log_normal_", "normal_", "rand_like",
    "randint_like", "randn_like", "random_", "uniform_",
]  # fmt: skip


def _place(name, x, dtype, device):
    tensor_argument(x, name)
    return {
        "dtype": x.dtype if dtype is None else dtype,
        "device": x.device if device is None else device,
    }


def _filled(x, draw, *parameters, generator):
    is_float = x.dtype.kind not in "biu"
    dtype = x.dtype if is_float else None
    x[...] = draw(*parameters, x.shape, dtype=dtype, device=x.device, generator=generator)
    return x


def uniform_(x, from_=0.0, to=1.0, *, generator=None):
    """Fill the tensor with uniform numbers from `from_` to `to` and return it.

    >>> import gputensor as gt
    >>> x = gt.empty(100, device="host").uniform_(2, 3)
    >>> bool(((x >= 2) & (x < 3)).all())
    True
    """
    return _filled(x, uniform, from_, to, generator=generator)


def normal_(x, mean=0.0, std=1.0, *, generator=None):
    """Fill the tensor with normally distributed numbers and return it.

    >>> import gputensor as gt
    >>> gt.empty((2, 3), device="host").normal_(std=0).tolist()
    [[0.0, 0.0, 0.0], [0.0, 0.0, 0.0]]
    """
    return _filled(x, normal, mean, std, generator=generator)


def exponential_(x, lambd=1.0, *, generator=None):
    """Fill the tensor with exponentially distributed numbers of rate `lambd` and return it.

    >>> import gputensor as gt
    >>> bool((gt.empty(9, device="host").exponential_() >= 0).all())
    True
    """
    lambd = float_argument("exponential_: lambd", lambd)
    if not lambd > 0:
        raise argument_error(ValueError, "exponential_: lambd", lambd, "a number above 0")
    return _filled(x, exponential, 1.0 / lambd, generator=generator)


def bernoulli_(x, p=0.5, *, generator=None):
    """Fill the tensor with ones, of probability `p`, and zeros, and return it.

    >>> import gputensor as gt
    >>> gt.zeros(3, device="host").bernoulli_(1.0).tolist()
    [1.0, 1.0, 1.0]
    """
    return _filled(x, bernoulli, p, generator=generator)


def cauchy_(x, median=0.0, sigma=1.0, *, generator=None):
    """Fill the tensor with Cauchy-distributed numbers and return it.

    >>> import gputensor as gt
    >>> gt.zeros(2, device="host").cauchy_(3.0, 0.0).tolist()
    [3.0, 3.0]
    """
    median = float_argument("cauchy_: median", median)
    sigma = float_argument("cauchy_: sigma", sigma)
    _filled(x, standard_cauchy, generator=generator)
    x *= sigma
    x += median
    return x


def geometric_(x, p, *, generator=None):
    """Fill the tensor with numbers of trials up to the first success, of probability `p`.

    >>> import gputensor as gt
    >>> gt.zeros(2, device="host").geometric_(1.0).tolist()
    [1.0, 1.0]
    """
    x[...] = geometric(p, x.shape, device=x.device, generator=generator)
    return x


def log_normal_(x, mean=1.0, std=2.0, *, generator=None):
    """Fill the tensor with numbers whose logarithm is normally distributed, and return it.

    >>> import gputensor as gt
    >>> gt.zeros(2, device="host").log_normal_(0.0, 0.0).tolist()
    [1.0, 1.0]
    """
    return _filled(x, lognormal, mean, std, generator=generator)


def random_(x, from_=0, to=None, *, generator=None):
    """Fill the tensor with integers from `from_` to `to`, excluding it; ``random_(n)``: below n.

    >>> import gputensor as gt
    >>> bool((gt.zeros(9, device="host").random_(5) < 5).all())
    True
    """
    low, high = (0, from_) if to is None else (from_, to)
    x[...] = integers(low, high, x.shape, device=x.device, generator=generator)
    return x


def rand_like(x, /, *, dtype=None, device=None, generator=None):
    """Return uniform numbers from 0 to 1 in the shape, dtype and device of a tensor.

    >>> import gputensor as gt
    >>> rand_like(gt.zeros((2, 3), device="host")).shape
    (2, 3)
    """
    place = _place("rand_like", x, dtype, device)
    return uniform(0.0, 1.0, x.shape, generator=generator, **place)


def randn_like(x, /, *, dtype=None, device=None, generator=None):
    """Return normally distributed numbers in the shape, dtype and device of a tensor.

    >>> import gputensor as gt
    >>> randn_like(gt.zeros((2, 3), dtype="float64", device="host")).dtype
    dtype('float64')
    """
    place = _place("randn_like", x, dtype, device)
    return normal(0.0, 1.0, x.shape, generator=generator, **place)


def randint_like(x, /, low, high=None, *, dtype=None, device=None, generator=None):
    """Return integers from `low` to `high`, excluding it, in the shape and dtype of a tensor.

    >>> import gputensor as gt
    >>> randint_like(gt.zeros((2, 3), device="host"), 5).dtype
    dtype('float32')
    """
    low, high = (0, low) if high is None else (low, high)
    place = _place("randint_like", x, dtype, device)
    found = integers(low, high, x.shape, device=place["device"], generator=generator)
    return found.astype(place["dtype"])
