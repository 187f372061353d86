"""`__cuda_array_interface__` and DLPack of correct and incorrect objects, without a GPU.

The objects are those of tests/interop/interface_cases.py, which checks only refusals without a CUDA
device.
"""

import numpy as np
import pytest

import gputensor as gt
from tests.interop import foreign_fuzz


def test_interfaces_give_their_values_or_one_clear_error(order, seed):
    foreign_fuzz.run("interface", 2000 if order == "at-once" else 500, seed)


def test_only_explicit_copies_reach_the_host():
    x = gt.ones(3, device="cuda")
    with pytest.raises(BufferError, match="memoryview: got a tensor on cuda:0; expected one on a"):
        x.memoryview()
    with pytest.raises(TypeError, match="bytes-like"):
        memoryview(x)
    assert np.asarray(x).tolist() == x.cpu().memoryview().tolist() == [1, 1, 1]
