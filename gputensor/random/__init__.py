"""Random numbers, the same on every GPU and on the host device.

They come from Philox 4x32 with 10 rounds: a number depends only on the seed, the generator's
counter and the index of the element, not on the device or the size of a launch. The names are those
of NumPy's generators, and further ones of PyTorch.

>>> import gputensor as gt
>>> rng = gt.random.generator(seed=1, device="host")
>>> rng.uniform(size=(2, 3)).shape
(2, 3)
"""

import sys

from numpy.random import SeedSequence

from gputensor.random.choices import (
    categorical,
    choice,
    multinomial,
    permutation,
    permuted,
    randperm,
    shuffle,
)
from gputensor.random.counts import hypergeometric, logseries, multivariate_hypergeometric
from gputensor.random.distributions import (
    bernoulli,
    exponential,
    gumbel,
    integers,
    normal,
    poisson,
    rand,
    randint,
    randn,
    random,
    standard_normal,
    uniform,
)
from gputensor.random.families import (
    beta,
    binomial,
    chisquare,
    dirichlet,
    gamma,
    geometric,
    laplace,
    logistic,
    lognormal,
    standard_exponential,
    standard_gamma,
    standard_t,
    weibull,
)
from gputensor.random.generators import (
    Generator,
    default_rng,
    generator,
    get_state,
    initial_seed,
    manual_seed,
    set_state,
)
from gputensor.random.older_names import bytes, random_integers
from gputensor.random.rejections import vonmises, zipf
from gputensor.random.states import seed, spec
from gputensor.random.transformed import (
    f,
    multivariate_normal,
    negative_binomial,
    noncentral_chisquare,
    noncentral_f,
    pareto,
    power,
    rayleigh,
    standard_cauchy,
    triangular,
    wald,
)
from gputensor.tensor.parameter_names import DRAW_OPTIONS, DRAWS, given_names

RandomState = default_rng  # NumPy's older generators: seed as the argument, the same methods
random_sample = random
sample = random
ranf = random

__all__ = [
    "Generator", "RandomState", "SeedSequence", "bernoulli", "beta", "binomial", "bytes",
    "categorical", "chisquare",
    "choice", "default_rng", "dirichlet", "exponential", "f", "gamma", "generator", "geometric",
    "get_state", "initial_seed",
    "gumbel", "hypergeometric", "integers", "laplace", "logistic", "lognormal", "logseries",
    "manual_seed", "multinomial",
    "multivariate_hypergeometric", "multivariate_normal", "negative_binomial",
    "noncentral_chisquare", "noncentral_f",
    "pareto", "power",
    "random_integers",
    "random_sample", "ranf", "rayleigh", "sample", "standard_cauchy", "triangular", "wald",
    "normal", "permutation", "permuted", "poisson", "rand", "randint", "randn", "random",
    "randperm", "seed", "set_state", "shuffle", "spec", "standard_exponential", "standard_gamma",
    "standard_normal",
    "standard_t", "uniform", "vonmises", "weibull", "zipf",
]  # fmt: skip

given_names(sys.modules[__name__], DRAWS, DRAW_OPTIONS)


def __dir__():
    return sorted(__all__)
