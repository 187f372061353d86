"""Quantiles without NaN and short formulas against NumPy, on random input."""

import warnings

import numpy as np
import pytest

import gputensor as gt
from tests.support.tensor_arrays import check_same


@pytest.mark.parametrize("method", ["linear", "lower", "higher", "nearest", "midpoint"])
def test_quantiles_without_nan(where, rng, method):
    for _ in range(10):
        shape = tuple(int(n) for n in rng.integers(1, 6, rng.integers(1, 4)))
        a = rng.standard_normal(shape)
        a[rng.random(shape) < 0.3] = np.nan
        a[rng.random(shape) < 0.1] = np.inf
        axis = None if rng.integers(2) else int(rng.integers(len(shape)))
        keepdims = bool(rng.integers(2))
        x = gt.asarray(a, device=where)
        for q in (0.0, 1.0, float(rng.random()), [0.25, float(rng.random())]):
            with np.errstate(all="ignore"), warnings.catch_warnings():
                warnings.simplefilter("ignore")  # slices of only NaN
                want = np.nanquantile(a, q, axis, method=method, keepdims=keepdims)
            got = gt.nanquantile(x, q, axis, method=method, keepdims=keepdims).numpy()
            # Infinite results of NumPy's interpolation are not compared.
            known = np.isfinite(want) | np.isnan(got)
            np.testing.assert_allclose(got[known], np.asarray(want)[known], 1e-12)
        got = gt.nanpercentile(x, 40, axis, method=method).numpy()
        np.testing.assert_array_equal(got, gt.nanquantile(x, 0.4, axis, method=method).numpy())


def test_order_statistics(where, rng):
    a = rng.standard_normal((4, 9)).astype(np.float32)
    x = gt.asarray(a, device=where)
    values, order = gt.kthvalue(x, 3, 1)
    np.testing.assert_array_equal(values.numpy(), np.sort(a, 1)[:, 2])
    np.testing.assert_array_equal(order.numpy(), np.argsort(a, 1, kind="stable")[:, 2])
    assert gt.kthvalue(x, 1, 0, keepdims=True).values.shape == (1, 9)
    np.testing.assert_array_equal(gt.msort(x).numpy(), np.sort(a, 0))
    edges = np.array([-1.0, 0.0, 0.5], np.float32)
    t = gt.asarray(edges, device=where)
    np.testing.assert_array_equal(gt.bucketize(x, t).numpy(), np.searchsorted(edges, a, "left"))
    np.testing.assert_array_equal(gt.histc(x, 7, -2, 2).numpy(), np.histogram(a, 7, (-2, 2))[0])
    np.testing.assert_array_equal(gt.histc(x, 5).numpy(), np.histogram(a, 5)[0])


def test_short_formulas(where, rng):
    a, b, c = rng.uniform(0.1, 0.9, (3, 4, 5))
    x, y, z = (gt.asarray(one, device=where) for one in (a, b, c))
    for got, want in (
        (gt.lerp(x, y, z), a + c * (b - a)),
        (gt.addcmul(x, y, z, value=3), a + 3 * b * c),
        (gt.addcdiv(x, y, z, value=3), a + 3 * b / c),
        (gt.frac(x * -7), np.fmod(a * -7, 1)),
        (gt.xlogy(x, y), a * np.log(b)),
        (gt.logit(x), np.log(a / (1 - a))),
        (gt.logit(x * 3 - 1, eps=0.2), np.log(1 / (1 / np.clip(a * 3 - 1, 0.2, 0.8) - 1))),
        (gt.logaddexp2(x * 2000, y), np.logaddexp2(a * 2000, b)),
    ):
        np.testing.assert_allclose(got.numpy(), want, 1e-12, 1e-14)
    for pair, ddof in ((gt.var_mean(x, 1), 1), (gt.var_mean(x, 1, correction=0), 0)):
        np.testing.assert_allclose(pair[0].numpy(), a.var(1, ddof=ddof), 1e-12)
        np.testing.assert_allclose(pair[1].numpy(), a.mean(1), 1e-12)
    np.testing.assert_allclose(gt.std_mean(x)[0].numpy(), a.std(ddof=1), 1e-12)
    zeros = gt.asarray([0.0, 0.0, 0.0], device=where)
    others = gt.asarray([0.0, float("inf"), float("nan")], device=where)
    check_same(gt.xlogy(zeros, others), np.array([0, 0, np.nan], np.float32))
    assert gt.numel(x) == 20 and gt.unflatten(x, 1, (-1, 5)).shape == (4, 1, 5)
    np.testing.assert_array_equal(gt.narrow(x, 1, -3, 2).numpy(), a[:, 2:4])
    with pytest.raises(ValueError, match="unflatten: sizes"):
        gt.unflatten(x, 1, (2, 3))


@pytest.mark.parametrize("dtype", ["float8_e4m3", "float8_e5m2"])
def test_orders_of_stored_types(where, rng, dtype):
    x = gt.asarray(rng.standard_normal(5000).astype(np.float32), device=where).astype(dtype)
    a = x.numpy().astype(np.float32)
    assert gt.sort(x).dtype == x.dtype
    np.testing.assert_array_equal(gt.sort(x).numpy().astype(np.float32), np.sort(a))
    np.testing.assert_array_equal(gt.argsort(x).numpy(), np.argsort(a, kind="stable"))
    np.testing.assert_array_equal(gt.unique(x).numpy().astype(np.float32), np.unique(a))
    np.testing.assert_array_equal(gt.nonzero(x)[0].numpy(), np.nonzero(a)[0])
    counts = gt.histogram(x, 10, (-2, 2))[0].numpy()
    np.testing.assert_array_equal(counts, np.histogram(a, 10, (-2, 2))[0])


@pytest.mark.parametrize("name", ["quantile", "percentile", "nanquantile", "nanpercentile"])
def test_quantiles_write_to_out(where, rng, name):
    a = rng.standard_normal((3, 5, 4)).astype(np.float32)
    a[0, 1, 2] = np.nan
    x = gt.asarray(a, device=where)
    q = [0.25, 0.7] if "quantile" in name else [25, 70]
    out = gt.full((2, 4), -7.0, "float64", device=where)[:, ::-1]
    assert getattr(gt, name)(x, q, (0, 1), out) is out
    check_same(out, getattr(np, name)(a, q, (0, 1)).astype("float64"), 1e-6)
    with pytest.raises(ValueError, match=r"out: got shape \(2, 4\); expected \(2, 3\)"):
        getattr(gt, name)(x, q, (1, 2), out=out)
    middle = gt.zeros((3, 1, 4), device=where)
    for median in (gt.median, gt.nanmedian):
        assert median(x, 1, middle, keepdims=True) is middle
    check_same(middle, np.nanmedian(a, 1, keepdims=True), 1e-6)
    places = gt.full((3, 4), -7, device=where)
    for position in ("nanargmax", "nanargmin"):
        assert getattr(gt, position)(x, 1, places) is places
        check_same(places, getattr(np, position)(a, 1))
    truth = gt.asarray(a > 0, device=where)
    for median in (gt.median, gt.nanmedian):
        check_same(median(truth, 2), np.median(a > 0, 2).astype("float32"))
    check_same(gt.nanmedian(x, (0, 2)), np.nanmedian(a, (0, 2)), 1e-6)


METHODS = (
    "inverted_cdf averaged_inverted_cdf closest_observation interpolated_inverted_cdf hazen "
    "weibull linear median_unbiased normal_unbiased lower higher midpoint nearest"
).split()


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.filterwarnings("ignore:All-NaN slice")
def test_quantiles_by_every_method_of_numpy(where, rng, method):
    for _ in range(6):
        a = rng.integers(0, 20, (3, rng.integers(1, 12))).astype("float64")
        shares = [0.0, 0.25, 0.5, 0.75, 1.0, float(rng.random())]
        x = gt.asarray(a, device=where)
        got = gt.quantile(x, shares, axis=1, method=method)
        np.testing.assert_allclose(got.numpy(), np.quantile(a, shares, axis=1, method=method))
        got = gt.percentile(x, 37.5, method=method, keepdims=True)
        want = np.percentile(a, 37.5, method=method, keepdims=True)
        np.testing.assert_allclose(got.numpy(), want)
        a[rng.random(a.shape) < 0.2] = np.nan
        got = gt.nanquantile(gt.asarray(a, device=where), shares, axis=1, method=method)
        np.testing.assert_allclose(got.numpy(), np.nanquantile(a, shares, axis=1, method=method))


def test_top_k_of_lines_and_of_all_elements(where, rng):
    a = rng.permuted(np.arange(24, dtype=np.float32)).reshape(2, 3, 4)
    x = gt.asarray(a, device=where)
    for axis in (-1, 0, 1, 2):
        k = int(rng.integers(1, a.shape[axis] + 1))
        order = np.argsort(a, axis)
        least, most = np.take(order, range(k), axis), np.take(np.flip(order, axis), range(k), axis)
        for given, want in (
            ({}, most), ({"mode": "smallest"}, least), ({"largest": False}, least),
            ({"sorted": False}, most),
        ):  # fmt: skip
            values, indices = gt.top_k(x, k, axis=axis, **given)
            np.testing.assert_array_equal(indices.numpy(), want)
            np.testing.assert_array_equal(values.numpy(), np.take_along_axis(a, want, axis))
    assert gt.top_k(x, 2, axis=None).values.tolist() == [23, 22]
    assert gt.top_k(x, 1).indices.dtype == gt.int64
    for call, error, text in (
        (lambda: gt.top_k(x, 0), ValueError, "top_k: k: got 0; expected 1 to 4, the extent"),
        (lambda: gt.top_k(x, 5), ValueError, "top_k: k: got 5"),
        (lambda: gt.top_k(x, 1, mode="most"), ValueError, "top_k: mode: got 'most'"),
        (lambda: gt.top_k("1", 1), TypeError, "top_k: argument: got str"),
        (lambda: gt.top_k(x, 1, largest="yes"), TypeError, "top_k: largest: got"),
    ):
        with pytest.raises(error, match=text):
            call()


def check_search_of_lines(rng, where):
    for name in ("float32", "int64", "complex64", "uint8", "float64"):
        n, lead = int(rng.integers(1, 40)), tuple(rng.integers(1, 4, int(rng.integers(1, 3))))
        a, v = rng.integers(0, 12, (*lead, n)), rng.integers(0, 12, (*lead, 7))
        if name.startswith("float"):
            a, v = (np.where(rng.random(one.shape) < 0.1, np.nan, one) for one in (a, v))
        if name == "complex64":
            a, v = (one + 1j * rng.integers(0, 3, one.shape) for one in (a, v))
        a, v = np.sort(a.astype(name)), v.astype(name)
        for side in ("left", "right"):
            lines = zip(a.reshape(-1, n), v.reshape(-1, 7), strict=True)
            want = np.reshape([np.searchsorted(one, other, side) for one, other in lines], v.shape)
            x, y = gt.asarray(a, device=where), gt.asarray(v, device=where)
            got = gt.searchsorted(x, y, side)
            assert got.dtype == gt.int64
            np.testing.assert_array_equal(got.numpy(), want)
            np.testing.assert_array_equal(
                gt.searchsorted(x, y, right=side == "right").numpy(), want
            )


def test_each_line_is_searched_for_its_values(where, rng):
    check_search_of_lines(rng, where)
    x = gt.ones((2, 3), device=where)
    assert gt.searchsorted(x[:, :0], x).tolist() == [[0] * 3] * 2
    with pytest.raises(ValueError, match=r"searchsorted: shape of values: got \(2,\); expected"):
        gt.searchsorted(x, x[:, 0])
    order = gt.asarray([[2, 1, 0], [0, 1, 2]], device=where)
    y = gt.asarray([[3, 2, 1], [1, 2, 3]], device=where)
    assert gt.searchsorted(y, y[:, :1] * 0 + 2, sorter=order).tolist() == [[1], [1]]


@pytest.mark.parametrize("dtype", ["float16", "float64"])
def test_medians_of_the_smallest_and_largest_numbers(where, dtype):
    least, most = np.finfo(dtype).smallest_subnormal, np.finfo(dtype).max
    for low, high, want in (
        (3 * least, 3 * least, 3 * least), (least, 3 * least, 2 * least), (-least, least, 0),
        (-3 * least, least, -least), (-most, most, 0), (most, most, most),
        (-np.inf, 1, -np.inf), (np.inf, np.inf, np.inf),
    ):  # fmt: skip
        x = gt.asarray(np.array([low, high], dtype), device=where)
        assert gt.median(x).item() == gt.quantile(x, 0.5).item() == want


@pytest.mark.parametrize("dtype", ["float32", "float64", "int16"])
@pytest.mark.parametrize("name", ["median", "nanmedian", "nanquantile", "nanpercentile"])
def test_no_elements_have_the_median_nan(where, name, dtype):
    x = gt.asarray(np.zeros((2, 0, 3), dtype), device=where)
    share = () if "median" in name else (0.5,)
    for options, shape in (({"axis": 1}, (2, 3)), ({"keepdims": True}, (1, 1, 1)), ({}, ())):
        got = getattr(gt, name)(x, *share, **options)
        assert got.dtype == (gt.float64 if dtype == "float64" else gt.float32)
        assert got.shape == shape and np.isnan(got.numpy()).all()
    with pytest.raises(ValueError, match="quantile: x: got no elements; expected at least one"):
        gt.quantile(x, 0.5)


@pytest.mark.parametrize("dtype", ["float16", "float64", "int32"])
@pytest.mark.parametrize("name", ["quantile", "nanquantile", "percentile", "nanpercentile"])
def test_shares_of_any_shape_come_first(where, rng, name, dtype):
    a = rng.normal(size=(3, 5, 4)).astype("float64") * 9
    a = a.astype(dtype)
    if a.dtype.kind == "f" and name.startswith("nan"):
        a[:, 1:][rng.random((3, 4, 4)) < 0.3] = np.nan
    shares = rng.random((2, 3)) * (100 if name.endswith("percentile") else 1)
    for axis, keepdims in ((None, False), (1, True), ((0, 2), False)):
        found = [
            getattr(np, name)(a.astype("float64"), one, axis, keepdims=keepdims)
            for one in shares.ravel()
        ]
        want = np.reshape(found, (*shares.shape, *found[0].shape))
        x = gt.asarray(a, device=where)
        for q in (shares.tolist(), gt.asarray(shares, device=where)):
            got = getattr(gt, name)(x, q, axis, keepdims=keepdims)
            assert got.shape == want.shape
            tolerance = 2e-2 if dtype == "float16" else 1e-5
            np.testing.assert_allclose(got.numpy(), want, tolerance, atol=tolerance)
