"""Indices are checked even where a selection has no elements; sizes never overflow.

The reference is NumPy, with two documented exceptions: an index list out of range is refused even
if another, empty list leaves no elements, and a CUDA kernel cannot refuse the values of a tensor.
"""

import itertools
import math

import numpy as np
import pytest

import gputensor as gt


def random_entry(rng, extent, place, is_wild):
    """(entry for NumPy, entry for the tensor) for one axis; sometimes out of range."""
    low, high = (-extent - 2, extent + 2) if is_wild else (-extent, extent)
    form = rng.integers(5)
    if form == 0:
        start, stop = (int(n) for n in rng.integers(-4, 5, 2))
        return (slice(start, stop, int(rng.choice([-1, 1, 2]))),) * 2
    if form == 1 and low < high:
        return (int(rng.integers(low, high)),) * 2
    if form == 2:
        mask = rng.integers(0, 2, extent).astype(bool)
        return mask, gt.asarray(mask, device=place)
    shape = tuple(int(n) for n in rng.choice([0, 1, 1, 2, 2], rng.integers(1, 3)))
    if low >= high:
        shape = (0,)
    indices = rng.integers(low, high, shape) if 0 not in shape else np.zeros(shape, np.int64)
    if form == 3:
        return indices, gt.asarray(indices, device=place)
    return (indices,) * 2


def selects_nothing(key):
    """Whether the index arrays of a key broadcast to no elements."""
    arrays = [one for one in key if isinstance(one, np.ndarray)]
    arrays = [np.nonzero(one)[0] if one.dtype == bool else one for one in arrays]
    try:
        return bool(arrays) and 0 in np.broadcast_shapes(*(one.shape for one in arrays))
    except ValueError:
        return False


def outcome(call):
    try:
        return call(), None
    except (IndexError, ValueError, DeprecationWarning) as error:
        return None, error  # NumPy 2.2 warns of indices that later versions refuse


def indexing_program(rng, place):
    """One random key on one random array, most without elements; read and written."""
    shape = tuple(int(n) for n in rng.choice([0, 0, 1, 2, 3], rng.integers(1, 4)))
    values = rng.standard_normal(shape).astype(np.float32)
    count = rng.integers(1, len(shape) + 1)
    is_wild = rng.integers(3) == 0
    pairs = [random_entry(rng, shape[i], place, is_wild) for i in range(count)]
    if rng.integers(4) == 0:
        pairs.insert(int(rng.integers(len(pairs) + 1)), (None, None))
    if rng.integers(4) == 0 and count < len(shape):
        pairs.append((Ellipsis, Ellipsis))
    key, ours = tuple(one for one, _other in pairs), tuple(other for _one, other in pairs)
    is_unchecked = (
        place == "cuda"
        and is_wild
        and any(isinstance(one, gt.Tensor) and one.dtype != bool for one in ours)
    )
    if is_unchecked:
        return
    x = gt.asarray(values, device=place)
    what = f"{shape} {key}"
    wanted, refused = outcome(lambda: values[key])
    got, error = outcome(lambda: x[ours].numpy())
    if error is not None and refused is None:
        assert selects_nothing(key), f"{what}: {error}"
        return
    assert (error is None) == (refused is None), f"{what}: NumPy says {refused}"
    if refused is None:
        np.testing.assert_array_equal(got, wanted, err_msg=what)
        assert got.shape == wanted.shape, what
        x[ours] = 7.0
        values[key] = 7.0
        np.testing.assert_array_equal(x.numpy(), values, err_msg=what)
    else:
        with pytest.raises((IndexError, ValueError)):
            x[ours] = 7.0
            x.numpy()


def test_random_keys_of_small_arrays_behave_as_in_numpy(where, rng):
    for _ in range(300):
        indexing_program(rng, where)


@pytest.mark.parametrize(
    "key",
    [
        (slice(None), 5),
        (slice(None), -4),
        (slice(None), [5]),
        (slice(None), np.array([0, 3])),
        ([0],),
        ([], 3),
        0,
    ],
    ids=repr,
)
def test_index_out_of_range_is_refused_where_nothing_is_selected(where, key):
    x = gt.zeros((0, 3), device=where)
    with pytest.raises(IndexError):
        x[key]
    with pytest.raises(IndexError):
        x[key] = 1.0


def test_mask_may_be_empty_along_any_axis(where):
    extents = (0, 2, 3)
    for shape in [*itertools.product(extents, repeat=2), (2, 0, 3), (2, 3, 2)]:
        for ndim in range(1, len(shape) + 1):
            for sides in itertools.product(extents, repeat=ndim):
                x, mask = gt.zeros(shape, device=where), gt.ones(sides, dtype=bool, device=where)
                if any(mine not in (0, whole) for mine, whole in zip(sides, shape, strict=False)):
                    with pytest.raises(IndexError, match="mask: got shape"):
                        x[mask]
                    continue
                assert x[mask].shape == (math.prod(sides), *shape[ndim:])
                x[mask] = 1.0
                assert x.sum().item() == (x.size if sides == shape[:ndim] else 0)


def test_index_tensor_out_of_range_is_refused_on_the_host_device_also_for_no_elements():
    x = gt.zeros((0, 3), device="host")
    for index in ([5], [[0, -4]]):
        index = gt.asarray(index, device="host")
        with pytest.raises(IndexError, match="out of bounds"):
            x[:, index]
        with pytest.raises(IndexError, match="out of bounds"):
            x[:, index] = 1.0
        with pytest.raises(IndexError, match="out of bounds"):
            gt.take(x, index, axis=1)
    assert x[:, gt.asarray([2, -3], device="host")].shape == (0, 2)


def test_index_tensor_into_an_axis_without_elements_is_refused_on_every_device(where):
    x = gt.zeros((0, 0, 3), device=where)
    index = gt.asarray([0], device=where)
    with pytest.raises(IndexError, match="axis 1 has no elements"):
        x[:, index]
    with pytest.raises(IndexError, match="axis 0 has no elements"):
        gt.take(x, index, axis=0)
    assert x[:, index[:0]].shape == (0, 0, 3)


def test_shape_whose_other_extents_overflow_is_refused_where_it_is_made(where):
    huge = 2**62
    for make in (
        lambda: gt.zeros((0, huge, huge), device=where),
        lambda: gt.broadcast_to(gt.zeros((0, 1, 1), device=where), (0, huge, huge)),
        lambda: gt.reshape(gt.zeros((0, 1), device=where), (0, huge, huge)),
        lambda: gt.zeros((2**40, 1, 0), device=where) + gt.zeros((1, 2**40, 0), device=where),
    ):
        with pytest.raises(ValueError, match="shape: .*(than there are addresses|at most 2)"):
            make()
    x = gt.zeros((0, 2**40), device=where)
    assert gt.sum(x, axis=1).shape == (0,)
    assert gt.concat([x, x], axis=1).shape == (0, 2**41)
