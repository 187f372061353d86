"""Loops of the host device that search, select, count and choose give NumPy's results."""

import numpy as np
import pytest

import gputensor as gt
from gputensor._kernels.host import orders

NUMBERS = ("float32", "float64", "int32", "int64", "uint32", "uint64")
WHOLE = [f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)]


def on_host(array):
    return gt.asarray(array, device="host")


def array_of(rng, count, dtype, wide=True):
    """Random numbers, many of them equal, with those at which orders differ."""
    dtype = np.dtype(dtype)
    if dtype.kind == "f":
        given = [np.nan, -np.nan, np.inf, -np.inf, 0.0, -0.0]
        array = np.round(rng.normal(size=count) * 4, 1).astype(dtype)
    else:
        limits = np.iinfo(dtype)
        given = [limits.min, limits.max, limits.max - 1, 0] if wide else [3]
        array = rng.integers(0 if dtype.kind == "u" else -9, 9, count).astype(dtype)
    places = rng.random(count) < 0.2
    array[places] = rng.choice(np.array(given, dtype), np.count_nonzero(places))
    return array


@pytest.mark.parametrize("dtype", NUMBERS)
@pytest.mark.parametrize("length", [0, 1, 2, 3, 8, 33, 1000])
def test_searches_are_numpys(rng, dtype, length):
    x = np.sort(array_of(rng, length, dtype))
    for count in (0, 1, 7, 8, 9, 50):
        values = array_of(rng, count, dtype)
        for side in ("left", "right"):
            got = gt.searchsorted(on_host(x), on_host(values), side)
            assert got.dtype == np.int64
            np.testing.assert_array_equal(got.numpy(), np.searchsorted(x, values, side))


@pytest.mark.parametrize("dtype", NUMBERS)
def test_the_first_of_rows_are_those_of_a_stable_sort(rng, dtype):
    for columns in (1, 5, 300):
        x = array_of(rng, 4 * columns, dtype).reshape(4, columns)
        for is_largest in (True, False):
            want = np.empty(x.shape, np.int64)
            orders.run_argsort(is_largest, want, x)
            for k in {1, min(3, columns), min(128, columns), min(129, columns), columns}:
                values, places = gt.topk(on_host(x), k, largest=is_largest)
                np.testing.assert_array_equal(places.numpy(), want[:, :k])
                taken = np.take_along_axis(x, want[:, :k], 1)
                assert values.numpy().tobytes() == taken.tobytes()


@pytest.mark.parametrize("dtype", ["float16", *NUMBERS, *WHOLE])
@pytest.mark.parametrize("columns", [1, 16, 61, 128, 129, 256, 700, 2100])
def test_sorts_of_short_and_long_rows_are_stable(rng, dtype, columns):
    x = array_of(rng, 3 * columns, dtype).reshape(3, columns)
    for is_descending in (False, True):
        want = np.empty(x.shape, np.int64)
        orders.run_argsort(is_descending, want, x)
        got = gt.argsort(on_host(x), descending=is_descending).numpy()
        np.testing.assert_array_equal(got, want)
        got = gt.sort(on_host(x), descending=is_descending).numpy()
        np.testing.assert_array_equal(got, np.take_along_axis(x, want, 1))
        if columns == 2100:
            assert got.tobytes() == np.take_along_axis(x, want, 1).tobytes()


@pytest.mark.parametrize("columns", [40, 256, 2100])
def test_sorts_of_bfloat16_are_those_of_float32(rng, columns):
    x = gt.astype(on_host(array_of(rng, 3 * columns, "float32")), "bfloat16")
    x = gt.reshape(x, (3, columns))
    wide = gt.astype(x, "float32")
    np.testing.assert_array_equal(gt.argsort(x).numpy(), gt.argsort(wide).numpy())
    got = gt.astype(gt.sort(x), "float32").numpy()
    np.testing.assert_array_equal(got, gt.sort(wide).numpy())


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "int8", "int64"])
def test_quantiles_are_those_of_sorted_rows(rng, dtype):
    for columns in (1, 2, 255, 256, 999):
        x = rng.normal(size=(3, columns)).astype(dtype)
        if x.dtype.kind == "f" and columns > 2:
            x[0, 1] = np.nan
        for count in (1, 3, 12):  # many of them are found by a sort
            shares = rng.random(count).tolist()
            for method in ("linear", "nearest", "lower"):
                got = gt.quantile(on_host(x), shares, axis=1, method=method).numpy()
                wide = np.sort(x.astype(np.float64), axis=1)
                want = np.quantile(wide, shares, axis=1, method=method)
                error = 6e-4 if dtype == "float16" else 1e-6
                np.testing.assert_allclose(got, want, rtol=error, atol=error)


@pytest.mark.parametrize("dtype", ["int64", "uint64"])
def test_near_and_far_integers_are_sorted_by_place(rng, dtype):
    limits = np.iinfo(dtype)
    for span in (1, 1000, (1 << 32) - 2, 1 << 32, limits.max // 2):
        for low in (limits.min, 0, limits.max - span):
            x = low + rng.integers(0, span, 300, np.uint64, endpoint=True).astype(dtype)
            x[:100] = x[100:200]
            for is_descending in (False, True):
                order = gt.argsort(on_host(x), descending=is_descending).numpy()
                key = [int(one) * (-1 if is_descending else 1) for one in x]
                assert order.tolist() == sorted(range(len(x)), key=key.__getitem__)


@pytest.mark.parametrize("dtype", WHOLE)
def test_counts_of_every_integer_type(rng, dtype):
    x = rng.integers(0, 100, 700).astype(dtype)
    weights = rng.normal(size=700)
    for least in (0, 300):
        np.testing.assert_array_equal(
            gt.bincount(on_host(x), minlength=least).numpy(), np.bincount(x, minlength=least)
        )
        got = gt.bincount(on_host(x), on_host(weights), least).numpy()
        assert got.tobytes() == np.bincount(x, weights, least).tobytes()
    if np.dtype(dtype).kind == "i":
        x[300] = -1
        with pytest.raises(ValueError, match="bincount: x: got -1; expected 0 or more"):
            gt.bincount(on_host(x))


@pytest.mark.parametrize("dtype", NUMBERS)
def test_sums_at_places_are_added_one_by_one(rng, dtype):
    target, source = array_of(rng, 40, dtype), array_of(rng, 500, dtype)
    index = rng.integers(-40, 40, 500)
    for shape in ((40,), (4, 10)):
        rows, places = target.reshape(shape), index % 10 - 5 if len(shape) == 2 else index
        added = source.reshape(*shape[:-1], -1)
        places = places[: added.shape[-1]]
        want = rows.copy()
        with np.errstate(all="ignore"):
            np.add.at(want, (..., places), added)
        got = gt.index_add(on_host(rows), len(shape) - 1, on_host(places), on_host(added)).numpy()
        np.testing.assert_array_equal(got, want)
    with pytest.raises(IndexError, match="index 41 is out of bounds for an axis with size 40"):
        gt.index_add(on_host(target), 0, on_host(np.array([0, 41])), on_host(source[:2])).numpy()


@pytest.mark.parametrize("dtype", ["bool", "float16", "int8", "complex64", *NUMBERS])
@pytest.mark.parametrize("equal_nan", [True, False])
def test_unique_values_with_any_of_their_facts(rng, dtype, equal_nan):
    for count in (1, 40, 3000):
        x = array_of(
            rng, count, "int8" if dtype == "bool" else dtype.replace("complex64", "float32")
        )
        x = x.astype(dtype).reshape(-1, 1)
        for wanted in range(8):
            flags = [bool(wanted & bit) for bit in (1, 2, 4)]
            # With positions, NumPy's sort is stable.
            want = np.unique(x, True, True, True, equal_nan=equal_nan)
            want = [one for one, is_there in zip(want, (True, *flags), strict=True) if is_there]
            got = gt.unique(on_host(x), *flags, equal_nan=equal_nan)
            got = got if any(flags) else [got]
            for one, other in zip(got, want, strict=True):
                assert one.dtype == other.dtype
                np.testing.assert_array_equal(one.numpy(), other)


@pytest.mark.parametrize("count", [1, 31, 32, 33, 64, 1000, (1 << 15) - 1, 1 << 15, 70_001])
def test_masks_choose_across_words_and_tiles(rng, count):
    for share in (0.0, 0.02, 0.7, 1.0):
        mask = rng.random(count) < share
        for dtype in ("uint8", "float16", "float32", "float64", "complex128"):
            x = rng.integers(0, 200, count).astype(dtype)
            np.testing.assert_array_equal(on_host(x)[on_host(mask)].numpy(), x[mask])
        np.testing.assert_array_equal(gt.nonzero(on_host(mask))[0].numpy(), np.nonzero(mask)[0])
        ordered = np.sort(rng.integers(0, max(1, int(count * share)) + 1, count))
        np.testing.assert_array_equal(gt.unique(on_host(ordered)).numpy(), np.unique(ordered))


@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "int64"])
def test_extremes_of_any_number_of_elements(rng, dtype):
    for count in (1, 2, 7, 8, 9, 17, 300, 4096):
        x = array_of(rng, count, dtype)
        numbers = x[x == x] if (x == x).any() else x
        zeros = np.where(rng.random(count) < 0.5, np.dtype(dtype).type(0), -np.dtype(dtype).type(0))
        for one in (x, numbers, zeros, np.abs(zeros), -np.abs(zeros)):
            for name in ("max", "min"):
                got = getattr(gt, name)(on_host(one)).numpy()
                np.testing.assert_array_equal(got, getattr(np, name)(one))
                if got == 0 and np.dtype(dtype).kind == "f":  # +0 is the greater
                    signs = np.signbit(one[one == 0])
                    assert np.signbit(got) == (signs.all() if name == "max" else signs.any())


@pytest.mark.parametrize(
    "shape", [(9,), (9000,), (3, 7000), (7000, 3), (16, 1, 600), (8, 9, 10, 13)]
)
def test_places_along_several_axes_are_numpys(rng, shape):
    for share in (0.0, 0.02, 0.5, 1.0):
        mask = rng.random(shape) < share
        got = [one.numpy() for one in on_host(mask).nonzero()]
        np.testing.assert_array_equal(got, np.nonzero(mask))
