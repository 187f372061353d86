"""Mean, variance and deviation of integers: summed in float64, returned in float32."""

import numpy as np
import pytest

import gputensor as gt
from tests.support.tensor_arrays import BOOL, INTEGERS

EXACT = np.longdouble
HALF = 2.0**-24  # the rounding of the result to float32
ROUND = 2.0**-51  # a few roundings of float64 on the way


def random_integers(rng, shape, dtype):
    """Integers of the full range, of a narrow range at one of its ends, or small ones."""
    if dtype == BOOL:
        return rng.integers(0, 2, shape).astype(bool)
    info = np.iinfo(dtype)
    low, high = [
        (info.min, info.max),
        (info.max - 3, info.max),
        (0, 20),
        (info.min, info.min + int(rng.integers(1, 100))),
    ][rng.integers(4)]
    return rng.integers(low, high, shape, dtype=dtype, endpoint=True)


def near(actual, expected, bound, what):
    assert actual.dtype == gt.float32, what
    got = actual.numpy().astype(EXACT)
    assert got.shape == expected.shape, what
    wrong = np.abs(got - expected) > HALF * 1.01 * np.abs(expected) + bound
    assert not wrong.any(), f"{what}: {got[wrong][:3]} instead of {expected[wrong][:3]}"


def statistics_program(rng, place):
    """One random array of integers; its three statistics against extended precision."""
    dtype = [BOOL, *INTEGERS][rng.integers(9)]
    shape = tuple(int(n) for n in rng.integers(1, 7, rng.integers(0, 4)))
    values = np.asarray(random_integers(rng, shape, dtype))
    axes = rng.permutation(len(shape))[: rng.integers(0, len(shape) + 1)]
    axis = tuple(int(one) for one in axes) if rng.integers(3) else None
    count = np.prod([values.shape[i] for i in (range(len(shape)) if axis is None else axis)])
    correction = int(rng.integers(0, 2)) if count > 1 else 0
    keepdims = bool(rng.integers(2))
    x, exact = gt.asarray(values, device=place), values.astype(EXACT)
    how = {"axis": axis, "keepdims": keepdims}
    mean = np.asarray(exact.mean(axis=axis, keepdims=True))
    spread = np.asarray(((exact - mean) ** 2).sum(axis=axis, keepdims=keepdims))
    variance = spread / (count - correction)
    what = f"{dtype} {shape} {how} correction {correction}"
    # float64 holds integers of up to 53 bits; wider ones are rounded first.
    size = float(np.abs(exact).max())
    error = ROUND * size
    near(gt.mean(x, **how), np.asarray(exact.mean(**how)), error, f"mean {what}")
    factor = count / (count - correction)
    bound = factor * (2 * error * np.sqrt(variance) + error**2) + ROUND * count * variance
    near(gt.var(x, correction=correction, **how), variance, bound, f"var {what}")
    deviation = np.sqrt(variance)
    bound = np.sqrt(factor) * 2 * error + ROUND * count * deviation
    near(gt.std(x, correction=correction, **how), deviation, bound, f"std {what}")


def test_statistics_of_random_integers_are_near_their_exact_values(place, rng):
    for _ in range(60):
        statistics_program(rng, place)


def test_mean_of_int32_keeps_its_last_digit(place, rng):
    values = rng.integers(-(2**31), 2**31, 1000).astype(np.int32)
    expected = np.float32(values.astype(np.float64).mean())
    assert gt.mean(gt.asarray(values, device=place)).item() == expected
    many = np.full(100_000, 2**24 - 1, np.int32)
    assert gt.mean(gt.asarray(many, device=place)).item() == 2**24 - 1


def test_deviation_of_large_int64_is_finite(place, rng):
    values = rng.choice(np.array([-(2**63), 2**63 - 1]), 1000)
    x = gt.asarray(values, device=place)
    expected = float(np.std(values.astype(EXACT)))
    assert gt.std(x).item() == pytest.approx(expected, rel=1e-6)
    assert gt.var(x).item() == pytest.approx(expected**2, rel=1e-6)


def test_deviation_of_float16_is_finite_where_the_variance_is_not(place):
    x = gt.asarray(np.array([60000, -60000], np.float16), device=place)
    assert gt.std(x).item() == 60000.0
    assert gt.var(x).item() == np.inf
