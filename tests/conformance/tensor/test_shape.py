"""Shapes, joins and creation agree with NumPy; views share memory, copies do not."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import gputensor as gt
from tests.support.tensor_arrays import check_same, random_array, random_view

QUICK = settings(max_examples=60, deadline=None)


@st.composite
def two_shapes_of_one_size(draw):
    """Two factorizations of one size, with ones inserted."""
    factors = draw(st.lists(st.sampled_from([2, 3, 5]), max_size=5))

    def shape():
        cuts = sorted(draw(st.lists(st.integers(0, len(factors)), max_size=4)))
        edges = [0, *cuts, len(factors)]
        order = draw(st.permutations(factors))
        return tuple(
            int(np.prod(order[a:b], dtype=int)) for a, b in zip(edges, edges[1:], strict=False)
        )

    return shape(), shape()


@QUICK
@given(shapes=two_shapes_of_one_size(), seed=st.integers(0, 2**32))
def test_reshape_of_any_layout_equals_numpy_and_is_a_view_when_numpys_is(place, shapes, seed):
    rng = np.random.default_rng(seed)
    old, new = shapes
    a, x = random_view(rng, random_array(rng, old, "int32"), place)
    check_same(gt.reshape(x, new), a.reshape(new))
    order = tuple(int(i) for i in rng.permutation(len(old)))
    b = np.ascontiguousarray(a) if a.ndim else a
    y = gt.asarray(b, device=place)
    turned, expected = gt.permute_dims(y, order), b.transpose(order)
    check_same(gt.reshape(turned, new), expected.reshape(new))
    numpy_shares = np.shares_memory(expected.reshape(new), b)
    if numpy_shares:
        assert gt.reshape(turned, new, copy=False).data_ptr() == y.data_ptr()
    else:
        with pytest.raises(
            ValueError, match="copy: got False; expected True or None, because strides"
        ):
            gt.reshape(turned, new, copy=False)


def test_reshape_infers_one_extent_and_copies_on_demand(place):
    x = gt.arange(12, device=place)
    assert gt.reshape(x, (3, -1)).shape == (3, 4)
    assert x.reshape(2, -1).shape == (2, 6)
    copied = gt.reshape(x, (12,), copy=True)
    copied[0] = 5
    assert x[0].item() == 0
    for shape in [(5, -1), (-1, -1), (13,), (0, -1), (-2,)]:
        with pytest.raises(ValueError, match="reshape|shape"):
            gt.reshape(x, shape)


def test_axis_functions_equal_numpy(place, rng):
    a, x = random_view(rng, random_array(rng, (2, 1, 3, 4), "int32"), place)
    check_same(gt.permute_dims(x, (3, 0, -2, 1)), a.transpose(3, 0, 2, 1))
    check_same(gt.moveaxis(x, 0, -1), np.moveaxis(a, 0, -1))
    check_same(gt.moveaxis(x, (0, 3), (2, 0)), np.moveaxis(a, (0, 3), (2, 0)))
    check_same(gt.expand_dims(x, axis=(0, -1)), np.expand_dims(a, (0, -1)))
    check_same(gt.squeeze(x, 1), a.squeeze(1))
    check_same(gt.flip(x), np.flip(a))
    check_same(gt.flip(x, axis=(0, 2)), np.flip(a, (0, 2)))
    check_same(x.mT, a.swapaxes(-1, -2))
    check_same(x[0, 0].T, a[0, 0].T)
    check_same(gt.roll(x, 5, axis=3), np.roll(a, 5, 3))
    check_same(gt.roll(x, (1, -1), axis=(0, 2)), np.roll(a, (1, -1), (0, 2)))
    check_same(gt.roll(x, 7), np.roll(a, 7))
    check_same(gt.broadcast_to(x, (5, 2, 6, 3, 4)), np.broadcast_to(a, (5, 2, 6, 3, 4)))
    check_same(gt.tile(x, (2, 1, 3)), np.tile(a, (2, 1, 3)))
    check_same(gt.repeat(x, 3, axis=2), np.repeat(a, 3, 2))
    check_same(gt.repeat(x, 2), np.repeat(a, 2))
    for one, other in zip(gt.unstack(x, axis=2), np.moveaxis(a, 2, 0), strict=True):
        check_same(one, other)


def test_views_share_memory(place):
    x = gt.zeros((2, 3), device=place)
    for view in (x.T, x[0], gt.reshape(x, 6), gt.flip(x), gt.expand_dims(x), gt.squeeze(x)):
        before = x.numpy().sum()
        view[...] = view + 1
        assert x.numpy().sum() == before + view.size


@pytest.mark.parametrize("axis", [0, 1, -1, None])
def test_concat_and_stack_equal_numpy(place, rng, axis):
    arrays = [random_array(rng, (3, 4), d) for d in ("int16", "float32", "int16")]
    tensors = [gt.asarray(a, device=place) for a in arrays]
    expected = np.concatenate(arrays, axis).astype(np.float32)
    check_same(gt.concat(tensors, axis=axis), expected)
    if axis is not None:
        check_same(gt.stack(tensors, axis=axis), np.stack(arrays, axis).astype(np.float32))


def test_concat_of_unequal_lengths_and_empty_parts(place):
    parts = [np.ones((2, n), np.float32) * n for n in (3, 0, 1)]
    check_same(gt.concat([gt.asarray(p, device=place) for p in parts], axis=1), np.hstack(parts))


@pytest.mark.parametrize("indexing", ["xy", "ij"])
def test_meshgrid_equals_numpy(place, indexing):
    axes = [np.arange(2), np.arange(3) * 10, np.arange(4) * 100]
    grids = gt.meshgrid(*[gt.asarray(a, device=place) for a in axes], indexing=indexing)
    for grid, expected in zip(grids, np.meshgrid(*axes, indexing=indexing), strict=True):
        check_same(grid, expected)


@pytest.mark.parametrize("k", [-2, 0, 1, 5])
def test_triangles_and_eye_equal_numpy(place, rng, k):
    a = random_array(rng, (2, 3, 4), "int32")
    x = gt.asarray(a, device=place)
    check_same(gt.tril(x, k=k), np.tril(a, k))
    check_same(gt.triu(x, k=k), np.triu(a, k))
    for rows, columns in [(3, 3), (2, 5), (5, 2), (0, 2)]:
        expected = np.eye(rows, columns, k, dtype=np.float32)
        check_same(gt.eye(rows, columns, k=k, device=place), expected)


def test_constants_have_the_dtype_that_is_promised(place):
    check_same(gt.zeros((2, 0, 3), device=place), np.zeros((2, 0, 3), np.float32))
    check_same(gt.ones(3, dtype="int8", device=place), np.ones(3, np.int8))
    check_same(gt.full((), 7, device=place), np.array(7))
    check_same(gt.full(2, True, device=place), np.array([True, True]))
    check_same(gt.full(2, 1.5, device=place), np.array([1.5, 1.5], np.float32))
    check_same(gt.full(2, 1 + 2j, device=place), np.array([1 + 2j] * 2, np.complex64))
    check_same(gt.full(1, 2**64 - 1, dtype="uint64", device=place), np.array([2**64 - 1], "uint64"))
    like = gt.ones((2, 3), dtype="float64", device=place)
    check_same(gt.zeros_like(like), np.zeros((2, 3)))
    check_same(gt.full_like(like, 4, dtype="int16"), np.full((2, 3), 4, np.int16))
    assert gt.empty_like(like).shape == (2, 3)


@QUICK
@given(
    start=st.integers(-50, 50),
    stop=st.integers(-50, 50),
    step=st.integers(-7, 7).filter(bool),
)
def test_arange_equals_numpy(place, start, stop, step):
    check_same(gt.arange(start, stop, step, device=place), np.arange(start, stop, step))
    expected = np.arange(start, stop, step / 8).astype(np.float32)
    check_same(gt.arange(start, stop, step / 8, device=place), expected)


def test_linspace_hits_both_ends(place):
    for count in (0, 1, 2, 7):
        got = gt.linspace(-1, 3, count, dtype="float64", device=place)
        check_same(got, np.linspace(-1, 3, count))
    check_same(gt.linspace(-2, 2, 11, device=place), np.linspace(-2, 2, 11).astype(np.float32))
    got = gt.linspace(0, 1, 10, endpoint=False, device=place)
    check_same(got, np.linspace(0, 1, 10, endpoint=False).astype(np.float32), 1e-6)
    assert gt.linspace(0, 0.1, 11, device=place)[-1].item() == np.float32(0.1)


@pytest.mark.parametrize("count", [0, 1, 2, 6])
def test_linspace_of_complex_numbers(place, count):
    for start, stop in ((1 + 2j, -3.5 - 1j), (0, 1e30j), (2j, 1)):
        for ends in (True, False):
            expected, step = np.linspace(start, stop, count, endpoint=ends, retstep=True)
            got = gt.linspace(start, stop, count, ends, device=place, dtype="complex128")
            check_same(got, expected, 1e-14)
            got, distance = gt.linspace(start, stop, count, ends, True, device=place)
            check_same(got, expected.astype(np.complex64), 1e-6)
            assert np.isclose(distance, step, equal_nan=True)
            if count:
                assert got[0].item() == np.complex64(start)
            if count > 1 and ends:
                assert got[-1].item() == np.complex64(stop)
    got = gt.linspace(0, 1, 3, device=place, dtype="complex64")
    check_same(got, np.linspace(0, 1, 3).astype(np.complex64))
    for dtype, message in ((gt.float32, "a complex dtype"), (gt.int32, "a complex dtype")):
        with pytest.raises(TypeError, match=f"linspace: dtype: got {dtype}; expected {message}"):
            gt.linspace(0, 1j, count, dtype=dtype)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: gt.empty(-1), ValueError, "shape: got the extent -1; expected 0 or more"),
        (lambda: gt.empty((1,) * 17), ValueError, "shape: got 17 dimensions; expected at most 16"),
        (lambda: gt.empty((2**40, 2**40)), gt.OutOfMemoryError, "expected at most 2"),
        (lambda: gt.empty(2.5), TypeError, r"shape: got 2\.5 as an extent; expected an int"),
        (lambda: gt.empty(10**20), ValueError, f"got the extent {10**20}; expected at most"),
        (lambda: gt.empty((0, 2**63)), ValueError, f"got the extent {2**63}; expected at most"),
        (lambda: gt.empty(-(10**20)), ValueError, f"got the extent -{10**20}; expected 0 or more"),
        (lambda: gt.reshape(gt.zeros(2), (10**20, -1)), ValueError, "expected room for 2 elements"),
        (
            lambda: gt.reshape(gt.zeros(2), 2.5),
            TypeError,
            r"shape: got 2\.5 as an extent; expected an int",
        ),
        (lambda: gt.arange(gt.ones(2)), ValueError, r"got a tensor of shape \(2,\); expected one"),
        (lambda: gt.arange(0, np.inf), ValueError, "stop: got inf; expected a finite number"),
        (
            lambda: gt.arange("3"),
            TypeError,
            "arange: stop: got str; expected an int or a float",
        ),
        (lambda: gt.arange(0, np.nan), ValueError, "stop: got nan; expected a finite number"),
        (lambda: gt.arange(0.0, 1, np.inf), ValueError, "step: got inf; expected a finite number"),
        (lambda: gt.arange(2**64), ValueError, f"stop: got {2**64}; expected"),
        (lambda: gt.arange(2**62), ValueError, f"stop: got {2**62}; expected"),
        (lambda: gt.arange(-1e308, 1e308), ValueError, "stop: got 1e[+]308; expected"),
        (lambda: gt.arange(2**63, 2**63 + 2), OverflowError, f"number: got {2**63}; expected"),
        (
            lambda: gt.arange(300, dtype="int8"),
            OverflowError,
            "number: got 299; expected -128 to 127",
        ),
        (lambda: gt.linspace(0, 1, 2**70), ValueError, f"linspace: num: got {2**70}; expected"),
        (lambda: gt.linspace(0, 1, 2.5), TypeError, "linspace: num: got float; expected an int"),
        (lambda: gt.linspace(0, 1, -2), ValueError, "linspace: num: got -2; expected 0 or more"),
        (lambda: gt.eye(2.5), TypeError, "eye: n_rows: got float; expected an int"),
        (lambda: gt.eye(2, 2**70), ValueError, "eye: n_cols: got [0-9]+; expected at most"),
        (
            lambda: gt.permute_dims(gt.zeros((2, 3)), 1),
            TypeError,
            "axes: got 1; expected a sequence of 2 ints",
        ),
        (lambda: gt.sum(gt.zeros(3), axis=10**20), IndexError, f"axis: got {10**20}; expected"),
        (
            lambda: gt.zeros(2, dtype="float7"),
            TypeError,
            "dtype: got 'float7'; expected bool, int8, int16, int32, int64, uint8",
        ),
        (lambda: gt.zeros(2, device="tpu"), ValueError, "tpu"),
        (lambda: gt.arange(1, 2, 0), ValueError, "step: got 0; expected a nonzero number"),
        (lambda: gt.concat([]), ValueError, "at least one"),
        (
            lambda: gt.concat([np.ones(2)]),
            TypeError,
            r"concat: argument: got ndarray; expected a Tensor \(asarray makes one of",
        ),
        (
            lambda: gt.concat([gt.ones(2)], axis=0.5),
            TypeError,
            "concat: axis: got float; expected an int",
        ),
        (lambda: gt.roll(gt.ones(2), 1.5), TypeError, "roll: shift: got float; expected an int"),
        (lambda: gt.repeat(gt.ones(2), -1), ValueError, "repeat: repeats: got -1; exp"),
        (lambda: gt.repeat(gt.ones(2), 1.5), TypeError, "repeat: repeats: got float64"),
        (lambda: gt.tril(gt.ones((2, 2)), k=1.5), TypeError, "tril: k: got float; expected an int"),
        (
            lambda: gt.signbit("1.0"),
            TypeError,
            r"signbit: argument 1: got str; expected a Tensor or a number \(asarray",
        ),
        (lambda: gt.stack([gt.zeros(1), gt.zeros(2)]), ValueError, "expected one shape"),
        (
            lambda: gt.permute_dims(gt.zeros((2, 3)), (0, 0)),
            ValueError,
            r"axis: got \(0, 0\); expected axis 0 once",
        ),
        (
            lambda: gt.squeeze(gt.zeros((2, 3)), 0),
            ValueError,
            "axis: got 0, of extent 2; expected an axis of extent 1",
        ),
        (
            lambda: gt.sum(gt.zeros(3), axis=1),
            IndexError,
            "sum: axis: got 1; expected an axis of 1 dimensions",
        ),
        (
            lambda: gt.reshape(np.zeros(3), (3,)),
            TypeError,
            r"argument: got ndarray; expected a Tensor \(asarray makes one of an array",
        ),
    ],
)
def test_wrong_argument_is_named(call, error, message):
    with gt.Device("host"), pytest.raises(error, match=message):
        call()


def test_repeated_and_rolled_tensors_share_no_memory_with_their_argument(place):
    for copied in (
        lambda x: gt.repeat(x, 1),
        lambda x: gt.repeat(x, 1, axis=0),
        lambda x: gt.tile(x, (1,)),
        lambda x: gt.roll(x, 0),
        lambda x: gt.roll(x, (), axis=()),
        lambda x: gt.concat([x]),
    ):
        x = gt.zeros(3, device=place)
        copied(x)[...] = 1
        assert x.tolist() == [0.0] * 3


@pytest.mark.parametrize("dtype", ["bool", "uint8", "float16", "bfloat16", "complex64"])
def test_triangles_keep_the_dtype(place, dtype):
    x = gt.ones((3, 2), dtype=dtype, device=place)
    check_same(gt.tril(x), np.tril(np.ones((3, 2), x.dtype)))
    check_same(gt.triu(x, k=-(2**70)), np.ones((3, 2), x.dtype))
    check_same(gt.eye(2, k=2**70, dtype=dtype, device=place), np.zeros((2, 2), x.dtype))


def test_counts_may_be_any_int_and_repetitions_one(place):
    x, a = gt.arange(4, device=place), np.arange(4)
    check_same(gt.repeat(x, np.int64(2)), np.repeat(a, 2))
    check_same(gt.tile(x, 2), np.tile(a, 2))
    check_same(gt.roll(x.reshape(2, 2), [1, 1], axis=[0, 1]), np.roll(a.reshape(2, 2), 1, (0, 1)))


@QUICK
@given(
    shape=st.lists(st.integers(1, 5), min_size=1, max_size=3).map(tuple),
    mode=st.sampled_from(["linear_ramp", "maximum", "mean", "median", "minimum"]),
    dtype=st.sampled_from(["bool", "int8", "uint8", "int64", "float16", "float32", "float64"]),
    seed=st.integers(0, 2**32),
)
def test_borders_computed_from_the_elements_equal_numpys(place, shape, mode, dtype, seed):
    rng = np.random.default_rng(seed)
    a, x = random_view(rng, random_array(rng, shape, dtype), place)
    widths, more = rng.integers(0, 5, (a.ndim, 2)).tolist(), {}
    if rng.random() < 0.7:
        name = "end_values" if mode == "linear_ramp" else "stat_length"
        more = {name: rng.integers(1, 9, (a.ndim, 2)).tolist()}
    # Each axis adds a few roundings of values up to the largest element or end, at most 59.
    bound = 64 * 59 * np.finfo(a.dtype).eps if a.dtype.kind == "f" else 0
    result, expected = gt.pad(x, widths, mode, **more), np.pad(a, widths, mode, **more)
    assert result.dtype == expected.dtype and result.shape == expected.shape
    wide = np.float64 if a.dtype.kind == "f" else expected.dtype
    np.testing.assert_allclose(
        result.numpy().astype(wide), expected.astype(wide), rtol=0, atol=bound
    )


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({"mode": "mean", "stat_length": -1}, "stat_length: got -1; expected 1 or more"),
        ({"mode": "maximum", "stat_length": 0}, "stat_length: got 0; expected 1 or more"),
        ({"mode": "mean", "stat_length": 0.5}, "stat_length: got float; expected ints or None"),
        ({"mode": "linear_ramp", "end_values": [1, 2, 3]}, "end_values"),
    ],
)
def test_border_arguments_out_of_range_raise(place, more, words):
    with pytest.raises((TypeError, ValueError), match=words):
        gt.pad(gt.ones((2, 3), device=place), 1, **more)
    with pytest.raises(ValueError, match="extent 0"):
        gt.pad(gt.ones((0, 3), device=place), 1, mode="mean")


def test_scalars_of_numpy_are_cast_as_tensors_on_the_current_device(place):
    with gt.Device(place):
        check_same(gt.astype(np.float64(2.5), "int32"), np.int32(2))
        check_same(gt.astype(np.int8(-3), gt.float32), np.float32(-3))
        check_same(gt.astype(2.5, "int32"), np.int32(2))
