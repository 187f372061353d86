"""Engines on a GPU: CuPy gets views of our memory, our stream and our allocator."""

import sys

import numpy as np
import pytest

import gputensor as gt
from gputensor import memory
from gputensor._engines import cupy_calls
from tests.support import cupy_on_cpu
from tests.support.tensor_arrays import check_same, random_array, random_view


@pytest.fixture
def cupy(monkeypatch):
    cupy_calls.library.cache_clear()
    cupy_on_cpu.install(monkeypatch)
    yield
    cupy_calls.library.cache_clear()


def pair(rng, shape, dtype="float32"):
    return random_view(rng, random_array(rng, shape, dtype, -5, 5), 0)


def test_results_are_those_of_the_host_device(cupy, rng):
    a, x = pair(rng, (4, 5))
    before = len(cupy_on_cpu.allocations)
    b, z = pair(rng, (4, 5), "complex64")
    check_same(gt.sort(z, 0), np.sort(b, 0))
    check_same(gt.argsort(z + 1, 1), np.argsort(b, 1, kind="stable"))
    check_same(gt.fft.rfft(x), np.fft.rfft(a).astype(np.complex64), 1e-4)
    square, y = pair(rng, (2, 3, 3))
    square, y = square + 20 * np.eye(3, dtype="f4"), y + 20 * gt.eye(3, device=0)
    check_same(gt.linalg.inv(y), np.linalg.inv(square), 1e-4)
    u, s, vh = gt.linalg.svd(y, full_matrices=False)
    check_same((u * s[..., None, :]) @ vh, square, 1e-3)
    assert len(cupy_on_cpu.allocations) > before


def test_views_of_any_layout_reach_the_same_elements(cupy, rng):
    for _ in range(20):
        shape = tuple(int(n) for n in rng.integers(1, 5, rng.integers(1, 4)))
        a, x = pair(rng, shape, "complex64")
        axis = int(rng.integers(len(shape)))
        check_same(gt.sort(x, axis), np.sort(a, axis))


def test_later_work_on_another_stream_waits_for_the_engine(cupy, rng):
    a, x = pair(rng, (40_000,), "complex64")
    with gt.stream(gt.Stream(0)):
        y = gt.sort(x)
    with gt.stream(gt.Stream(0)):
        z = y + 1
        x[...] = 0
    check_same(z, np.sort(a) + 1)


def test_temporary_memory_goes_back_to_the_pool(cupy, rng):
    _a, x = pair(rng, (40_000,), "complex64")
    gt.sort(x).numpy()
    before = memory.memory_allocated("cuda")
    gt.sort(x).numpy()
    assert memory.memory_allocated("cuda") == before


def test_missing_library_is_one_error_before_anything_changes(monkeypatch, rng):
    cupy_calls.library.cache_clear()
    monkeypatch.setitem(sys.modules, "cupy", None)
    x = gt.ones(3, device=0)
    with pytest.raises(
        cupy_calls.MissingEngineError, match=r"fft: CUDA devices need CuPy: pip install 'gput"
    ):
        gt.fft.fft(x)
    assert gt.sum(x).item() == 3
