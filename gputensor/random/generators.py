"""Generators of random numbers; their state is a tensor on the device."""

import functools
import operator

import numpy as np

from gputensor._arrays.dtypes import uint8, uint64
from gputensor.errors import argument_error, int_argument
from gputensor.random import choices, counts, distributions, families, rejections, transformed
from gputensor.random.states import (
    checked_words,
    default_state,
    new_state,
    seed_argument,
    state_of,
)
from gputensor.random.states import seed as seed_all
from gputensor.tensor.core import Tensor
from gputensor.tensor.interop import asarray, copy
from gputensor.tensor.manipulation import zeros
from gputensor.tensor.parameter_names import drawing

__all__ = [
    "Generator", "default_rng", "generator", "get_state", "initial_seed", "manual_seed",
    "set_state",
]  # fmt: skip


def _method(function):
    function = drawing(function)

    @functools.wraps(function)
    def method(self, *arguments, **options):
        return function(*arguments, generator=self, **options)

    return method


class Generator:
    """A source of random numbers; its seed and counter are in the memory of its device.

    Its methods are the functions of ``gputensor.random``. A draw advances the counter on the
    device, so each replay of a graph gives new numbers, and the host never waits.

    Parameters
    ----------
    seed : int, sequence of int or SeedSequence, optional
        0 to 2**64 - 1; default: random bytes of the system. Several ints are mixed as NumPy's
        ``SeedSequence`` does it.
    device : optional
        Default: the current device.

    Attributes
    ----------
    state : Tensor
        Four uint64: the seed, the counter (low and high half), and 0, which is reserved.

    >>> one = Generator(seed=7, device="host")
    >>> two = Generator(seed=7, device="host")
    >>> one.integers(100, size=3).tolist() == two.integers(100, size=3).tolist()
    True
    """

    __slots__ = ("__weakref__", "state")

    def __init__(self, seed=None, device=None):
        self.state = new_state(seed, device)

    @classmethod
    def from_state(cls, state):
        """Return a generator with a given state; a tensor is used without a copy.

        >>> Generator.from_state(Generator(5, "host").get_state()).state.shape
        (4,)
        """
        made = cls.__new__(cls)
        made.state = state_of(state, None, "from_state") if type(state) is Tensor else (
            asarray(checked_words(state), copy=True)
        )  # fmt: skip
        return made

    @property
    def device(self):
        return self.state.device

    def get_state(self):
        """Return the state as four NumPy uint64; waits for the device.

        >>> Generator(5, "host").get_state()
        array([5, 0, 0, 0], dtype=uint64)
        """
        return self.state.numpy()

    def set_state(self, state):
        """Continue from a result of `get_state`, or from the state tensor of another generator.

        >>> rng = Generator(5, "host")
        >>> before = rng.get_state()
        >>> first = rng.random(3).tolist()
        >>> rng.set_state(before)
        >>> rng.random(3).tolist() == first
        True
        """
        words = checked_words(state)
        self.state[...] = words if type(words) is Tensor else asarray(words, device=self.device)

    def manual_seed(self, seed):
        """Start again with a seed; returns the generator. As in PyTorch, -n means 2**64 - n.

        >>> Generator(5, "host").manual_seed(6).get_state()[0]
        np.uint64(6)
        """
        self.state[...] = new_state(_unsigned(seed), self.device)
        return self

    def seed(self):
        """Start again with a seed from the system; returns the seed.

        >>> rng = Generator(5, "host")
        >>> rng.seed() == rng.initial_seed() != 5
        True
        """
        number = seed_argument(None)
        self.manual_seed(number)
        return number

    def initial_seed(self):
        """Return the seed of the generator's numbers; waits for the device.

        >>> Generator(5, "host").initial_seed()
        5
        """
        return int(self.get_state()[0])

    def get_offset(self):
        """Return how many 32-bit words of the seed's sequence are used; waits for the device.

        >>> rng = Generator(5, "host")
        >>> numbers = rng.random(5)
        >>> rng.get_offset()
        8
        """
        _, low, high, _ = map(int, self.get_state())
        return 4 * (low + (high << 64))

    def set_offset(self, offset):
        """Continue after so many 32-bit words of the seed's sequence, a multiple of 4.

        >>> rng = Generator(5, "host")
        >>> _, second = rng.random(4), rng.random(4).tolist()
        >>> rng.set_offset(4)
        >>> rng.random(4).tolist() == second
        True
        """
        words = int_argument("offset", offset)
        if words % 4 or not 0 <= words < 1 << 130:
            raise argument_error(ValueError, "offset", words, "a multiple of 4, 0 to 2**130 - 4")
        counter = np.array([words >> 2 & (1 << 64) - 1, words >> 66], np.uint64)
        self.state[1:3] = asarray(counter, device=self.device)

    def clone_state(self):
        """Return a generator that continues with the same numbers, as ``copy.deepcopy`` does.

        >>> rng = Generator(5, "host")
        >>> other = rng.clone_state()
        >>> rng.random(3).tolist() == other.random(3).tolist()
        True
        """
        return Generator.from_state(copy(self.state))

    def graphsafe_get_state(self):
        """Return a generator that shares the state: a draw from one advances both.

        >>> rng = Generator(5, "host")
        >>> numbers = rng.graphsafe_get_state().random(5)
        >>> rng.get_offset()
        8
        """
        return Generator.from_state(self.state)

    def graphsafe_set_state(self, state):
        """Share the state of another generator of the device from now on; returns the generator.

        Captured graphs draw from the state that the generator had at the time of the capture.

        >>> rng, other = Generator(5, "host"), Generator(6, "host")
        >>> rng.graphsafe_set_state(other).initial_seed()
        6
        """
        self.state = state_of(state, self.device, "graphsafe_set_state")
        return self

    def spawn(self, n_children):
        """Return new generators on the device, seeded with numbers of this one, without waiting.

        >>> len(Generator(5, "host").spawn(3))
        3
        """
        count = int_argument("spawn: n_children", n_children)
        if count < 0:
            raise argument_error(ValueError, "spawn: n_children", count, "0 or more")
        states = [zeros(4, dtype=uint64, device=self.device) for _ in range(count)]
        seeds = self.integers(1 << 64, size=count, dtype=uint64)
        for number, state in enumerate(states):
            state[:1] = seeds[number : number + 1]
        return [Generator.from_state(state) for state in states]

    def bytes(self, length):
        """Return random bytes; waits for the device.

        >>> len(Generator(5, "host").bytes(3))
        3
        """
        return self.integers(256, size=operator.index(length), dtype=uint8).numpy().tobytes()

    def tomaxint(self, size=None):
        """Return int64 numbers from 0 to 2**63 - 1; without a size, an int.

        >>> Generator(5, "host").tomaxint(3).shape
        (3,)
        """
        found = self.integers(1 << 63, size=() if size is None else size)
        return int(found) if size is None else found

    uniform = _method(distributions.uniform)
    random = _method(distributions.random)
    rand = _method(distributions.rand)
    normal = _method(distributions.normal)
    standard_normal = _method(distributions.standard_normal)
    randn = _method(distributions.randn)
    exponential = _method(distributions.exponential)
    gumbel = _method(distributions.gumbel)
    integers = _method(distributions.integers)
    randint = _method(distributions.randint)
    bernoulli = _method(distributions.bernoulli)
    poisson = _method(distributions.poisson)
    beta = _method(families.beta)
    binomial = _method(families.binomial)
    chisquare = _method(families.chisquare)
    dirichlet = _method(families.dirichlet)
    gamma = _method(families.gamma)
    geometric = _method(families.geometric)
    laplace = _method(families.laplace)
    logistic = _method(families.logistic)
    lognormal = _method(families.lognormal)
    standard_exponential = _method(families.standard_exponential)
    standard_gamma = _method(families.standard_gamma)
    standard_t = _method(families.standard_t)
    weibull = _method(families.weibull)
    f = _method(transformed.f)
    multivariate_normal = _method(transformed.multivariate_normal)
    negative_binomial = _method(transformed.negative_binomial)
    noncentral_chisquare = _method(transformed.noncentral_chisquare)
    noncentral_f = _method(transformed.noncentral_f)
    pareto = _method(transformed.pareto)
    power = _method(transformed.power)
    rayleigh = _method(transformed.rayleigh)
    standard_cauchy = _method(transformed.standard_cauchy)
    triangular = _method(transformed.triangular)
    wald = _method(transformed.wald)
    hypergeometric = _method(counts.hypergeometric)
    logseries = _method(counts.logseries)
    multivariate_hypergeometric = _method(counts.multivariate_hypergeometric)
    vonmises = _method(rejections.vonmises)
    zipf = _method(rejections.zipf)
    random_sample = random
    permutation = _method(choices.permutation)
    permuted = _method(choices.permuted)
    randperm = _method(choices.randperm)
    shuffle = _method(choices.shuffle)
    choice = _method(choices.choice)
    multinomial = _method(choices.multinomial)
    categorical = choices.categorical

    def __dlpack__(self, **options):
        return self.state.__dlpack__(**options)

    def __dlpack_device__(self):
        return self.state.__dlpack_device__()

    def __repr__(self):
        return f"Generator(device={str(self.device)!r})"

    def __reduce__(self):
        return Generator.from_state, (self.get_state(),)

    def __deepcopy__(self, memo):
        return self.clone_state()


def generator(seed=None, device=None):
    """Return a new :class:`Generator`.

    >>> generator(seed=1, device="host")
    Generator(device='host')
    """
    return Generator(seed, device)


def default_rng(seed=None, device=None):
    """Return a new generator, like NumPy's function; a generator as `seed` is returned itself.

    >>> rng = default_rng(1, "host")
    >>> default_rng(rng) is rng
    True
    """
    return seed if isinstance(seed, Generator) else Generator(seed, device)


def manual_seed(seed):
    """Seed the default generators of all devices, as in PyTorch: -n means 2**64 - n.

    >>> manual_seed(1)
    """
    seed_all(_unsigned(seed))


def initial_seed(device=None):
    """Return the seed of a device's default generator; waits for the device.

    >>> manual_seed(7)
    >>> initial_seed("host")
    7
    """
    return int(get_state(device)[0])


def _unsigned(seed):
    is_negative = isinstance(seed, int) and -(1 << 63) <= seed < 0
    return seed + (1 << 64) if is_negative else seed


def get_state(device=None):
    """Return the state of a device's default generator, four NumPy uint64; waits for the device.

    >>> get_state("host").shape
    (4,)
    """
    return default_state(device).numpy()


def set_state(state, device=None):
    """Make the default generator of a device continue from a result of :func:`get_state`.

    >>> set_state(get_state("host"), "host")
    """
    Generator.from_state(default_state(device)).set_state(state)
