"""The indices of true elements of masks, found on the device of the mask."""

import numpy as np
import pytest

import gputensor as gt
from gputensor.tensor.places import places

SHAPES = [(1,), (70_001,), (300, 257), (33, 1, 65, 40)]


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("share", [0.0, 0.01, 0.5, 1.0])
def test_places_are_those_of_numpy(where, rng, shape, share):
    mask = rng.random(shape) < share
    found = places(gt.asarray(mask, device=where))
    for one, wanted in zip(found, np.nonzero(mask), strict=True):
        np.testing.assert_array_equal(one.numpy(), wanted)


def test_large_mask_selects_and_assigns(where, rng):
    x, mask = rng.normal(size=(400, 300)), rng.random((400, 300)) < 0.3
    t, key = gt.asarray(x, device=where), gt.asarray(mask, device=where)
    np.testing.assert_array_equal(t[key].numpy(), x[mask])
    values = rng.normal(size=int(mask.sum()))
    t[key] = gt.asarray(values, device=where)
    x[mask] = values
    np.testing.assert_array_equal(t.numpy(), x)
    np.testing.assert_array_equal(gt.nonzero(key.T)[0].numpy(), np.nonzero(mask.T)[0])
    numbers = np.where(mask, x, 0)
    found = gt.nonzero(gt.asarray(numbers, device=where))
    np.testing.assert_array_equal(found[1].numpy(), np.nonzero(numbers)[1])
