"""`__cuda_array_interface__` of true and lying objects without a GPU, on a driver made for tests.

The objects are those of tests/interop/interface_cases.py, which without a CUDA device can check
refusals only.
"""

from tests.support.simulated_gpu import fresh_seed, run_program

PROGRAM = "simulated_gpu/foreign_cases.py"


def test_interfaces_give_their_values_or_one_clear_error(libraries):
    run_program(libraries, PROGRAM, "2000")
    run_program(libraries, PROGRAM, "500", seed=fresh_seed())
