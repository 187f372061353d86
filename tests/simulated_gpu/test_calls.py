"""Calls recorded on a phantom and repeated on a GPU, by the executors of eager calls."""

import pytest

from gputensor._engines import cupy_calls
from gputensor._kernels.calls import CALLS
from gputensor._kernels.launch import nvrtc
from tests.conformance.tensor import test_calls as cases
from tests.support import cupy_on_cpu
from tests.support.convolution import tile_on_cpu
from tests.support.products import skinny_on_cpu

# Kernels with special instructions: the first do not compile for a CPU, the others need another
# compile function.
TENSOR_CORES, QUANTIZED = ("offsets, halves", "attention"), ("int8 weights", "int4 weights")
ENGINES = tuple(name for name, case in cases.CASES.items() if CALLS[case[0]].waits)


@pytest.mark.parametrize("name", sorted(cases.CASES.keys() - {*TENSOR_CORES, *QUANTIZED, *ENGINES}))
def test_repeated_calls_give_equal_bits(rng, monkeypatch, name):
    # A 16-bit convolution may use tensor cores, a vector has a kernel of few rows; other kernels
    # compile as usual.
    support = skinny_on_cpu if name == "vector" else tile_on_cpu
    monkeypatch.setattr(nvrtc, "compile_source", support.compile_source)
    cases.check_case(name, 0, rng)


@pytest.mark.parametrize("name", ENGINES)
def test_repeated_calls_of_other_libraries_give_equal_bits(rng, monkeypatch, name):
    cupy_calls.library.cache_clear()
    cupy_on_cpu.install(monkeypatch)
    cases.check_case(name, 0, rng)
    cupy_calls.library.cache_clear()


@pytest.mark.parametrize("name", QUANTIZED)
@pytest.mark.orders("deferred")
@pytest.mark.process(FAKE_CUDA_SHARED="100000", FAKE_CUDA_MULTIPROCESSORS="4")
def test_repeated_quantized_calls_give_equal_bits(rng, monkeypatch, name):
    monkeypatch.setattr(nvrtc, "compile_source", skinny_on_cpu.compile_source)
    cases.check_case(name, 0, rng)
