"""`__cuda_array_interface__` and DLPack of true and lying objects without a GPU.

The objects are those of tests/interop/interface_cases.py, which without a CUDA device can check
refusals only.
"""

from tests.interop import foreign_fuzz


def test_interfaces_give_their_values_or_one_clear_error(order, seed):
    foreign_fuzz.run("interface", 2000 if order == "at-once" else 500, seed)
