"""Places of maxima, unpooling, fold, and p-norms of windows, against loops over elements."""

import itertools

import numpy as np
import pytest

import gputensor as gt
from tests.support.row_checks import DTYPES, close


def windows(n, kernel, stride, padding, dilation, is_up):
    room = n + 2 * padding - dilation * (kernel - 1) - 1
    count = (room + (stride - 1 if is_up else 0)) // stride + 1
    count -= is_up and (count - 1) * stride >= n + padding
    return [range(at * stride - padding, at * stride - padding + dilation * (kernel - 1) + 1,
                  dilation) for at in range(count)]  # fmt: skip


def maxima(a, places):
    """The greatest element of each window and its place, as PyTorch finds them."""
    shape = (*a.shape[:2], *(len(one) for one in places))
    best, best_at = np.empty(shape, a.dtype), np.empty(shape, np.int64)
    for at in np.ndindex(shape):
        found = None
        window = [one[i] for one, i in zip(places, at[2:], strict=True)]
        for place in itertools.product(*window):
            if not all(0 <= i < n for i, n in zip(place, a.shape[2:], strict=True)):
                continue
            value = a[(*at[:2], *place)]
            if found is None or value > best[at] or value != value:
                found = best_at[at] = np.ravel_multi_index(place, a.shape[2:])
                best[at] = value
    return best, best_at


def image(rng, spatial, dtype="float32"):
    a = rng.integers(-3, 4, (2, 3, *rng.integers(5, 8, spatial))).astype(dtype)
    if a.dtype.kind == "f":
        a[rng.random(a.shape) < 0.05] = rng.choice([np.nan, np.inf, -np.inf])
    return a


@pytest.mark.parametrize("dtype", ["float32", "float64", "int32"])
@pytest.mark.parametrize("spatial", [1, 2, 3])
def test_places_of_maxima(where, rng, spatial, dtype):
    pool = getattr(gt, f"max_pool{spatial}d")
    for kernel, stride, padding, dilation, is_up in (
        (2, None, 0, 1, False), (3, 2, 1, 1, True), (2, 1, 1, 2, False), (3, 1, 0, 2, True),
    ):  # fmt: skip
        a = image(rng, spatial, dtype)
        x = gt.asarray(a, device=where)
        got, at = pool(x, kernel, stride, padding, dilation, is_up, return_indices=True)
        places = [windows(n, kernel, stride or kernel, padding, dilation, is_up)
                  for n in a.shape[2:]]  # fmt: skip
        want, want_at = maxima(a, places)
        np.testing.assert_array_equal(got.numpy(), want)
        np.testing.assert_array_equal(at.numpy(), want_at)
        assert at.dtype == np.int64 and got.dtype == a.dtype
        alone, alone_at = pool(x[0], kernel, stride, padding, dilation, is_up, True)
        np.testing.assert_array_equal(alone.numpy(), want[0])
        np.testing.assert_array_equal(alone_at.numpy(), want_at[0])
    m = tuple(rng.integers(1, 6, spatial).tolist())
    got, at = getattr(gt, f"adaptive_max_pool{spatial}d")(x, m, return_indices=True)
    places = [[range(i * n // k, -(-(i + 1) * n // k)) for i in range(k)]
              for n, k in zip(a.shape[2:], m, strict=True)]  # fmt: skip
    want, want_at = maxima(a, places)
    np.testing.assert_array_equal(got.numpy(), want)
    np.testing.assert_array_equal(at.numpy(), want_at)


@pytest.mark.parametrize("spatial", [1, 2, 3])
def test_unpooling_writes_to_the_places(where, rng, spatial):
    a = rng.standard_normal((2, 3, *rng.integers(5, 8, spatial)))
    x = gt.asarray(a, device=where)
    got, at = getattr(gt, f"max_pool{spatial}d")(x, 2, return_indices=True)
    unpool = getattr(gt, f"max_unpool{spatial}d")
    back = unpool(got, at, 2, output_size=x.shape).numpy()
    want = np.zeros_like(a).reshape(2, 3, -1)
    np.put_along_axis(want, at.numpy().reshape(2, 3, -1), got.numpy().reshape(2, 3, -1), -1)
    np.testing.assert_array_equal(back, want.reshape(a.shape))
    even = gt.asarray(a[(..., *[slice(4)] * spatial)], device=where)
    got, at = getattr(gt, f"max_pool{spatial}d")(even[0], 2, return_indices=True)
    assert unpool(got, at, 2).shape == even.shape[1:]
    with pytest.raises(ValueError, match=f"max_unpool{spatial}d: indices: got float64 of shape"):
        unpool(got, got, 2)


def test_channels_last_has_the_same_places(where, rng):
    a = rng.standard_normal((2, 5, 6, 3))
    got = gt.max_pool2d(gt.asarray(a, device=where), 2, return_indices=True, data_format="NHWC")
    want = gt.max_pool2d(gt.asarray(np.moveaxis(a, -1, 1), device=where), 2, return_indices=True)
    for one, other in zip(got, want, strict=True):
        np.testing.assert_array_equal(one.numpy(), np.moveaxis(other.numpy(), 1, -1))


@pytest.mark.parametrize("dtype", ["float32", "float64", "int64", "complex64"])
def test_columns_are_windows_and_fold_sums_them(where, rng, dtype):
    for kernel, dilation, padding, stride in (
        ((2, 3), 1, 0, 1), (3, 1, 1, 2), ((2, 2), 2, (1, 0), (1, 3)), (1, 1, 0, 2),
    ):  # fmt: skip
        a = rng.integers(-9, 10, (2, 3, *rng.integers(4, 8, 2))).astype(dtype)
        k, d, p, s = (np.broadcast_to(one, 2) for one in (kernel, dilation, padding, stride))
        places = [windows(n, *one, False) for n, *one in zip(a.shape[2:], k, s, p, d, strict=True)]
        shape = (2, 3, *k, *(len(one) for one in places))
        want, sums = np.zeros(shape, dtype), np.zeros_like(a)
        for row, column, i, j in np.ndindex(shape[2:]):
            y, x = places[0][i][row], places[1][j][column]
            if 0 <= y < a.shape[2] and 0 <= x < a.shape[3]:
                want[:, :, row, column, i, j] = a[:, :, y, x]
                sums[:, :, y, x] += a[:, :, y, x]
        want = want.reshape(2, 3 * k.prod(), -1)
        given = {"dilation": dilation, "padding": padding, "stride": stride}
        got = gt.unfold(gt.asarray(a, device=where), kernel, **given)
        np.testing.assert_array_equal(got.numpy(), want)
        back = gt.fold(got, a.shape[2:], kernel, **given)
        np.testing.assert_array_equal(back.numpy(), sums)
        assert back.dtype == a.dtype
        alone = gt.fold(got[1], a.shape[2:], kernel, **given)
        np.testing.assert_array_equal(alone.numpy(), sums[1])
    with pytest.raises(ValueError, match=r"fold: shape of x: got \(2, 5, 4\); expected \(batch, a"):
        gt.fold(gt.zeros((2, 5, 4), device=where), (4, 4), 2, stride=2)


def test_sums_of_short_floats_are_rounded_once(where, rng):
    a = rng.standard_normal((1, 25, 16)).astype("float16")
    x = gt.asarray(a, device=where)
    want = gt.fold(x.astype("float32"), (4, 4), 5, padding=2).numpy().astype("float16")
    np.testing.assert_array_equal(gt.fold(x, (4, 4), 5, padding=2).numpy(), want)


@pytest.mark.parametrize("spatial", [1, 2, 3])
def test_norms_of_windows(where, rng, spatial):
    a = rng.uniform(0.5, 2, (2, 3, *rng.integers(5, 8, spatial)))
    for p, kernel, stride in ((2, 2, None), (3.5, 3, 1), (1, 2, 3)):
        places = [windows(n, kernel, stride or kernel, 0, 1, False) for n in a.shape[2:]]
        grids = np.ix_(*(np.array([list(one) for one in line]).reshape(-1) for line in places))
        shape = [n for line in places for n in (len(line), kernel)]
        parts = (a[(..., *grids)] ** p).reshape(2, 3, *shape)
        want = parts.sum(axis=tuple(range(3, 3 + 2 * spatial, 2))) ** (1 / p)
        got = getattr(gt, f"lp_pool{spatial}d")(gt.asarray(a, device=where), p, kernel, stride)
        np.testing.assert_allclose(got.numpy(), want, 1e-12)
    with pytest.raises(ValueError, match=f"lp_pool{spatial}d: norm_type: got 0; expected"):
        getattr(gt, f"lp_pool{spatial}d")(gt.asarray(a, device=where), 0, 2)


def test_layers_with_random_numbers(where, rng):
    stats = pytest.importorskip("scipy.stats", reason="needs SciPy")
    logits = rng.standard_normal(4)
    x = gt.broadcast_to(gt.asarray(logits, device=where), (20_000, 4))
    draw = gt.random.generator(3, device=where)
    hard = gt.gumbel_softmax(x, tau=0.7, hard=True, generator=draw).numpy()
    assert (np.sort(hard, -1) == [0, 0, 0, 1]).all()
    shares = np.exp(logits) / np.exp(logits).sum()
    assert stats.chisquare(hard.sum(0), shares * 20_000).pvalue > 1e-4
    soft = gt.gumbel_softmax(x.T, 0.7, dim=0, generator=draw).numpy()
    np.testing.assert_allclose(soft.sum(0), 1, 1e-12)
    assert stats.chisquare(np.bincount(soft.argmax(0)), shares * 20_000).pvalue > 1e-4
    y = gt.rrelu(-gt.ones(20_000, dtype="float64", device=where), 0.2, 0.6, True, generator=draw)
    assert stats.kstest(-y.numpy(), stats.uniform(0.2, 0.4).cdf).pvalue > 1e-4
    z = gt.asarray([-2.0, 3.0], device=where)
    assert gt.rrelu(z, 0.25, 0.75).tolist() == [-1, 3]
    for spatial in (1, 2, 3):
        ones = gt.ones((50, 40, *[3] * spatial), device=where)
        left = getattr(gt, f"dropout{spatial}d")(ones, 0.25, generator=draw).numpy()
        left = left.reshape(50 * 40, -1)
        assert (left == left[:, :1]).all() and set(left[:, 0]) == {0, np.float32(4 / 3)}
        assert stats.binomtest(int((left[:, 0] > 0).sum()), 2000, 0.75).pvalue > 1e-4


def test_first_window_may_be_incomplete_if_it_is_the_last(where):
    x = gt.asarray([[[1.0, 2.0]]], device=where)
    assert gt.max_pool1d(x, 3, ceil_mode=True).tolist() == [[[2]]]
    assert gt.avg_pool1d(x, 3, ceil_mode=True).tolist() == [[[1.5]]]
    for given in ({}, {"stride": 1, "ceil_mode": True}):
        with pytest.raises(ValueError, match="extent of x: got 2; expected 3 or more"):
            gt.max_pool1d(x, 3, **given)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_pools_of_16_bit_floats_round_once(where, dtype, rng):
    a = (rng.random((2, 3, 60)) + 0.5).astype(DTYPES[dtype])
    windows = a.astype(float).reshape(2, 3, 20, 3)
    x = gt.asarray(a, device=where)
    close("lp_pool1d", gt.lp_pool1d(x, 3, 3), (windows**3).sum(-1) ** (1 / 3), dtype, 64)
    got = gt.avg_pool1d(x, 3, divisor_override=7)
    close("avg_pool1d", got, windows.sum(-1) / 7, dtype, 16)


def test_places_of_maxima_without_samples(where):
    for one in gt.max_pool2d(gt.empty((0, 2, 4, 4), device=where), 2, return_indices=True):
        assert one.shape == (0, 2, 2, 2)
