"""The methods of NumPy's ufuncs, on this library's functions and on NumPy's with tensors."""

import itertools

import numpy as np
import pytest

import gputensor as gt
from tests.support.tensor_arrays import random_view

DTYPES = {
    "add multiply maximum minimum fmax fmin logical_and logical_or logical_xor": (
        "bool int8 int32 int64 uint8 uint32 float32 float64"
    ),
    "bitwise_and bitwise_or bitwise_xor": "bool int16 uint32 int64",
    "gcd lcm": "int32 int64 uint8",
    "hypot logaddexp logaddexp2": "float32 float64",
}
NAMES = {name: dtypes.split() for names, dtypes in DTYPES.items() for name in names.split()}


def small_array(rng, dtype, shape):
    """Values whose joins do not overflow; floats are at most 2 in size."""
    if dtype == "bool":
        return rng.random(shape) < 0.5
    if np.dtype(dtype).kind == "f":
        return rng.uniform(-2, 2, shape).astype(dtype)
    least = 0 if np.dtype(dtype).kind == "u" else -4
    return rng.integers(least, 5, shape).astype(dtype)


def call_program(rng, name, shape, axis):
    """A method of the ufunc and its arguments after the array."""
    choice = rng.integers(5)
    if choice == 0:
        return "accumulate", {"axis": axis}
    if choice == 1 and shape[axis]:
        starts = rng.integers(0, shape[axis], rng.integers(0, 7))
        return "reduceat", {"indices": starts.tolist(), "axis": axis}
    if choice == 2 and name != "lcm":  # NumPy reduces no two axes by it
        axes = tuple(int(one) for one in rng.permutation(len(shape))[: rng.integers(1, 3)])
        return "reduce", {"axis": axes, "keepdims": True, "initial": 1}
    mask = rng.random(shape) < 0.6
    options = {"where": mask} if getattr(np, name).identity is not None else {}
    return "reduce", {"axis": axis, **options, "initial": 1}


@pytest.mark.parametrize("name", NAMES)
def test_methods_of_ufuncs_give_numpys_values(where, rng, name):
    for _ in range(12):
        dtype = str(rng.choice(NAMES[name]))
        shape = tuple(int(n) for n in rng.integers(0, 5, rng.integers(1, 4)))
        array, x = random_view(rng, small_array(rng, dtype, shape), where)
        method, options = call_program(rng, name, shape, int(rng.integers(-len(shape), len(shape))))
        with np.errstate(all="ignore"):
            expected = getattr(getattr(np, name), method)(array, **options)
        ours = {key: gt.asarray(one, device=where) if isinstance(one, np.ndarray) else one
                for key, one in options.items()}  # fmt: skip
        # At most 17 numbers of size 2 are joined: 1,000 roundings of the largest sum or product.
        largest = max(34.0, float(np.abs(expected).max(initial=0)))
        near = (0, 1000 * float(np.finfo(dtype).eps) * largest) if "float" in dtype else (0, 0)
        for namespace in (gt, np):
            got = getattr(getattr(namespace, name), method)(x, **ours)
            assert isinstance(got, gt.Tensor) and got.dtype.kind == expected.dtype.kind
            np.testing.assert_allclose(got.numpy(), expected, *near, err_msg=f"{options}")


def test_results_are_written_to_out(where):
    x = gt.asarray([[True, False], [True, True]], device=where)
    for name, method in (("logical_xor", "reduce"), ("logical_or", "accumulate")):
        expected = getattr(getattr(np, name), method)(x.numpy(), axis=0)
        out = gt.ones(expected.shape, dtype=bool, device=where)
        assert getattr(getattr(gt, name), method)(x, axis=0, out=out) is out
        assert out.tolist() == expected.tolist()
    with pytest.raises(ValueError, match=r"logical_xor: out: got shape \(3,\); expected \(2,\)"):
        gt.logical_xor.reduce(x, out=gt.ones(3, dtype=bool, device=where))


def test_lists_of_tensors_and_numbers_are_reduced(where, rng):
    arrays = list(rng.normal(size=(3, 4)))
    tensors = [gt.asarray(one, device=where) for one in arrays]
    for name in ("maximum", "fmin", "add", "hypot"):
        expected = getattr(np, name).reduce([*arrays, np.full(4, 0.25)])
        got = getattr(gt, name).reduce([*tensors, [0.25] * 4])
        np.testing.assert_allclose(got.numpy(), expected, 1e-12, 1e-12)


def test_products_at_places_count_each_repetition(where, rng):
    array, places = rng.uniform(0.5, 2, (4, 3)), rng.integers(0, 4, 7)
    x, expected = gt.asarray(array, device=where), array.copy()
    np.multiply.at(expected, (places, 1), 1.5)
    gt.multiply.at(x, (gt.asarray(places, device=where), 1), 1.5)
    np.testing.assert_allclose(x.numpy(), expected, 1e-13)


@pytest.mark.parametrize("dtype", ["float16", "float32"])
def test_divisors_at_a_place_have_products_of_any_size(where, dtype):
    most = np.finfo(dtype).max / 4
    array, places = np.array([most, most], dtype), gt.asarray([0, 0, 0, 1], device=where)
    x, expected = gt.asarray(array, device=where), array.copy()
    values = np.array([most / 2, 0.5, 4, most], dtype)
    np.divide.at(x, places, gt.asarray(values, device=where))
    np.divide.at(expected, places.numpy(), values)
    assert x.dtype == dtype
    np.testing.assert_allclose(x.numpy(), expected, 1e-3)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda x: gt.add.reduceat(x, [0, 4]), "add.reduceat: indices: got 4; expected 0 to 2"),
        (lambda x: gt.add.reduceat(x, [0.5]), "add.reduceat: indices: got float64 of 1 dimensions"),
        (lambda x: gt.equal.reduce(x), "np.equal.reduce: got a Tensor; expected arrays: gputensor"),
        (lambda x: gt.multiply.outer("a", 2), "multiply.outer: argument: got NoneType; expected"),
        (lambda x: gt.maximum.reduce([x, "a"]), "stack: argument: got str; expected a Tensor"),
        (lambda x: gt.lcm.reduce(x.astype(int)[:0]), "lcm.reduce: x: got an axis without elements"),
        (lambda x: gt.add.outer(x, np.ones(3)), "np.add: argument: got an array; expected tensors"),
    ],
)
def test_wrong_arguments_of_methods_are_named(where, call, message):
    with pytest.raises((TypeError, ValueError, IndexError), match=message):
        call(gt.ones(3, device=where))


IN_TURN = {
    "subtract": "int16 uint8 int64 float32 float64",
    "divide": "float32 float64",
    "remainder": "int32 float64",
    "power": "float64",
    "arctan2": "float64",
    "floor_divide": "int32",
    "left_shift": "int64",
}


def from_the_left(ufunc, lines, first=None):
    """All partial results. NumPy 2.5's ``power.reduce`` gives a[0] ** a[-1] on some processors."""
    parts = [*lines] if first is None else [first, *lines]
    return list(itertools.accumulate(parts, ufunc))


@pytest.mark.parametrize("name", IN_TURN)
@pytest.mark.filterwarnings("ignore:divide by zero|invalid value")
def test_functions_that_are_not_associative_fold_from_the_left(where, rng, name):
    for dtype in IN_TURN[name].split():
        for shape in ((5,), (3, 4), (2, 1, 3)):
            a = rng.integers(1, 5, shape).astype(dtype)
            if np.dtype(dtype).kind == "f":
                a = (a + rng.random(shape)).astype(dtype)
            a = np.sqrt(a) if name == "power" else a  # so that no power overflows
            axis = int(rng.integers(-len(shape), len(shape)))
            x = gt.asarray(a, device=where)
            ufunc, function = getattr(np, name), getattr(gt, name)
            last = from_the_left(ufunc, np.moveaxis(a, axis, 0))[-1]
            begun = from_the_left(ufunc, np.moveaxis(a, axis, 0), np.asarray(3, a.dtype))[-1]
            for got, want in (
                (function.reduce(x, axis=axis), last),
                (function.accumulate(x, axis=axis), ufunc.accumulate(a, axis=axis)),
                (function.reduce(x, axis, keepdims=True, initial=3), np.expand_dims(begun, axis)),
                (ufunc.reduce(x, axis=axis), last),
            ):
                assert got.shape == want.shape and got.dtype == want.dtype, (name, dtype)
                np.testing.assert_allclose(got.numpy(), want, rtol=1e-5)


def test_folds_from_the_left_say_what_they_cannot_do(where):
    x = gt.ones((2, 3), device=where)
    with pytest.raises(ValueError, match=r"subtract\.reduce: axis: got None; expected one axis"):
        gt.subtract.reduce(x, axis=None)
    with pytest.raises(ValueError, match=r"divide\.reduce: x: got no elements"):
        gt.divide.reduce(x[:0])
    with pytest.raises(TypeError, match=r"gputensor has no less\.reduce"):
        gt.less.reduce(x)
    assert gt.divide.accumulate(x[:0]).shape == (0, 3)


FLOATING = ["hypot", "logaddexp", "logaddexp2", "arctan2", "divide"]


def tensors_of(where, rng, dtype, shape):
    x = rng.integers(1, 9, shape).astype(dtype)
    return x, gt.asarray(x, device=where)


@pytest.mark.parametrize("count", [1, 2, 5])
@pytest.mark.parametrize("name", FLOATING)
def test_folds_of_integers_are_floats_at_any_length(where, rng, name, count):
    x, given = tensors_of(where, rng, "int16", (count, 3))
    join, ours = getattr(np, name), getattr(gt, name)
    for got, want in (
        (ours.reduce(given), join.reduce(x)),
        (ours.reduce(given, initial=2.5), join.reduce(x.astype("float64"), initial=2.5)),
        (ours.accumulate(given), join.accumulate(x)),
    ):
        assert got.dtype == gt.float32 and got.shape == want.shape
        np.testing.assert_allclose(got.numpy(), want, 1e-5)
    if name.startswith(("hypot", "logaddexp")):
        got, want = ours.reduceat(given, [0, count - 1]), join.reduceat(x, [0, count - 1])
        assert got.dtype == gt.float32
        np.testing.assert_allclose(got.numpy(), want, 1e-5)


@pytest.mark.parametrize("name", ["maximum", "minimum", "fmax", "fmin"])
def test_extremes_are_reduced_in_a_dtype(where, rng, name):
    x, given = tensors_of(where, rng, "int32", (3, 4))
    want = getattr(np, name).reduce(x, 1, dtype="float64")
    got = getattr(gt, name).reduce(given, 1, dtype="float64")
    assert got.dtype == want.dtype and got.tolist() == want.tolist()


@pytest.mark.parametrize("name", ["subtract", "remainder", "logaddexp", "gcd"])
def test_one_element_and_no_axis_are_reduced(where, rng, name):
    x, given = tensors_of(where, rng, "int64", (2, 3))
    join, ours = getattr(np, name), getattr(gt, name)
    for got, want in (
        (ours.reduce(given[0, 0]), join.reduce(x[0, 0])),
        (ours.reduce(given[0, 0], axis=None, keepdims=True), join.reduce(x[0, 0], axis=None)),
        (ours.reduce(given, axis=()), join.reduce(x, axis=())),
        (ours.reduce(given[0], axis=None), join.reduce(x[0], axis=None)),
    ):
        assert got.shape == want.shape
        np.testing.assert_allclose(got.numpy(), want, 1e-6)


@pytest.mark.parametrize(
    ("name", "dtype"),
    [
        ("subtract", "uint8"), ("subtract", "int64"), ("bitwise_or", "uint16"),
        ("bitwise_and", "int32"), ("bitwise_xor", "int64"), ("logical_or", "bool"),
        ("logical_and", "int8"), ("add", "bool"), ("multiply", "bool"), ("gcd", "int64"),
        ("fmax", "float64"), ("fmin", "float32"), ("hypot", "float64"), ("logaddexp", "float64"),
        ("divide", "float64"),
    ],
)  # fmt: skip
def test_repeated_places_are_joined_in_order(where, rng, name, dtype):
    x, values = (rng.integers(low, 9, (count, 3)) for low, count in ((0, 4), (1, 9)))
    x, values = x.astype(dtype), (values % (2 if dtype == "bool" else 9)).astype(dtype)
    values = np.maximum(values, 1) if name == "divide" else values
    places = rng.integers(-4, 4, 9)
    given, ours, index = (gt.asarray(one, device=where) for one in (x, values, places))
    getattr(np, name).at(x, places, values)
    getattr(gt, name).at(given, index, ours)
    getattr(np, name).at(given, places[:0], ours[:0])  # which changes nothing
    np.testing.assert_allclose(given.numpy(), x, 1e-12 if dtype == "float64" else 1e-6)


def test_a_quotient_is_not_written_to_integers(where):
    x = gt.asarray([6, 8], device=where)
    with pytest.raises(TypeError, match="divide.at: x: got int64; expected a dtype that holds flo"):
        gt.divide.at(x, [0], 2)
    assert x.tolist() == [6, 8]
