"""The compiled loops of the host device give NumPy's bits, for every dtype, layout and number."""

from itertools import product

import numpy as np
import pytest

import gputensor as gt
from gputensor._kernels.host.elementwise import host_function
from gputensor._kernels.host.index import run_arange
from gputensor._kernels.loops import HostLoop
from gputensor._kernels.loops.source import BESIDE
from gputensor._kernels.operations import ELEMENTWISE
from gputensor.tensor.engine import queue_call
from tests.support.tensor_arrays import DTYPES, check_same, random_array, random_view

FLOATS = ("float32", "float64")
INTEGERS = ("int32", "int64")
#: Functions by the dtypes of their loops; NumPy has the same names.
ARITHMETIC = ("add", "subtract", "multiply")
BITS = ("and", "or", "xor", "left_shift", "right_shift")
TESTS = ("equal", "not_equal", "less", "less_equal", "greater", "greater_equal")
BINARY = [
    *((name, dtype) for name in (*ARITHMETIC, *TESTS) for dtype in (*FLOATS, *INTEGERS)),
    *((name, dtype) for name in ("maximum", "minimum") for dtype in INTEGERS),
    *((f"logical_{name}", "bool") for name in ("and", "or", "xor")),
    *((f"bitwise_{name}", dtype) for name in BITS for dtype in INTEGERS),
    *((name, dtype) for name in ("floor_divide", "remainder") for dtype in FLOATS),
]
UNARY = [
    *((name, dtype) for name in ("negative", "square") for dtype in (*FLOATS, *INTEGERS)),
    *((name, dtype) for name in ("abs", "isnan", "isinf", "isfinite") for dtype in FLOATS),
    ("logical_not", "bool"),
    *(("bitwise_invert", dtype) for dtype in INTEGERS),
]


def special_array(rng, shape, dtype):
    """Random elements, a part of which are those at which operations differ."""
    array = random_array(rng, shape, dtype, -4, 4)
    if np.dtype(dtype).kind == "f":
        array = np.asarray(np.trunc(array))  # many equal ones
        given = np.array([np.nan, -np.nan, np.inf, -np.inf, 0.0, -0.0], dtype)
    elif np.dtype(dtype).kind == "i":
        limits = np.iinfo(dtype)
        given = np.array([limits.min, limits.max, limits.min + 1], dtype)
    else:
        return array
    places = rng.random(shape) < 0.3
    array[places] = rng.choice(given, np.count_nonzero(places))
    return array


def on_host(array):
    return gt.asarray(array, device="host")


def check_bits(name, arrays, tensors=None):
    """Compare a function of tensors with NumPy's, bit by bit; all NaN are equal."""
    with np.errstate(all="ignore"):
        want = np.asarray(getattr(np, name)(*arrays))
    given = [on_host(one) for one in arrays] if tensors is None else tensors
    out = on_host(np.ones(want.shape, want.dtype))  # poisoned
    got = getattr(gt, name)(*given, out=out).numpy()
    assert got.dtype == want.dtype
    np.testing.assert_array_equal(got, want)
    if want.dtype.kind == "f":
        numbers = ~np.isnan(want)
        np.testing.assert_array_equal(np.signbit(got)[numbers], np.signbit(want)[numbers])


@pytest.mark.parametrize(("name", "dtype"), BINARY)
@pytest.mark.parametrize("shape", [(), (1,), (7,), (500,), (40_000,), (5, 33)])
def test_functions_of_two_operands(rng, name, dtype, shape):
    a, b = (special_array(rng, shape, dtype) for _ in range(2))
    check_bits(name, (a, b))
    one = special_array(rng, (), dtype)
    check_bits(name, (a, one))
    check_bits(name, (one, b))
    if a.ndim == 2:
        row, column = special_array(rng, (33,), dtype), special_array(rng, (5, 1), dtype)
        for pair in ((a, row), (column, b), (column, row), (a.T, b.T), (a.T, column.T)):
            check_bits(name, pair)
        wide = special_array(rng, (5, 70), dtype)
        tensor = on_host(wide)
        check_bits(name, (wide[:, 3:36], b), (tensor[:, 3:36], on_host(b)))
        check_bits(name, (wide[:, ::2][:, :33], b), (tensor[:, ::2][:, :33], on_host(b)))
        check_bits(name, (a[::-1], b), (gt.flip(on_host(a), axis=0), on_host(b)))


@pytest.mark.parametrize("name", ["floor_divide", "remainder"])
@pytest.mark.parametrize("dtype", FLOATS)
def test_divisions_near_whole_quotients_and_of_any_bits(rng, name, dtype):
    word = np.dtype(f"uint{8 * np.dtype(dtype).itemsize}")
    tiny = np.finfo(dtype).tiny
    for count in (3, 64, 5000):
        of_any_bits = rng.integers(0, np.iinfo(word).max, (2, count), word).view(dtype)
        divisor = rng.normal(size=count).astype(dtype)
        whole = divisor * rng.integers(-(2**20), 2**20, count).astype(dtype)
        beside = np.nextafter(whole, rng.choice([np.inf, -np.inf], count).astype(dtype))
        far = whole * np.dtype(dtype).type(2) ** rng.integers(0, 60, count).astype(dtype)
        odd = divisor * rng.integers(2**44, 2**45, count).astype(dtype)
        for a, b in (of_any_bits, (whole, divisor), (beside, divisor), (far, divisor),
                     (beside * tiny, divisor * tiny), (odd * tiny, divisor * tiny)):  # fmt: skip
            check_bits(name, (a, b))


@pytest.mark.parametrize(("name", "dtype"), BINARY)
def test_any_layouts_of_operands_and_result(rng, name, dtype):
    for shape in ((6,), (3, 4), (2, 3, 4), (2, 1, 3, 2)):
        (a, x), (b, y) = (random_view(rng, special_array(rng, shape, dtype), "host") for _ in "ab")
        with np.errstate(all="ignore"):
            want = np.asarray(getattr(np, name)(a, b))
        whole = on_host(np.ones((*shape, 3), want.dtype))
        out = gt.moveaxis(whole[..., 1], 0, -1)
        getattr(gt, name)(gt.moveaxis(x, 0, -1), gt.moveaxis(y, 0, -1), out=out)
        np.testing.assert_array_equal(whole[..., 1].numpy(), want)
        assert (whole[..., ::2].numpy() == 1).all()
        getattr(gt, name)(x, y, out=x) if want.dtype == dtype else None
        assert want.dtype != dtype or x.numpy().tobytes() == whole[..., 1].numpy().tobytes()


@pytest.mark.parametrize(("name", "dtype"), UNARY)
def test_functions_of_one_operand(rng, name, dtype):
    for shape in ((), (1,), (9,), (1000,), (40_000,), (6, 11)):
        a = special_array(rng, shape, dtype)
        check_bits(name, (a,))
        check_bits(name, (a.T,), (on_host(a).T,))


@pytest.mark.parametrize("dtype", ["bool", *INTEGERS, *FLOATS, "int8", "float16", "complex64"])
@pytest.mark.parametrize("shape", [(1,), (77,), (40_000,), (4, 19)])
def test_where_copies_bits(rng, dtype, shape):
    a, b = (random_array(rng, shape, dtype) for _ in range(2))
    if np.dtype(dtype).kind == "f":
        word = f"uint{8 * a.itemsize}"
        # With a payload; the one of 16 bits is signaling, which a conversion would change.
        nan = 0x7D34 if a.itemsize == 2 else np.array(np.nan, dtype).view(word) | 0x1234
        a[rng.random(shape) < 0.4] = np.array(nan, word).view(dtype)
    mask = rng.random(shape) < 0.5
    one = b.reshape(-1)[0]
    for second, third in ((a, b), (a, np.array(one)), (np.array(one), b)):
        want = np.where(mask, second, third)
        got = gt.where(on_host(mask), on_host(second), on_host(third)).numpy()
        assert got.dtype == want.dtype and got.tobytes() == want.tobytes()
    if len(shape) == 2:
        want = np.where(mask[:, :1], a, b[0])
        got = gt.where(on_host(mask[:, :1].copy()), on_host(a), on_host(b[0])).numpy()
        assert got.tobytes() == want.tobytes()
    assert (
        gt.where(on_host(np.array(True)), on_host(a), on_host(b)).numpy().tobytes() == a.tobytes()
    )


def test_bytes_of_another_library_are_true_unless_they_are_zero():
    flags = np.array([0, 1, 2, 255, 0, 128], "uint8").view(bool)
    x = gt.from_dlpack(flags)
    want = [False, True, True, True, False, True]
    assert gt.where(x, 1.0, gt.zeros(6, device=x.device)).tolist() == [float(one) for one in want]
    assert gt.logical_and(x, gt.ones(6, dtype="bool", device=x.device)).tolist() == want
    assert gt.logical_not(x).tolist() == [not one for one in want]


@pytest.mark.parametrize("dtype", INTEGERS)
def test_clip_of_integers(rng, dtype):
    a = special_array(rng, (300,), dtype)
    low, high = (special_array(rng, (300,), dtype) for _ in range(2))
    for ends in ((-1, 2), (low, high), (2, -1), (low, 1)):
        given = [on_host(one) if isinstance(one, np.ndarray) else one for one in ends]
        np.testing.assert_array_equal(gt.clip(on_host(a), *given).numpy(), np.clip(a, *ends))


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", *FLOATS])
def test_relu_and_clip_give_no_negative_zero(dtype):
    zeros = on_host(np.full(40, -0.0, "float32")).astype(dtype)
    both = gt.stack([zeros, zeros], axis=1)
    for x in (zeros, both[:, 0], zeros[:3]):
        for got in (gt.relu(x), gt.clip(x, 0, 6), gt.relu6(x), gt.maximum(x, 0)):
            assert not gt.signbit(got).any()


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("name", BESIDE)
def test_host_functions_beside_loops_give_their_bits(name, dtype):
    row = next(row for row in ELEMENTWISE if row.name == name)
    values = np.array([0.0, -0.0, 1, -1, 0.5, 7, -9, np.inf, -np.inf, np.nan], dtype)
    inputs = [np.array(one) for one in zip(*product(values, repeat=row.arity), strict=True)]
    with np.errstate(all="ignore"):
        got, want = (np.asarray(one(*inputs)) for one in (host_function(row), HostLoop(name)))
    np.testing.assert_array_equal(got, want)
    numbers = ~np.isnan(want)
    np.testing.assert_array_equal(np.signbit(got)[numbers], np.signbit(want)[numbers])


@pytest.mark.parametrize("dtype", DTYPES, ids=lambda dtype: dtype.name)
def test_copies_and_fills_of_any_layout(rng, dtype):
    for shape in ((), (5,), (4, 6), (3, 1, 5), (2, 3, 4, 2)):
        array, tensor = random_view(rng, random_array(rng, shape, dtype), "host")
        check_same(gt.copy(tensor), array)
        out = gt.zeros((*shape, 2), dtype=dtype, device="host")
        out[..., 1] = tensor
        check_same(out[..., 1], array)
        assert not out[..., 0].astype("float32").any()
        out[..., 0] = 1
        check_same(out[..., 0], np.ones(shape).astype(dtype))
        check_same(out[..., 1], array)
        check_same(
            gt.copy(gt.broadcast_to(tensor, (3, *shape))), np.broadcast_to(array, (3, *shape))
        )


@pytest.mark.parametrize("dtype", DTYPES, ids=lambda dtype: dtype.name)
def test_gathers_along_any_axis(rng, dtype):
    for shape in ((9,), (4, 9), (9, 3), (2, 9, 5)):
        array = random_array(rng, shape, dtype)
        axis = shape.index(9)
        for index in (rng.integers(-9, 9, 20), rng.integers(-9, 9, (2, 3)), np.array(4)):
            check_same(gt.take(on_host(array), on_host(index), axis=axis), array.take(index, axis))
        check_same(
            gt.take(on_host(array), on_host(np.array([1, -1], "int32")), axis),
            array.take([1, -1], axis),
        )
        check_same(on_host(array).T[on_host(np.array([0, -1]))], array.T[[0, -1]])


@pytest.mark.parametrize("dtype", ["uint8", "float16", "float32", "int64", "complex128"])
def test_gathers_by_several_indices(rng, dtype):
    shape = (3, 4, 5, 2, 3)
    array = random_array(rng, shape, dtype)
    x = on_host(array)

    def index(extent, *shape):
        return rng.integers(-extent, extent, shape)

    for key in (
        (index(3, 6), index(4, 6)),
        (index(3, 7, 1), index(4, 1, 2), index(5, 7, 2)),
        (index(3, 2, 1, 1), index(4, 1, 3, 1), index(5, 1, 1, 4), index(2)),
        (index(3, 1), index(4, 1, 1)),
        (slice(None), index(4, 2, 3).T, index(5, 3, 1)),
        (slice(1, 2), slice(None), index(5, 3), index(2, 2, 3)),
        (index(3, 4, 5)[::-2, ::2],),
        # Numbers that ascend name neighbours in memory, but 0 after -1.
        (index(3, 2, 1, 1), index(4, 3, 1), np.array([-5, -4, -3, -2, -1, 0, 1, 2, 3])),
        (index(3, 7, 1), np.array([1, 2, 3, -4, -3, -2, 3, 0])),
    ):
        moved = tuple(on_host(one) if isinstance(one, np.ndarray) else one for one in key)
        check_same(x[moved], array[key])
    for axis in range(5):
        places = index(shape[axis], *(1 if i == 3 else n for i, n in enumerate(shape)))
        full = np.broadcast_to(places, places.shape if axis == 3 else shape)
        want = np.take_along_axis(array, full, axis)
        check_same(gt.take_along_axis(x, on_host(places), axis), want)
    with pytest.raises(IndexError, match="index 4 is out of bounds for axis 1 with size 4"):
        x[on_host(index(3, 5, 1)), on_host(np.array([1, 4]))].numpy()


@pytest.mark.parametrize("dtype", ["uint8", "float64", "complex128"])
def test_gathers_from_sources_with_gaps(rng, dtype):
    array = random_array(rng, (6, 8, 10), dtype)
    x = on_host(array)
    first, second = rng.integers(-3, 3, 7), rng.integers(-4, 4, (3, 7))
    for key in (
        (slice(None, None, 2), slice(None, None, 2)),
        (slice(None, None, -2), slice(None, 4), slice(0, 9, 3)),
        (slice(3), slice(4), slice(5)),
    ):
        cut, other = array[key], x[key]
        check_same(other[on_host(first)], cut[first])
        check_same(other[on_host(first), on_host(second)], cut[first, second])
        check_same(other[:, on_host(first)], cut[:, first])
        check_same(other.T[on_host(first)], cut.T[first])
    row = np.broadcast_to(array[0, 0], (3, 10))
    check_same(gt.broadcast_to(x[0, 0], (3, 10))[on_host(first)], row[first])
    empty = np.ones((3, 4, 0), dtype)
    check_same(on_host(empty)[on_host(first), on_host(second)], empty[first, second])


@pytest.mark.parametrize("dtype", DTYPES, ids=lambda dtype: dtype.name)
def test_progressions_have_the_bits_of_the_host_function(dtype):
    is_whole = dtype.kind in "iub"
    for start, step in ((0, 1), (5, -3), (0, -1), (2**62, 2**61), (-7, 2**63 - 1)):
        start, step = (start, step) if is_whole else (start * 0.1, step / 3)
        want = np.empty(77, dtype)
        with np.errstate(all="ignore"):
            run_arange(start, step, want)
        got = gt.empty((77, 2), dtype=dtype, device="host")[::-1, 1]  # steps of -2
        attributes = (start % 2**64, step % 2**64) if is_whole else (start, step)
        queue_call("arange", attributes, (got,))
        assert got.numpy().tobytes() == want.tobytes()


def test_gathers_name_the_first_index_out_of_range(deferred):
    for wrong in (9, -10, 2**62, -(2**63)):
        index = np.array([3, wrong, 77])
        with pytest.raises(
            IndexError, match=f"index {wrong} is out of bounds for axis 1 with size 9"
        ):
            gt.take(gt.ones((2, 9), device="host"), on_host(index), axis=1).numpy()
    x, index = gt.ones(4, device=deferred), gt.asarray([4], device=deferred)
    with pytest.raises(IndexError, match="index 4 is out of bounds for axis 0 with size 4"):
        gt.take(x, index).numpy()
