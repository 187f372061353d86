"""Flags must be True or False; a string such as 'no' does not count as true."""

from decimal import Decimal

import numpy as np
import pytest

import gputensor as gt

NO_FLAGS = ["no", "yes", 1, 0, 2.0, None, (), Decimal(1)]
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
