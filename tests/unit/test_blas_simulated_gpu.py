"""The way of a product on a GPU, without one: plans, padding, workspaces, captures, tuning.

A driver and a BLAS made for tests (fake_gpu.cpp, fake_cublas.cpp) run the same calls on the CPU, at
once or deferred in an order that a seed gives. What only the real libraries can show (their
arithmetic, their speed, what they refuse) is in tests/gpu.
"""

import pytest

from tests.unit.simulated_gpu import fresh_seed, run_program
from tests.unit.simulated_tuning_cases import BAD_VARIABLES


@pytest.mark.parametrize("is_deferred", [False, True], ids=["at-once", "deferred"])
@pytest.mark.parametrize(
    "case",
    [
        "refusals",
        "views",
        "paddings",
        "no_memory_for_copies",
        "no_memory_for_a_workspace",
        "flags",
        "factors",
        "epilogues",
        "scaled",
        "attributes",
        "c_entry",
        "batches",
        "groups",
        "streams",
        "captures",
    ],
)
def test_products_on_a_simulated_gpu(libraries, case, is_deferred):
    run_program(
        libraries, "simulated_blas_cases.py", case, seed=fresh_seed() if is_deferred else None
    )


@pytest.mark.parametrize("is_deferred", [False, True], ids=["at-once", "deferred"])
@pytest.mark.parametrize("case", ["tuning", "no_memory_for_tuning", "command"])
def test_tuning_on_a_simulated_gpu(libraries, case, is_deferred):
    seed = fresh_seed() if is_deferred else None
    # Times of a busy machine decide nothing here.
    run_program(libraries, "simulated_tuning_cases.py", case, seed=seed, FAKE_CUDA_ELAPSED="1")


def test_a_bad_environment_is_told_by_products_on_a_simulated_gpu(libraries):
    bad = dict.fromkeys(BAD_VARIABLES, "maybe")
    run_program(libraries, "simulated_tuning_cases.py", "bad_environment", **bad)
