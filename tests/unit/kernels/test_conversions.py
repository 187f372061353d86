"""Compiled conversions of 16-bit floats on the host device are NumPy's, bit for bit."""

import numpy as np
import pytest

from gputensor._arrays.element_types import DTYPES
from gputensor._kernels.loops import converted

HALF, SINGLE = np.dtype(np.float16), np.dtype(np.float32)
BFLOAT = next(row.numpy for row in DTYPES if row.name == "bfloat16")


def assert_same(got, wanted):
    assert got.dtype == wanted.dtype and got.shape == wanted.shape
    is_nan = np.isnan(wanted)
    np.testing.assert_array_equal(np.isnan(got), is_nan)
    words = np.dtype(f"u{wanted.itemsize}")
    np.testing.assert_array_equal(got.view(words)[~is_nan], wanted.view(words)[~is_nan])


def numbers(rng, dtype):
    """Random bits, numbers of all sizes, and those halfway between neighbours of `dtype`."""
    bits = rng.integers(0, 1 << 32, 5000, dtype=np.uint64).astype(np.uint32).view(SINGLE)
    sizes = (rng.standard_normal(5000) * 10 ** rng.uniform(-9, 6, 5000)).astype(SINGLE)
    near = np.arange(1 << 16, dtype=np.uint16).view(dtype).astype(SINGLE)
    with np.errstate(invalid="ignore", over="ignore"):
        between = (near[:-1].astype(float) + near[1:]) / 2
        return np.concatenate([bits, sizes, between.astype(SINGLE)])


def test_every_half_becomes_wider():
    halves = np.arange(1 << 16, dtype=np.uint16).view(HALF)
    assert_same(converted(halves, SINGLE), halves.astype(SINGLE))


@pytest.mark.parametrize("dtype", [HALF, BFLOAT], ids=["float16", "bfloat16"])
def test_floats_are_rounded_to_the_nearest(rng, dtype):
    x = numbers(rng, dtype)
    with np.errstate(invalid="ignore", over="ignore"):
        assert_same(converted(x, dtype), x.astype(dtype))


@pytest.mark.parametrize("size", [1, 255, 256, 259, 2047, 2048, 2055])
def test_any_number_and_layout_of_elements(rng, size):
    x = rng.standard_normal((2, size)).astype(SINGLE)
    for dtype in (HALF, BFLOAT, np.dtype(np.float64)):
        for part in (x, x[:, ::-1], x.T, x[0], x[1:]):
            narrow = part.astype(dtype)
            assert_same(converted(part, dtype), narrow)
            assert_same(converted(narrow, SINGLE), narrow.astype(SINGLE))
