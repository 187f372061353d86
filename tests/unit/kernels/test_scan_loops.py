"""Cumulative sums, products and extremes on the host device have NumPy's bits; so have places."""

import numpy as np
import pytest

import gputensor as gt

DTYPES = ("bool", "int8", "int32", "int64", "uint32", "uint64", "float32", "float64", "complex64")


def array_of(rng, shape, dtype):
    array = (rng.normal(size=shape) * rng.choice([1, 40, 1e6])).astype(dtype)
    if array.dtype.kind == "f":
        chosen = rng.random(shape) < 0.1
        given = np.array([np.inf, -np.inf, 0.0, -0.0, np.nan], dtype)
        array[chosen] = rng.choice(given, np.count_nonzero(chosen))
    return array


def check(got, want):
    assert got.shape == want.shape
    np.testing.assert_array_equal(got, want)
    is_number = want == want
    np.testing.assert_array_equal(np.signbit(got.real)[is_number], np.signbit(want.real)[is_number])


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(1,), (70,), (1, 9), (5, 33), (3, 9, 4), (2, 1, 3)])
def test_sums_and_products_are_numpys(rng, dtype, shape):
    x = array_of(rng, shape, dtype)
    for name in ("cumsum", "cumprod"):
        for axis in (None, *range(len(shape))):
            with np.errstate(all="ignore"):
                want = getattr(np, name)(x, axis)
            check(getattr(gt, name)(gt.asarray(x, device="host"), axis).numpy(), want)


@pytest.mark.parametrize("dtype", ["int32", "int64", "uint32", "float32", "float64"])
def test_extremes_so_far_are_numpys(rng, dtype):
    x = array_of(rng, (5, 33, 3), dtype)
    for function, wanted in ((gt.maximum, np.maximum), (gt.minimum, np.minimum)):
        for axis in range(3):
            got = function.accumulate(gt.asarray(x, device="host"), axis).numpy()
            # Of zeros with both signs, NumPy takes one that depends on the processor.
            np.testing.assert_array_equal(got, wanted.accumulate(x, axis))


@pytest.mark.parametrize("dtype", ["bool", "int32", "int64", "uint32", "float32", "float64"])
@pytest.mark.parametrize("count", [1, 63, 64, 65, 200, 1000])
def test_places_of_extremes_are_numpys_in_whole_blocks_and_parts(rng, dtype, count):
    x = array_of(rng, (count,), dtype)
    for given in (x, np.sort(x), np.sort(x)[::-1], np.full(count, x[0])):
        y = gt.asarray(given.copy(), device="host")
        for name in ("argmax", "argmin"):
            assert int(getattr(gt, name)(y)) == getattr(np, name)(given)
            backwards = int(getattr(gt, name)(gt.flip(y)))
            assert backwards == getattr(np, name)(given[::-1])
