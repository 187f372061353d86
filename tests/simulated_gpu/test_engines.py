"""Engines on a GPU: CuPy works on views of our memory, on our stream, with our allocator."""

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


def test_lu_by_the_other_library(cupy, rng):
    pytest.importorskip("scipy.linalg")
    a, x = pair(rng, (2, 5, 3))
    p, low, up = gt.linalg.lu(x)
    check_same(p @ low @ up, a, 1e-4)
    square, y = pair(rng, (2, 4, 4))
    square, y = square + 20 * np.eye(4, dtype="f4"), y + 20 * gt.eye(4, device=0)
    b, z = pair(rng, (4, 2))
    for trans, one in enumerate((square, square.mT, square.mT)):
        want = np.linalg.solve(one, b).astype(np.float32)
        check_same(gt.linalg.lu_solve(gt.linalg.lu_factor(y), z, trans), want, 1e-4)


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


def positive(x):
    return x @ x.mT + 9 * gt.eye(x.shape[-1], device=x.device)


def solved(x, y):
    z = gt.linalg.solve(positive(x), y + 1)
    return gt.fft.irfft(gt.fft.rfft(z * 2, axis=0), n=3, axis=0) - y


def test_programs_make_the_calls_one_by_one(cupy, rng):
    program = gt.compile(solved, gt.spec((3, 3)), gt.spec((3, 2)), target="cuda")
    for _ in range(3):
        (a, x), (b, y) = pair(rng, (3, 3)), pair(rng, (3, 2))
        with gt.stream(gt.Stream(0)):
            z = program(x, y)
            x[...] = 0  # waits for the call
        want = 2 * np.linalg.solve(a @ a.T + 9 * np.eye(3), b + 1) - b
        check_same(z, want.astype(np.float32), 1e-3)
    assert "another library" in program.report()["solved"]["sizes"][-1]["graph"]


def test_programs_with_conditions_make_the_calls_in_their_regions(cupy, rng):
    def last(x):
        return gt.while_loop(
            lambda y: gt.sum(gt.abs(y)) > 2.0, lambda y: gt.linalg.inv(positive(y)), x
        )

    program = gt.compile(last, gt.spec((3, 3)), target="cuda")
    a, x = pair(rng, (3, 3))
    while np.abs(a).sum() > 2:
        a = np.linalg.inv(a @ a.T + 9 * np.eye(3))
    check_same(program(x), a.astype(np.float32), 1e-3)


def test_a_capture_cannot_hold_the_calls(cupy, rng):
    program = gt.compile(gt.linalg.inv, gt.spec((2, 2)), target="cuda")
    x = gt.eye(2, device=0)
    program(x)
    graph = gt.graphs.CUDAGraph()
    with (
        pytest.raises(RuntimeError, match="got the call matrix in a graph capture; expected"),
        gt.graphs.graph(graph),
    ):
        program(x)
    check_same(program(x * 4), np.eye(2, dtype=np.float32) / 4)


@pytest.mark.process(FAKE_CUDA_SHARED=str(228 << 10))
def test_a_program_for_a_gpu_that_is_not_there_makes_the_calls(cupy, rng, tmp_path):
    x = (rng.uniform(-1, 1, (3, 3)) + 8 * np.eye(3)).astype(np.float32)
    gt.compile(gt.linalg.inv, gt.spec((3, 3)), target="h200").save(tmp_path / "inverse.gtp")
    with gt.load_program(tmp_path / "inverse.gtp", device="cuda") as program:
        found = program(gt.asarray(x, device="cuda")).numpy()
    np.testing.assert_allclose(found, np.linalg.inv(x), rtol=1e-4, atol=1e-6)


def test_no_collection_clears_the_function_that_frees(cupy):
    """CuPy calls it as arrays are collected, when a function of a call may have no globals."""
    _, free = cupy_calls._allocator(sys.modules["cupy"], 0).__self__.functions
    assert getattr(sys.modules[free.__module__], free.__name__) is free
