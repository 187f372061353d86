"""Flags must be True or False; a string such as "no" does not count as true."""

from decimal import Decimal

import numpy as np
import pytest

import gputensor as gt

NO_FLAGS = ["no", "yes", 2.0, None, (), Decimal(1)]
REDUCTIONS = ["sum", "prod", "max", "min", "argmax", "argmin", "any", "all", "mean", "var", "std",
              "count_nonzero"]  # fmt: skip


@pytest.mark.parametrize("name", REDUCTIONS)
@pytest.mark.parametrize("value", NO_FLAGS, ids=repr)
def test_keepdims_is_a_flag(name, value):
    x = gt.ones((2, 3), device="host")
    with pytest.raises(TypeError, match=r"keepdims: got .*; expected True or False"):
        getattr(gt, name)(x, keepdims=value)
    assert getattr(gt, name)(x, axis=1, keepdims=np.True_).shape == (2, 1)
    assert getattr(gt, name)(x, axis=1, keepdims=np.False_).shape == (2,)


@pytest.mark.parametrize("name", [*REDUCTIONS, "ptp", "nansum", "nanvar", "average", "logsumexp"])
def test_keepdims_may_be_an_int_as_in_numpy(name):
    x = gt.ones((2, 3), device="host")
    for flag in (1, 0, np.int64(1), np.int32(0), 2):
        shape = (2, 1) if flag else (2,)
        assert getattr(gt, name)(x, axis=1, keepdims=flag).shape == shape
    assert gt.sum(x, dim=1, keepdim=1).shape == x.sum(1, keepdims=1).shape == (2, 1)
    assert gt.max(x, dim=1, keepdim=1).values.shape == (2, 1)


@pytest.mark.parametrize("value", ["no", 1, 0, (), Decimal(1)], ids=repr)
def test_copy_is_a_flag_or_none(value):
    x = gt.ones((2, 3), device="host")
    calls = [
        lambda: gt.asarray(x, copy=value),
        lambda: gt.asarray([1.0], copy=value),
        lambda: gt.reshape(x, 6, copy=value),
        lambda: gt.from_dlpack(np.ones(3), copy=value),
        lambda: gt.from_dlpack(x, copy=value),
        lambda: x.__dlpack__(copy=value),
        lambda: x.__array__(copy=value),
    ]
    for call in calls:
        with pytest.raises(TypeError, match=r"copy: got .*; expected True, False or None"):
            call()
    with pytest.raises(TypeError, match=r"astype: copy: got .*; expected True or False"):
        gt.astype(x, "float64", copy=value)


def test_other_flags():
    with pytest.raises(TypeError, match="linspace: endpoint: got 'no'; expected True or False"):
        gt.linspace(0, 1, 3, endpoint="no", device="host")
    with pytest.raises(TypeError, match="from_dlpack: assume_writable: got 1; expected True or"):
        gt.from_dlpack(np.ones(3), assume_writable=1)
    assert gt.reshape(gt.ones(4, device="host"), (2, 2), copy=np.False_).shape == (2, 2)


ARRAYS = [np.array([1.0, 2.0]), gt.asarray([1.0, 2.0], device="host"), "yes", [True], 0.5]
CHECKED = {
    "True or False": (
        lambda x, bad: gt.sort(x, descending=bad),
        lambda x, bad: gt.isclose(x, x, 1e-5, 1e-8, bad),
        lambda x, bad: x.argsort(stable=bad),
        lambda x, bad: gt.nanmax(x, keepdims=bad),
        lambda x, bad: gt.median(x, keepdim=bad),
        lambda x, bad: gt.unique(x, return_counts=bad),
        lambda x, bad: gt.allclose(x, x, equal_nan=bad),
        lambda x, bad: gt.linalg.svd(x, full_matrices=bad),
        lambda x, bad: gt.linalg.cholesky(x, upper=bad),
        lambda x, bad: gt.random.integers(3, endpoint=bad),
        lambda x, bad: gt.random.default_rng(1, "host").choice(x, 2, bad),
        lambda x, bad: gt.dropout(x, 0.5, bad),
        lambda x, bad: gt.max_pool1d(x, 2, ceil_mode=bad),
        lambda x, bad: gt.polynomial.polynomial.polyval(x, [1, 2], tensor=bad),
    ),
    "a str": (
        lambda x, bad: gt.linalg.qr(x, mode=bad),
        lambda x, bad: gt.convolve(x[0], x[0], bad),
        lambda x, bad: gt.linalg.eigh(x, bad),
        lambda x, bad: gt.div(x, 2, rounding_mode=bad),
    ),
    "a number": (
        lambda x, bad: gt.addmv(x[0], x, x[0], alpha=bad),
        lambda x, bad: gt.linalg.norm(x, bad),
        lambda x, bad: gt.cdist(x, x, p=bad),
    ),
}


@pytest.mark.parametrize("rule", CHECKED)
def test_arrays_are_no_flags_words_or_numbers(rule):
    x = gt.ones((2, 2), device="host")
    for call in CHECKED[rule]:
        for bad in ARRAYS if rule == "True or False" else ARRAYS[:2]:
            with pytest.raises(TypeError, match=rf"^\w+: \w+: got .*; expected {rule}$"):
                call(x, bad)
    np.testing.assert_array_equal(x.numpy(), np.ones((2, 2)))


def test_error_of_a_flag_has_the_word_that_was_given():
    x = gt.ones(2, device="host")
    with pytest.raises(TypeError, match="median: keepdim: got an array; expected True or False"):
        gt.median(x, keepdim=np.array([1, 2]))
    with pytest.raises(TypeError, match="sort: descending: got Tensor; expected True or False"):
        gt.sort(x, **{"".join(["desc", "ending"]): x})


def test_flags_may_be_ints_and_scalars_of_numpy():
    x = gt.asarray([[2.0, 1.0]], device="host")
    assert gt.sort(x, descending=np.True_).tolist() == [[2.0, 1.0]]
    assert gt.nanmax(x, axis=1, keepdims=True).shape == (1, 1)
    assert gt.linalg.svd(x, full_matrices=0).Vh.shape == (1, 2)
    assert gt.copyto(x, 0.0, where=gt.asarray([[True, False]], device="host")) is None
    assert x.tolist() == [[0.0, 1.0]]


def test_lists_stay_allowed_for_a_function_of_several_tables():
    assert gt.norm(gt.ones(1, device="host")).item() == 1  # the same function, found twice
    with gt.Device("host"):
        assert gt.linalg.norm([3.0, 4.0]).item() == 5.0
