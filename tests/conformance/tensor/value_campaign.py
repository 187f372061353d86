"""Long runs of the tests that draw random values.

    python -m tests.conformance.tensor.value_campaign NAME COUNT

NAME is lists, special, statistics, indexing or text (the CUDA text, on the CPU). An optional third
argument is the device ("host" or "cuda"), a fourth the seed. The first case that fails raises with
its own description; the seed is printed first. The tests run a few hundred cases of each.
"""

import sys

import numpy as np

from tests.conformance.tensor.test_empty_indexing import indexing_program
from tests.conformance.tensor.test_integer_statistics import statistics_program
from tests.conformance.tensor.test_lists import list_program
from tests.conformance.tensor.test_special_values import FUNCTIONS, special_program
from tests.unit.kernels.test_special_values import COMPARED, text_program


def special_values(rng, place, count):
    """`count` or more results of functions, dtypes and values in random order."""
    names = list(FUNCTIONS)
    while count > 0:
        name = names[rng.integers(len(names))]
        dtypes = FUNCTIONS[name][1]
        count -= special_program(rng, place, name, dtypes[rng.integers(len(dtypes))], 1000)


def cuda_text(rng, place, count):
    """`count` or more results of the CUDA text of random operations."""
    while count > 0:
        row, code = COMPARED[rng.integers(len(COMPARED))]
        text_program(rng, row, code, 1000)
        count -= 1000


def repeated(program):
    def run(rng, place, count):
        for _ in range(count):
            program(rng, place)

    return run


CAMPAIGNS = {
    "lists": repeated(list_program),
    "special": special_values,
    "statistics": repeated(statistics_program),
    "indexing": repeated(indexing_program),
    "text": cuda_text,
}


def main(name, count, place="host", seed=None):
    seed = int(seed or np.random.SeedSequence().generate_state(1)[0])
    print(f"numpy seed {seed}", flush=True)
    CAMPAIGNS[name](np.random.default_rng(seed), place, int(count))
    print("ok")


if __name__ == "__main__":
    main(*sys.argv[1:])
