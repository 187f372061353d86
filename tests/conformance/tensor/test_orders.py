"""Sorting, selection, search, counts and scans by our kernels against NumPy, on random input."""

import numpy as np
import pytest

import gputensor as gt
from gputensor._arrays.element_types import DTYPES
from tests.support.tensor_arrays import random_array, random_view

REAL = [row for row in DTYPES if row.kind in ("bool", "int", "uint", "float")]
SUMMED = [row for row in DTYPES if row.kind != "small"]


def ordered(values):
    """In a dtype that NumPy sorts in our order, with -0 equal to 0."""
    wide = values.astype(np.float32) if values.dtype.kind == "V" or values.itemsize == 2 else values
    return wide + 0 if wide.dtype.kind == "f" else wide


def sample(rng, shape, row, place):
    """Values with many ties, and with NaN, infinities and zeros of both signs among floats."""
    most = int(rng.choice([3, 100]))
    a = random_array(rng, shape, row.numpy, 0 if row.kind == "uint" else -most, most)
    if row.kind == "float" and a.size and rng.integers(2):
        flat = a.reshape(-1)
        picks = rng.integers(flat.size, size=min(5, flat.size))
        flat[picks] = np.array([np.nan, np.inf, -np.inf, -0.0, 0.0], a.dtype)[: picks.size]
    return random_view(rng, a, place)


def places(a, is_descending):
    """The stable order along the last axis."""
    a = ordered(a)
    if not is_descending:
        return np.argsort(a, -1, kind="stable")
    return a.shape[-1] - 1 - np.argsort(a[..., ::-1], -1, kind="stable")[..., ::-1]


def same(got, want):
    np.testing.assert_array_equal(ordered(got.numpy()), ordered(np.asarray(want)))


def check_sort(rng, place, row, shape):
    a, x = sample(rng, shape, row, place)
    axis = int(rng.integers(len(shape)))
    is_descending = bool(rng.integers(2))
    lines = np.moveaxis(a, axis, -1)
    order = places(lines, is_descending)
    got = gt.argsort(x, axis, descending=is_descending)
    assert got.dtype == np.int64 and np.array_equal(got.numpy(), np.moveaxis(order, -1, axis))
    want = np.moveaxis(np.take_along_axis(lines, order, -1), -1, axis)
    got = gt.sort(x, axis, descending=is_descending)
    assert got.dtype == row.numpy and got.shape == a.shape
    same(got, want)
    k = int(rng.integers(0, shape[axis] + 1))
    values, order_ = gt.topk(x, k, axis, largest=is_descending)
    first = np.moveaxis(order[..., :k], -1, axis)
    assert np.array_equal(order_.numpy(), first), (row.name, shape, axis, k, is_descending)
    same(values, np.take_along_axis(a, first, axis))


def check_search(rng, place, row):
    a, _ = sample(rng, (int(rng.integers(1, 300)),), row, place)
    b, y = sample(rng, (7, int(rng.integers(1, 60))), row, place)
    a = a[places(a, False)]
    x = gt.asarray(a, device=place)
    for side in ("left", "right"):
        want = np.searchsorted(ordered(a), ordered(b), side)
        assert np.array_equal(gt.searchsorted(x, y, side).numpy(), want)


def check_count(rng, place, length):
    row = DTYPES[int(rng.integers(1, 9))]
    most = min(length - 1, np.iinfo(row.numpy).max)
    a = rng.integers(0, most, int(rng.integers(1, 9000)), endpoint=True).astype(row.numpy)
    got = gt.bincount(gt.asarray(a, device=place), minlength=length)
    assert np.array_equal(got.numpy(), np.bincount(a.astype(np.int64), minlength=length))


def check_scan(rng, place, row, shape):
    is_product = bool(rng.integers(2))
    low = 0 if row.kind in ("bool", "uint") else -3
    a, x = random_view(rng, random_array(rng, shape, row.numpy, low, 3), place)
    if row.kind in ("float", "complex"):
        # Products of numbers near 1, whose magnitudes stay within the range.
        signs = rng.choice([1.0, -1.0], shape)
        a = (signs * rng.uniform(0.98, 1.02, shape)).astype(row.numpy)
        x = gt.asarray(a, device=place)
    axis = int(rng.integers(len(shape)))
    got = (gt.cumprod if is_product else gt.cumsum)(x, axis)
    function = np.cumprod if is_product else np.cumsum
    if row.kind in ("bool", "int", "uint"):
        want = function(a, axis)
        assert got.dtype == want.dtype and np.array_equal(got.numpy(), want)
        return
    assert got.dtype == row.numpy
    wide = np.complex128 if row.kind == "complex" else np.float64
    want = function(a.astype(wide), axis)
    sizes = function(np.abs(a).astype(np.float64), axis)
    one = {"float16": 2.0**-11, "bfloat16": 2.0**-8}.get(row.name, 0)
    unit = 2.0**-53 if row.name in ("float64", "complex128") else 2.0**-24
    # No element takes part in more than 16 + 2 * extent additions.
    bound = one * np.abs(want) + unit * (16 + 2 * shape[axis]) * sizes
    got = got.numpy().astype(wide)
    assert (np.abs(got - want) <= bound).all(), (row.name, shape, axis, is_product)


SHAPES = [(1,), (64,), (65, 3), (2, 200), (3, 2049), (5, 4, 33), (1, 5000)]


@pytest.mark.parametrize("row", REAL, ids=lambda row: row.name)
def test_sorts_and_selections(place, rng, row):
    for shape in SHAPES:
        check_sort(rng, place, row, shape)


@pytest.mark.parametrize("row", REAL, ids=lambda row: row.name)
def test_searches(place, rng, row):
    check_search(rng, place, row)


@pytest.mark.parametrize("length", [1, 256, 5000])
def test_counts(place, rng, length):
    for _ in range(4):
        check_count(rng, place, length)


@pytest.mark.parametrize("row", SUMMED, ids=lambda row: row.name)
def test_scans(place, rng, row):
    for shape in [(1,), (5000,), (3, 130), (130, 3), (2, 300, 5), (1, 9000), (4000, 2)]:
        check_scan(rng, place, row, shape)


def test_selection_of_a_long_row_is_done_in_parts(place, rng):
    for count in (1 << 17, (1 << 17) + 77):
        a = rng.integers(0, 5000, count).astype(np.int32)
        x = gt.asarray(a, device=place)
        values, order = gt.topk(x, 64)
        want = np.argsort(-a.astype(np.int64), kind="stable")[:64]
        assert np.array_equal(order.numpy(), want) and np.array_equal(values.numpy(), a[want])


def test_scan_begins_with_its_identity(place, rng):
    a = rng.integers(-5, 5, (4, 70)).astype(np.int32)
    x = gt.asarray(a, device=place)
    got = gt.cumulative_sum(x, axis=1, include_initial=True).numpy()
    assert np.array_equal(got[:, 1:], np.cumsum(a, 1)) and not got[:, 0].any()
    assert np.array_equal(gt.cumsum(x, 0, dtype="int8").numpy(), np.cumsum(a, 0, dtype=np.int8))
    out = gt.full((4, 70), 9, dtype="float64", device=place)
    assert gt.cumsum(x, 1, dtype="float64", out=out) is out
    assert np.array_equal(out.numpy(), np.cumsum(a, 1))


def test_a_program_sorts_selects_searches_counts_and_sums(place, rng):
    edges = [-1.5, -0.5, 0.0, 0.5, 1.5]

    def function(x):
        values, order = gt.topk(x, 5, 0)
        counts, _ = gt.histogram(x, gt.asarray(edges))
        return gt.sort(x), gt.argsort(x, 0), values, order, gt.cumsum(x, 1), counts

    a = rng.standard_normal((9, 70)).astype(np.float32)
    with gt.Device(place):
        x = gt.asarray(a)
        program = gt.compile(function, gt.spec((gt.Dim("n", 5, 20), 70)))
        for got, want in zip(program(x), function(x), strict=True):
            assert got.dtype == want.dtype and np.array_equal(got.numpy(), want.numpy())


@pytest.mark.parametrize("dtype", ["float8_e4m3", "float8_e5m2", "bfloat16"])
def test_a_program_takes_stored_types(place, rng, dtype):
    with gt.Device(place):
        x = gt.asarray(rng.standard_normal((3, 4)).astype(np.float32)).astype(dtype)
        program = gt.compile(
            lambda x: (x.astype("float32") * 2, gt.sort(x)), gt.spec((3, 4), dtype)
        )
        double, ordered = program(x)
        assert np.array_equal(double.numpy(), x.numpy().astype(np.float32) * 2)
        assert ordered.dtype == x.dtype
        assert np.array_equal(ordered.numpy().view(np.uint8), gt.sort(x).numpy().view(np.uint8))
