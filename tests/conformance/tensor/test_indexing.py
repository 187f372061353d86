"""Reading and writing by key agree with NumPy on every device."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import gputensor as gt
from tests.support.tensor_arrays import DTYPES, check_same, random_array

QUICK = settings(max_examples=40, deadline=None)
SHAPES = hnp.array_shapes(min_dims=0, max_dims=4, min_side=0, max_side=6)


def numbered(shape, dtype="int32"):
    return np.arange(np.prod(shape, dtype=int)).reshape(shape).astype(dtype)


@st.composite
def shape_and_key(draw):
    shape = draw(SHAPES)
    key = draw(hnp.basic_indices(shape, allow_newaxis=True, allow_ellipsis=True, max_dims=6))
    return shape, key


@QUICK
@given(case=shape_and_key())
def test_basic_key_gives_the_view_that_numpy_gives(place, case):
    shape, key = case
    a = numbered(shape)
    x = gt.asarray(a, device=place)
    view = x[key]
    check_same(view, a[key])
    if view.size:
        assert view.strides == a[key].strides or 1 in view.shape
        assert x.data_ptr() <= view.data_ptr() < x.data_ptr() + x.nbytes


@QUICK
@given(case=shape_and_key(), form=st.sampled_from(["number", "tensor", "array"]))
def test_basic_assignment_writes_what_numpy_writes(place, case, form):
    shape, key = case
    a = numbered(shape, "float32")
    x = gt.asarray(a, device=place)
    value = -1.5
    if form != "number":
        target = a[key]
        value = -numbered(target.shape[-1:], "float64") - 1
    a[key] = value
    x[key] = gt.asarray(value, device=place) if form == "tensor" else value
    check_same(x, a)


@st.composite
def shape_and_arrays(draw):
    """A shape, and a key in which at least one entry is an index array."""
    shape = draw(hnp.array_shapes(min_dims=1, max_dims=4, min_side=1, max_side=5))
    count = draw(st.integers(1, len(shape)))
    index_shape = draw(hnp.array_shapes(min_dims=0, max_dims=2, min_side=1, max_side=4))
    key = []
    for axis in range(count):
        extent = shape[axis]
        entry = draw(st.sampled_from(["array", "int", "slice", "list", "none"]))
        if entry == "none":
            key.append(None)
        if entry == "int":
            key.append(draw(st.integers(-extent, extent - 1)))
        elif entry == "slice":
            key.append(draw(st.slices(extent)))
        else:
            values = st.integers(-extent, extent - 1)
            key.append(draw(hnp.arrays(np.int64, index_shape, elements=values)))
    if not any(isinstance(entry, np.ndarray) for entry in key):
        key[-1] = np.zeros(index_shape, np.int64)
    return shape, tuple(key)


def to_tensors(key, place):
    return tuple(
        gt.asarray(entry, device=place) if isinstance(entry, np.ndarray) else entry for entry in key
    )


@QUICK
@given(case=shape_and_arrays(), on_device=st.booleans())
def test_integer_arrays_pick_what_numpy_picks(place, case, on_device):
    shape, key = case
    a = numbered(shape)
    x = gt.asarray(a, device=place)
    check_same(x[to_tensors(key, place) if on_device else key], a[key])


@QUICK
@given(case=shape_and_arrays(), seed=st.integers(0, 2**32))
def test_assignment_through_unique_integer_arrays_writes_what_numpy_writes(place, case, seed):
    shape, key = case
    a = numbered(shape, "float32")
    x = gt.asarray(a, device=place)
    # One value for every place, because the order of the writes is undefined.
    a[key] = -3
    x[to_tensors(key, place)] = -3
    check_same(x, a)
    order = np.random.default_rng(seed).permutation(shape[0])[: max(1, shape[0] // 2)]
    value = np.random.default_rng(seed).integers(0, 9, (len(order), *shape[1:])).astype(np.int16)
    a[order] = value
    x[gt.asarray(order, device=place)] = gt.asarray(value, device=place)
    check_same(x, a)


@QUICK
@given(
    shape=hnp.array_shapes(min_dims=1, max_dims=3, max_side=5),
    data=st.data(),
)
def test_masks_pick_and_write_as_in_numpy(place, shape, data):
    ndim = data.draw(st.integers(1, len(shape)))
    mask = data.draw(hnp.arrays(bool, shape[:ndim]))
    a = numbered(shape, "float64")
    x = gt.asarray(a, device=place)
    m = gt.asarray(mask, device=place)
    check_same(x[m], a[mask])
    check_same(x[mask], a[mask])
    a[mask] = 5
    x[m] = 5
    check_same(x, a)
    value = -numbered(a[mask].shape, "float64")
    a[mask] = value
    x[m] = gt.asarray(value, device=place)
    check_same(x, a)


def test_masks_and_tensors_of_several_orders(place, rng):
    """Axes in one run, turned over, exchanged or with gaps, of the mask and of the tensor."""
    views = [
        lambda x: x, lambda x: x[::-1, ::-1, ::-1], lambda x: x[:, :, ::2],
        lambda x: x[:, ::-1], lambda x: x.transpose(1, 0, 2), lambda x: x[::2],
    ]  # fmt: skip
    for first in views:
        for second in views:
            a = first(random_array(rng, (8, 8, 8), "float32"))
            shape, count = a.shape, int(rng.integers(1, 4))
            base = rng.integers(0, 2, (16, 16, 16)).astype(bool)
            mask = second(base)[: shape[0], : shape[1], : shape[2]]
            if mask.shape != shape:
                continue
            mask = mask if count == 3 else mask[..., 0] if count == 2 else mask[:, 0, 0]
            x, m = gt.asarray(base, device=place), gt.asarray(np.ascontiguousarray(a), device=place)
            check_same(m[gt.asarray(mask, device=place)], a[mask])
            seen = second(x)[: shape[0], : shape[1], : shape[2]]
            seen = seen if count == 3 else seen[..., 0] if count == 2 else seen[:, 0, 0]
            check_same(m[seen], a[mask])
            for got, want in zip(gt.nonzero(seen), np.nonzero(mask), strict=True):
                check_same(got, want)
            m[seen] = -1.0
            written = a.copy()
            written[mask] = -1
            check_same(m, written)


def test_mask_in_the_middle_of_a_key(place, rng):
    a = random_array(rng, (3, 4, 5), "int32")
    mask = rng.integers(0, 2, 4).astype(bool)
    x = gt.asarray(a, device=place)
    check_same(x[:, gt.asarray(mask, device=place)], a[:, mask])
    check_same(x[..., mask, 1:3], a[..., mask, 1:3])


@pytest.mark.parametrize("dtype", DTYPES, ids=lambda dtype: dtype.name)
def test_every_dtype_is_gathered_and_scattered(place, rng, dtype):
    a = random_array(rng, (6, 3), dtype)
    x = gt.asarray(a, device=place)
    index = gt.asarray([5, 0, 2], device=place)
    check_same(gt.take(x, index, axis=0), a[[5, 0, 2]])
    x[index] = x[gt.asarray([1, 1, 4], device=place)]
    a[[5, 0, 2]] = a[[1, 1, 4]]
    check_same(x, a)


@pytest.mark.parametrize("step", [1, 2, 3, -1])
def test_shifted_copy_within_one_tensor_reads_the_old_values(place, rng, step):
    a = random_array(rng, (40, 3), "float32")
    x = gt.asarray(a, device=place)
    if step < 0:
        x[:] = x[::-1]
        check_same(x, a[::-1])
    else:
        x[step:] = x[:-step]
        check_same(x[step:], a[:-step])


def test_writing_to_a_view_shows_in_the_tensor(place):
    x = gt.zeros((3, 4), device=place)
    row = x[1]
    row[1:3] = 7
    x.T[0, 0] = 5
    assert x.tolist() == [[5, 0, 0, 0], [0, 7, 7, 0], [0, 0, 0, 0]]


def test_iteration_and_unpacking_give_the_rows(place):
    a = numbered((3, 2))
    rows = list(gt.asarray(a, device=place))
    assert len(rows) == 3
    for row, expected in zip(rows, a, strict=True):
        check_same(row, expected)
    first, second = gt.asarray([7, 8], device=place)
    assert (int(first), float(second)) == (7, 8.0)


def test_integer_tensor_is_an_index_of_python_sequences(place):
    assert "abc"[gt.asarray(1, device=place)] == "b"
    assert np.arange(4)[gt.asarray(2, device=place) :].tolist() == [2, 3]


@pytest.mark.parametrize(
    ("key", "message"),
    [
        (3, "index: got 3 for axis 0; expected an index within its extent 3"),
        ((0, -5), "index: got -5 for axis 1; expected an index within its extent 4"),
        ((0, 0, 0), "index: got 3 indices; expected at most 2, one for each dimension"),
        ((..., ...), "one Ellipsis"),
        (1.5, r"index: got .*; expected ints, slices, \.\.\., None, and tensors, lists or"),
        ("x", r"index: got .*; expected ints, slices, \.\.\., None, and tensors, lists or"),
        ([0, 3], r"index: got values in \[0, 3\] for axis 0"),
        ([0.5], "index: got an array of dtype float64"),
        (
            np.zeros(2, bool),
            r"mask: got shape \(2,\); expected the extents of the axes from 0 on, of shape \(3",
        ),
    ],
)
def test_wrong_key_raises_index_error_and_changes_nothing(place, key, message):
    x = gt.ones((3, 4), device=place)
    with pytest.raises(IndexError, match=message):
        x[key]
    with pytest.raises(IndexError, match=message):
        x[key] = 2
    assert gt.all(x == 1)


def test_wrong_value_is_refused_before_anything_changes(place):
    x = gt.ones((3, 4), device=place)
    with pytest.raises(
        ValueError, match=r"shape \(3,\) cannot be written to shape \(3, 4\)|broadcast"
    ):
        x[:] = gt.zeros(3, device=place)
    with pytest.raises(TypeError, match="complex"):
        x[0] = 1j
    with pytest.raises(TypeError, match="complex"):
        x[0] = gt.ones(4, dtype="complex64", device=place)
    with pytest.raises(ValueError, match="broadcast"):
        gt.broadcast_to(x, (2, 3, 4))[:, 0] = 5
    assert gt.all(x == 1)


def test_leading_axes_of_one_are_dropped_in_every_assignment(place):
    for key in (slice(0, 2), [0, 2], (np.array([2, 0]),)):
        a, x = np.zeros(3, np.float32), gt.zeros(3, device=place)
        a[key] = np.array([[[4.0, 5.0]]])
        x[key] = gt.asarray([[[4.0, 5.0]]], device=place)
        check_same(x, a)
        with pytest.raises(ValueError, match=r"shape \(2, 1\)"):
            x[key] = gt.zeros((2, 1), device=place)


@pytest.mark.parametrize("index", [2**63, -(2**63) - 1, 2**70])
def test_index_beyond_64_bits_is_out_of_range(place, index):
    x = gt.zeros(3, device=place)
    with pytest.raises(IndexError, match=f"index: got {index} for axis 0; expected"):
        x[index]
    with pytest.raises(IndexError, match="index: got .*; expected an index within its extent 3"):
        x[index] = 1.0


@pytest.mark.parametrize("value", [True, False])
@pytest.mark.parametrize("shape", [(), (3,), (2, 3)])
def test_truth_values_index_as_in_numpy(place, rng, value, shape):
    array = rng.random(shape)
    x = gt.asarray(array, device=place)
    flag = gt.asarray(value, device=place)
    for key, expected in ((value, array[value]), (flag, array[value])):
        check_same(x[key], expected)
    check_same(x[..., flag], array[..., value])
    x[flag] = 7
    array[value] = 7
    check_same(x, array)
