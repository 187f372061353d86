"""Calls recorded on a phantom and done again on a GPU: the door leads to the eager executors."""

import pytest

from gputensor._kernels.launch import nvrtc
from tests.conformance.tensor import test_calls as cases
from tests.support import skinny_on_cpu

# Kernels of tensor cores: the first compiles for no CPU, the second by other means.
HOPPER, SKINNY = "offsets, halves", "int8 weights"


@pytest.mark.parametrize("name", sorted(cases.CASES.keys() - {HOPPER, SKINNY}))
def test_calls_done_again_give_equal_bits(rng, name):
    cases.check_case(name, 0, rng)


@pytest.mark.orders("deferred")
@pytest.mark.process(FAKE_CUDA_SHARED="100000", FAKE_CUDA_MULTIPROCESSORS="4")
def test_skinny_call_done_again_gives_equal_bits(rng, monkeypatch):
    monkeypatch.setattr(nvrtc, "compile_source", skinny_on_cpu.compile_source)
    cases.check_case(SKINNY, 0, rng)
