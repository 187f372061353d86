"""Long draws, sorts and scans on a GPU: many blocks of threads at once."""

import numpy as np
import pytest

import gputensor as gt
from gputensor import graphs
from gputensor._driver.registry import cuda_device_count

pytestmark = pytest.mark.skipif(cuda_device_count() == 0, reason="needs an NVIDIA GPU")
LONG = (1 << 22) + 3


@pytest.mark.parametrize("name", ["uniform", "normal", "exponential", "gumbel"])
@pytest.mark.parametrize("dtype", ["float32", "float64", "float16"])
def test_long_draws_have_the_bits_of_the_host_device(name, dtype):
    here, there = (gt.random.generator(9, device) for device in ("cuda", "host"))
    for _ in range(2):
        one, two = (getattr(rng, name)(size=LONG, dtype=dtype).numpy() for rng in (here, there))
        assert np.array_equal(one.view(np.uint8), two.view(np.uint8))
    assert here.get_state().tolist() == there.get_state().tolist()


def test_many_replays_count_each_draw_once():
    rng, again = (gt.random.generator(9, "cuda") for _ in range(2))
    graph = graphs.CUDAGraph()
    with graphs.graph(graph):
        x = rng.integers(1 << 30, size=LONG)
    for _ in range(50):
        graph.replay()
        want = again.integers(1 << 30, size=LONG)
    assert np.array_equal(x.numpy(), want.numpy())


def test_long_sorts(rng):
    a = rng.integers(0, 1 << 20, LONG).astype(np.int32)
    x = gt.asarray(a, device="cuda")
    order = np.argsort(a, kind="stable")
    assert np.array_equal(gt.argsort(x).numpy(), order)
    assert np.array_equal(gt.sort(x, descending=True).numpy(), a[order][::-1])
    assert np.array_equal(gt.unique(x).numpy(), np.unique(a))


def test_nan_of_either_sign_is_last_in_a_long_vector(rng):
    a = rng.standard_normal(LONG).astype(np.float32)
    a[rng.integers(0, LONG, 9)], a[rng.integers(0, LONG, 9)] = np.nan, -np.nan
    got = gt.sort(gt.asarray(a, device="cuda")).numpy()
    np.testing.assert_array_equal(got, np.sort(a))


@pytest.mark.parametrize("dtype", ["int8", "uint16", "float16", "float32", "int64", "float64"])
def test_long_rows(rng, dtype):
    a = (rng.standard_normal((3, (1 << 19) + 77)) * 50).astype(dtype)
    x = gt.asarray(a, device="cuda")
    order = np.argsort(a, 1, kind="stable")
    assert np.array_equal(gt.argsort(x).numpy(), order)
    assert np.array_equal(gt.sort(x).numpy(), np.take_along_axis(a, order, 1))
    backwards = a.shape[1] - 1 - np.argsort(a[:, ::-1], 1, kind="stable")[:, ::-1]
    assert np.array_equal(gt.argsort(x, descending=True).numpy(), backwards)


@pytest.mark.parametrize("share", [0.0, 0.003, 0.5, 1.0])
def test_choices_of_many_elements(rng, share):
    a, mask = rng.standard_normal((37, 1 << 19)).astype(np.float32), rng.random((37, 1 << 19))
    mask = mask < share
    x, key = (gt.asarray(one, device="cuda") for one in (a, mask))
    for _ in range(3):
        assert np.array_equal(x[key].numpy(), a[mask])
        for got, want in zip(gt.nonzero(key), np.nonzero(mask), strict=True):
            assert np.array_equal(got.numpy(), want)


def test_ranges_and_sums_of_many_elements(rng):
    a = rng.standard_normal(LONG).astype(np.float32)
    x = gt.asarray(a, device="cuda")
    for bins in (10, 256, 3000):
        counts, edges = gt.histogram(x, bins, (-4, 4))
        assert np.array_equal(counts.numpy(), np.histogram(a, edges.numpy())[0])
    index, rows = rng.integers(-1000, 1000, 1 << 18), rng.integers(-9, 9, (1 << 18, 12))
    for dtype in ("float32", "float64", "int32", "bfloat16", "complex64"):
        target = np.zeros((1000, 12))
        np.add.at(target, index, rows)
        x, y = gt.zeros((1000, 12), dtype=dtype, device="cuda"), gt.asarray(rows, dtype=dtype)
        got = gt.index_add(x, 0, gt.asarray(index), y).astype("complex128").numpy()
        assert np.abs(got - target).max() <= (np.abs(target).max() / 128 if dtype[0] == "b" else 0)


def test_selections_scans_and_counts_of_many_elements(rng):
    a = rng.integers(-1000, 1000, (37, 1 << 17)).astype(np.int32)
    x = gt.asarray(a, device="cuda")
    want = np.argsort(-a.astype(np.int64), 1, kind="stable")[:, :64]
    assert np.array_equal(gt.topk(x, 64)[1].numpy(), want)
    for axis in (None, 0, 1):
        assert np.array_equal(gt.cumsum(x, axis).numpy(), np.cumsum(a, axis, dtype=np.int64))
    y = gt.asarray(a.reshape(-1) + 1000, device="cuda")
    assert np.array_equal(gt.bincount(y).numpy(), np.bincount(a.reshape(-1) + 1000))


def test_sums_have_the_same_bits_each_time(rng):
    x = gt.asarray(rng.standard_normal(LONG).astype(np.float32), device="cuda")
    first = gt.cumsum(x).numpy()
    exact = np.cumsum(x.numpy().astype(np.float64))
    assert np.abs(first - exact).max() < 1e-5 * np.abs(x.numpy()).sum()
    for _ in range(5):
        assert np.array_equal(gt.cumsum(x).numpy(), first)
