"""`__cuda_array_interface__` and DLPack of correct and incorrect objects, without a GPU.

The objects are those of tests/interop/interface_cases.py, which checks only refusals without a CUDA
device.
"""

from tests.interop import foreign_fuzz


def test_interfaces_give_their_values_or_one_clear_error(order, seed):
    foreign_fuzz.run("interface", 2000 if order == "at-once" else 500, seed)
