"""The CUDA executor without a GPU: layouts, keys, parameter structs, launches and kernel text.

A driver library made for tests (fake_gpu.cpp) runs the generated kernels, compiled for the CPU, on
the embedded device's streams: at once, or deferred in an order that a seed gives. What only a GPU
can show (its own arithmetic, memory coalescing, speed) is in tests/gpu.
"""

import pytest

from tests.unit.simulated_gpu import fresh_seed, run_program

PROGRAM = "simulated_gpu_cases.py"


@pytest.mark.parametrize("case", ["elementwise", "layouts", "reductions", "indices"])
def test_cuda_executor_agrees_with_numpy(libraries, case):
    run_program(libraries, PROGRAM, case)
    # The compiled files are there now, so a second process with another order costs little.
    run_program(libraries, PROGRAM, case, seed=fresh_seed())


def test_known_kernel_is_compiled_once_and_found_on_disk(libraries):
    run_program(libraries, PROGRAM, "known_calls")
    before = sorted(path.name for path in (libraries / "kernels").iterdir())
    run_program(libraries, PROGRAM, "known_calls")
    assert sorted(path.name for path in (libraries / "kernels").iterdir()) == before


@pytest.mark.parametrize("case", ["forks", "needs", "refusals"])
def test_kernels_belong_to_a_process_and_to_devices_that_can_run_them(libraries, case):
    run_program(libraries, PROGRAM, case)
