"""Bounds of integers and numbers of trials that are lists or tensors."""

import numpy as np
import pytest

import gputensor as gt


def rng(device):
    return gt.random.default_rng(3, device)


@pytest.mark.parametrize("endpoint", [False, True])
def test_integers_between_lists_cover_each_range(device, endpoint):
    low, high = [0, -5, 100], [[4], [200]]
    high[0][0] = 101
    found = rng(device).integers(low, high, endpoint=endpoint)
    assert found.shape == (2, 3) and found.dtype == gt.int64
    low, high = np.asarray([[0], [-5]]), np.asarray([[4], [-1]])
    found = rng(device).integers(low.tolist(), high.tolist(), (2, 2000), endpoint=endpoint).numpy()
    for i in range(2):
        expected = range(low[i, 0], high[i, 0] + endpoint)
        values, counts = np.unique(found[i], return_counts=True)
        assert values.tolist() == list(expected)
        assert counts.min() > 0.8 * 2000 / len(expected)


def test_integers_between_tensors_are_those_between_lists(device):
    low, high = gt.asarray([0, -7], device=device), gt.asarray([9, 30], "int32", device=device)
    found = gt.random.integers(low, high, (50, 2), generator=rng(device))
    assert found.device == low.device
    assert found.tolist() == rng(device).integers([0, -7], [9, 30], (50, 2)).tolist()
    assert rng(device).integers(high).shape == (2,)
    assert (rng(device).integers(5, [6, 6]) == 5).all()


@pytest.mark.parametrize("dtype", ["uint8", "int8", "uint64", "int64", "bool"])
def test_integers_reach_the_ends_of_a_dtype(device, dtype):
    most = 1 if dtype == "bool" else int(gt.iinfo(dtype).max)
    found = rng(device).integers([most, most], [most + 1] * 2, dtype=dtype)
    assert found.dtype == np.dtype(dtype) and found.tolist() == [most, most]


def test_randint_takes_lists_as_bounds_after_a_list(device):
    gt.manual_seed(1)
    assert gt.random.randint([0, 10], [1, 11], device=device).tolist() == [0, 10]
    assert gt.random.randint(10, (2, 3), device=device).shape == (2, 3)


def test_wrong_bounds_are_named():
    for low, high, kind, text in (
        ([3, 4], [4, 4], ValueError, "at least one integer"),
        ([0.5], [3], TypeError, "ends: got float; expected ints"),
        ([0], [300], ValueError, "0 to 256, which uint8 holds"),
        ([-1], [3], ValueError, "0 to 255, which uint8 holds"),
        (gt.ones(2, device="host"), 3, TypeError, "got float32; expected an integer dtype"),
    ):
        with pytest.raises(kind, match=text):
            gt.random.integers(low, high, dtype="uint8", device="host")


def test_binomial_takes_a_number_of_trials_for_each_element(device):
    n, p = np.asarray([0, 1, 8, 33, 1000, 2**40]), 0.3
    found = rng(device).binomial(n.tolist(), p, (3000, 6)).numpy()
    assert found.dtype == np.int64 and (found <= n).all() and (found >= 0).all()
    error = np.sqrt(n * p * (1 - p))
    assert (np.abs(found.mean(0) - n * p) <= 5 * error / np.sqrt(3000)).all()
    assert (np.abs(found.std(0) - error) <= 0.08 * error).all()


def test_binomial_of_tensors_is_that_of_lists(device):
    n, p = gt.asarray([5, 70], device=device), gt.asarray([[0.25], [0.5]], device=device)
    found = gt.random.binomial(n, p, generator=rng(device))
    assert found.shape == (2, 2)
    assert found.tolist() == rng(device).binomial([5, 70], [[0.25], [0.5]]).tolist()
    assert gt.random.binomial(n, 1.0).tolist() == [5, 70]
    assert gt.random.binomial([], 0.5, device=device).shape == (0,)


def test_wrong_numbers_of_trials_are_named():
    for n, kind in (([-1], ValueError), ([2**53], ValueError), ([1.5], TypeError)):
        with pytest.raises(kind, match="binomial: n"):
            gt.random.binomial(n, 0.5, device="host")
