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


def test_slices_are_inserted_and_deleted_as_by_numpy(where, rng):
    for _ in range(40):
        shape = tuple(rng.integers(1, 7, rng.integers(1, 4)))
        dtype = rng.choice(["float64", "int32", "uint8"])
        x = rng.integers(0, 99, shape).astype(dtype)
        t, axis = gt.asarray(x, device=where), int(rng.integers(-x.ndim, x.ndim))
        extent = x.shape[axis]
        one = int(rng.integers(-extent, extent))
        first, last = (int(end) for end in sorted(rng.integers(0, extent + 1, 2)))
        for chosen in (one, np.int64(one), [one, 0], slice(first, last), slice(0, last, 2)):
            wanted, got = np.delete(x, chosen, axis), gt.delete(t, chosen, axis=axis)
            assert got.dtype == wanted.dtype and np.array_equal(got.numpy(), wanted), chosen
        part = rng.integers(0, 99, (2, *np.delete(shape, axis))).astype(np.float32)
        for chosen in (one, extent, [one], [first] * 3, [first, last]):
            wanted, got = np.insert(x, chosen, 7, axis), gt.insert(t, chosen, 7, axis=axis)
            assert got.dtype == wanted.dtype and np.array_equal(got.numpy(), wanted), chosen
        wanted = np.insert(x, one, part, axis)
        got = gt.insert(t, one, gt.asarray(part, device=where), axis=axis)
        assert got.dtype == wanted.dtype and np.array_equal(got.numpy(), wanted)


@pytest.mark.parametrize("name", ["add", "multiply", "maximum", "minimum", "logical_or"])
def test_parts_are_folded_from_each_start(where, rng, name):
    for count in (1, 3, 16, 17, 40):
        x = rng.integers(1, 3, (50, 4)).astype(rng.choice(["float32", "int64", "int16"]))
        starts = rng.integers(0, 50, count)
        if rng.random() < 0.5:
            starts.sort()
        wanted = getattr(np, name).reduceat(x, starts, 0)
        got = getattr(gt, name).reduceat(gt.asarray(x, device=where), starts, axis=0)
        assert got.dtype == wanted.dtype and np.array_equal(got.numpy(), wanted), count


def test_sums_at_places_may_repeat(where, rng):
    x, index = rng.integers(0, 9, 40).astype(np.float64), rng.integers(-40, 40, (30, 5))
    added = rng.integers(0, 9, (30, 5)).astype(np.float64)
    t, places = gt.asarray(x, device=where), gt.asarray(index, device=where)
    for ufunc, own in ((np.add, gt.add), (np.subtract, gt.subtract)):
        ufunc.at(x, index, added)
        own.at(t, places, gt.asarray(added, device=where))
        np.testing.assert_array_equal(t.numpy(), x)
    if gt.Device(where).type == "host":
        with pytest.raises(IndexError, match="index 40 is out of bounds"):
            gt.add.at(t, gt.asarray([40], device=where), 1.0)
