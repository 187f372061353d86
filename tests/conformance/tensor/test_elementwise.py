"""Element-wise functions agree with NumPy on every device, dtype and layout."""

import itertools
import operator

import ml_dtypes
import numpy as np
import pytest

import gputensor as gt
from tests.support.tensor_arrays import (
    BOOL,
    COMPLEX,
    DTYPES,
    EPSILON,
    FLOATS,
    INTEGERS,
    check_same,
    random_array,
    random_view,
)
from tests.support.tensor_devices import device_of


def ids(dtype):
    return np.dtype(dtype).name


BINARY = {
    "add": (np.add, [*INTEGERS, *FLOATS, *COMPLEX]),
    "subtract": (np.subtract, [*INTEGERS, *FLOATS, *COMPLEX]),
    "multiply": (np.multiply, [*INTEGERS, *FLOATS, *COMPLEX]),
    "maximum": (np.maximum, [*INTEGERS, *FLOATS]),
    "minimum": (np.minimum, [*INTEGERS, *FLOATS]),
    "equal": (np.equal, DTYPES),
    "not_equal": (np.not_equal, DTYPES),
    "less": (np.less, [BOOL, *INTEGERS, *FLOATS]),
    "greater_equal": (np.greater_equal, [BOOL, *INTEGERS, *FLOATS]),
    "logical_and": (np.logical_and, DTYPES),
    "logical_xor": (np.logical_xor, DTYPES),
    "bitwise_and": (np.bitwise_and, [BOOL, *INTEGERS]),
    "bitwise_or": (np.bitwise_or, [BOOL, *INTEGERS]),
    "bitwise_xor": (np.bitwise_xor, [BOOL, *INTEGERS]),
}


@pytest.mark.parametrize("name", BINARY)
def test_binary_function_equals_numpy_for_any_layout(place, rng, name):
    reference, dtypes = BINARY[name]
    for dtype in dtypes:
        shape = tuple(rng.integers(1, 6, rng.integers(0, 4)))
        a, x = random_view(rng, random_array(rng, shape, dtype), place)
        partial = tuple(n if rng.integers(2) else 1 for n in shape)[rng.integers(0, 2) :]
        b, y = random_view(rng, random_array(rng, partial, dtype), place)
        wide = a, b
        if np.dtype(dtype).kind == "V":
            wide = a.astype(np.float32), b.astype(np.float32)
        expected = reference(*wide)
        if expected.dtype != BOOL:
            expected = expected.astype(dtype)
        check_same(getattr(gt, name)(x, y), expected, name=f"{name} {dtype} {shape} {partial}")


@pytest.mark.parametrize("dtype", [*FLOATS, *COMPLEX], ids=ids)
def test_division_equals_numpy(place, rng, dtype):
    a = random_array(rng, (7, 5), dtype)
    b = random_array(rng, (5,), dtype)
    b[b == 0] = 3
    wide = np.complex128 if dtype in COMPLEX else np.float64
    expected = (a.astype(wide) / b.astype(wide)).astype(dtype)
    tolerance = EPSILON.get(dtype.name, 2**-21)
    check_same(gt.asarray(a, device=place) / gt.asarray(b, device=place), expected, tolerance)


@pytest.mark.parametrize("dtype", INTEGERS, ids=ids)
def test_integers_divide_as_float32_and_floor_and_remainder_follow_python(place, rng, dtype):
    a = random_array(rng, (40,), dtype)
    b = random_array(rng, (40,), dtype)
    b[b == 0] = 7
    x, y = gt.asarray(a, device=place), gt.asarray(b, device=place)
    check_same(x / y, (a / b.astype(np.float64)).astype(np.float32), 2**-22)
    check_same(x // y, a // b)
    check_same(x % y, a % b)


UNARY = {
    "exp": (-3, 3),
    "expm1": (-3, 3),
    "log": (0.1, 9),
    "log1p": (-0.9, 9),
    "log2": (0.1, 9),
    "log10": (0.1, 9),
    "sqrt": (0, 9),
    "sin": (-9, 9),
    "cos": (-9, 9),
    "tan": (-1.4, 1.4),
    "asin": (-1, 1),
    "acos": (-1, 1),
    "atan": (-9, 9),
    "sinh": (-3, 3),
    "cosh": (-3, 3),
    "tanh": (-3, 3),
    "asinh": (-9, 9),
    "acosh": (1, 9),
    "atanh": (-0.9, 0.9),
    "square": (-9, 9),
    "reciprocal": (0.1, 9),
    "floor": (-9, 9),
    "ceil": (-9, 9),
    "trunc": (-9, 9),
    "round": (-9, 9),
    "sign": (-9, 9),
    "negative": (-9, 9),
    "abs": (-9, 9),
}


@pytest.mark.parametrize("name", UNARY)
@pytest.mark.parametrize("dtype", FLOATS, ids=ids)
def test_function_of_floats_is_near_its_float64_value(place, rng, name, dtype):
    values = rng.uniform(*UNARY[name], (5, 9)).astype(dtype)
    expected = getattr(np, name)(values.astype(np.float64)).astype(dtype)
    check_same(
        getattr(gt, name)(gt.asarray(values, device=place)), expected, 4 * EPSILON[dtype.name], name
    )


@pytest.mark.parametrize("name", ["isnan", "isinf", "isfinite"])
@pytest.mark.parametrize("dtype", [*FLOATS, *COMPLEX], ids=ids)
def test_classification_finds_every_special_value(place, name, dtype):
    values = np.array([0.0, 1.5, np.nan, np.inf, -np.inf]).astype(dtype)
    check_same(getattr(gt, name)(gt.asarray(values, device=place)), getattr(np, name)(values))


def test_functions_of_integers_give_float32(place):
    x = gt.asarray([0, 1], device=place)
    for name in ("exp", "sin", "sqrt", "sigmoid"):
        assert getattr(gt, name)(x).dtype == gt.float32


@pytest.mark.parametrize("dtype", COMPLEX, ids=ids)
def test_parts_of_complex_tensors(place, rng, dtype):
    a = random_array(rng, (3, 4), dtype)
    x = gt.asarray(a, device=place)
    check_same(gt.real(x), a.real)
    check_same(gt.imag(x), a.imag)
    check_same(gt.conj(x), a.conj())
    check_same(gt.abs(x), np.abs(a), 2**-20)


@pytest.mark.parametrize("dtype", DTYPES, ids=ids)
def test_where_and_clip_choose_as_numpy(place, rng, dtype):
    a, b = random_array(rng, (4, 5), dtype), random_array(rng, (5,), dtype)
    mask = rng.integers(0, 2, (4, 1)).astype(bool)
    x, y = gt.asarray(a, device=place), gt.asarray(b, device=place)
    check_same(gt.where(gt.asarray(mask, device=place), x, y), np.where(mask, a, b))
    if dtype.kind not in "bc":
        low, high = (3, 20)
        expected = np.clip(a.astype(np.float64), low, high).astype(dtype)
        check_same(gt.clip(x, low, high), expected)
        check_same(gt.clip(x, None, high), np.minimum(a.astype(np.float64), high).astype(dtype))


def test_python_numbers_are_weak(place):
    for name, number, expected in [
        ("uint8", 3, "uint8"),
        ("uint8", 2.5, "float32"),
        ("float16", 2.5, "float16"),
        ("bfloat16", 7, "bfloat16"),
        ("bool", 1, "int64"),
        ("float32", np.float64(2.5), "float32"),
        ("float64", 1j, "complex128"),
        ("int32", 1j, "complex64"),
    ]:
        x = gt.ones(3, dtype=name, device=place)
        for result in (x + number, number + x, x * number):
            assert result.dtype.name == expected, (name, number)


def test_number_outside_the_integer_dtype_is_refused_and_compared_correctly(place):
    x = gt.asarray([0, 200], dtype="uint8", device=place)
    with pytest.raises(OverflowError, match="number: got 300; expected 0 to 255"):
        x + 300
    assert (x < 300).tolist() == [True, True]
    assert (x > -1).tolist() == [True, True]


MIRRORED = {
    "equal": "equal",
    "not_equal": "not_equal",
    "less": "greater",
    "less_equal": "greater_equal",
    "greater": "less",
    "greater_equal": "less_equal",
}


@pytest.mark.parametrize("dtype", [BOOL, *INTEGERS], ids=ids)
def test_comparison_with_any_int_is_that_of_python(place, dtype):
    low, high = (0, 1) if dtype == BOOL else (np.iinfo(dtype).min, np.iinfo(dtype).max)
    held = [low, high - 1, high]
    x = gt.asarray(np.array(held, dtype), device=place)
    for number in (
        low - 1,
        high + 1,
        -(2**63) - 1,
        -1,
        2**63,
        2**64,
        2**64 + 1,
        2**2000,
        -(2**2000),
    ):
        for name, mirrored in MIRRORED.items():
            compare = getattr(
                operator,
                {"equal": "eq", "not_equal": "ne"}.get(
                    name, name[0] + ("e" if name.endswith("_equal") else "t")
                ),
            )
            expected = [compare(one, number) for one in held]
            assert getattr(gt, name)(x, number).tolist() == expected, f"{name} {number}"
            assert getattr(gt, mirrored)(number, x).tolist() == expected, f"{number} {mirrored}"


def test_mixed_dtypes_follow_the_promotion_rules(place, rng):
    for first in DTYPES:
        for second in DTYPES:
            x = gt.ones(2, dtype=first, device=place)
            y = gt.ones(2, dtype=second, device=place)
            try:
                expected = gt.result_type(first, second)
            except TypeError:
                with pytest.raises(TypeError, match="no common dtype"):
                    gt.maximum(x, y)
                continue
            result = gt.where(gt.ones(2, dtype=bool, device=place), x, y)
            assert result.dtype == expected
            assert np.all(result.numpy() == np.ones(2, expected))


def test_out_takes_the_result_and_keeps_its_layout(place, rng):
    a = random_array(rng, (4, 3), "float32")
    x = gt.asarray(a, device=place)
    store = gt.full((3, 8), 99.0, device=place)
    out = store[:, ::2].T
    assert gt.add(x, 1, out=out) is out
    check_same(out, a + 1)
    check_same(store[:, 1::2], np.full((3, 4), 99.0, np.float32))


def test_out_in_a_wider_dtype_is_converted(place):
    out = gt.zeros(2, dtype="float64", device=place)
    gt.add(gt.asarray([1, 2], device=place), 3, out=out)
    assert out.tolist() == [4.0, 5.0]


@pytest.mark.parametrize("shift", [1, -1, 2])
def test_in_place_operation_on_overlapping_views_reads_the_old_values(place, rng, shift):
    a = random_array(rng, (64,), "int32")
    x = gt.asarray(a, device=place)
    source, target = (slice(None, -shift), slice(shift, None))
    if shift < 0:
        source, target = slice(-shift, None), slice(None, shift)
    x[target] += x[source]
    a[target] = a[target] + a[source]
    check_same(x, a)


def test_in_place_operators_keep_the_tensor_and_its_dtype(place, rng):
    a = random_array(rng, (5,), "float32")
    x = gt.asarray(a, device=place)
    before = x
    x += 2
    x *= x
    x -= 1
    x /= 3
    assert x is before
    check_same(x, ((a + 2) ** 2 - 1) / np.float32(3), 2**-20)
    counts = gt.asarray([1, 2], device=place)
    with pytest.raises(TypeError, match="out: got dtype int64"):
        counts /= 2
    assert counts.tolist() == [1, 2]


def test_dtypes_are_refused_for_empty_tensors_too(place):
    for extent in (0, 2):
        x = gt.zeros((extent, 2), dtype="bool", device=place)
        with pytest.raises(TypeError, match="subtract: dtype: got bool"):
            x - x
        with pytest.raises(TypeError, match="floor: dtype: got complex64"):
            gt.floor(x.astype("complex64"))


def test_product_in_place_keeps_shape_and_kind(place):
    x = gt.ones((3, 3), device=place)
    x @= x
    assert x.tolist() == [[3.0] * 3] * 3
    with pytest.raises(
        ValueError, match=r"@=: product: got shape \(3,\); expected \(3, 3\), that of the tensor"
    ):
        x @= gt.ones(3, device=place)
    counts = gt.ones((3, 3), dtype="int32", device=place)
    with pytest.raises(TypeError, match="@=: product: got dtype float32"):
        counts @= x / 2
    assert counts.tolist() == [[1] * 3] * 3


@pytest.mark.parametrize("name", ["hypot", "logaddexp", "copysign"])
def test_composed_functions_take_integers_and_numbers_as_floats(place, name):
    a, b = np.array([-128, 3, 100], np.int8), np.array([0, 4, -128], np.int8)
    wide = getattr(np, name)(a.astype(np.float32), b.astype(np.float32))
    x, y = gt.asarray(a, device=place), gt.asarray(b, device=place)
    check_same(getattr(gt, name)(x, y), wide, 2**-20)
    unsigned = getattr(gt, name)(x.astype("uint8"), y.astype("float64"))
    check_same(unsigned, getattr(np, name)(a.astype(np.uint8), b.astype(np.float64)), 2**-45)
    check_same(
        getattr(gt, name)(y, 5), getattr(np, name)(b.astype(np.float32), np.float32(5)), 2**-20
    )
    with pytest.raises(TypeError, match=f"{name}: argument 1: got .*; expected a Tensor"):
        getattr(gt, name)("1.0", 2.0)


@pytest.mark.parametrize("dtype", ["float8_e4m3", "float8_e5m2"])
def test_float8_is_selected_like_every_dtype(place, rng, dtype):
    x = gt.asarray(rng.integers(-8, 9, (5, 5)).astype(np.float32), device=place).astype(dtype)
    a, keep = x.numpy(), rng.random((5, 5)) < 0.5
    mask = gt.asarray(keep, device=place)
    check_same(gt.where(mask, x, 2.0), np.where(keep, a, np.float32(2).astype(a.dtype)))
    check_same(gt.tril(x), np.tril(a))
    x[mask] = 3.0
    a[keep] = 3.0
    check_same(x, a)


def test_operands_on_two_devices_are_refused(place):
    x = gt.ones(2, device=place)
    other = gt.ones(2, device=-1 if place != -1 else device_of("deferred-a"))
    with pytest.raises(
        ValueError, match=r"add: operands: got .*; expected one device \(move a tensor with"
    ):
        x + other


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (
            lambda x: x + np.ones(2),
            TypeError,
            r"argument 2: got ndarray; expected a Tensor or a number \(asarray makes a",
        ),
        (
            lambda x: x + "1",
            TypeError,
            r"add: argument 2: got str; expected a Tensor or a number \(asarray makes a",
        ),
        (
            lambda x: np.ones(2) + x,
            TypeError,
            r"np.add: argument: got an array; expected tensors and numbers, on one device",
        ),
        (
            lambda x: x + gt.ones(3, device=x.device),
            ValueError,
            r"shapes: got \(2,\) and \(3,\), which do not broadcast",
        ),
        (
            lambda x: x[None, :1].expand(1, 3) + gt.ones((5, 4), device=x.device),
            ValueError,
            r"shapes: got \(1, 3\) and \(5, 4\), which do not broadcast",
        ),
        (lambda x: x & x, TypeError, "dtype: got float32; expected bool or an integer dtype"),
        (
            lambda x: gt.add(x, x, out=gt.ones(3, device=x.device)),
            ValueError,
            r"out: got shape \(3,\); expected \(2,\), that of the result",
        ),
        (
            lambda x: gt.add(x, x, out=gt.broadcast_to(gt.ones(1, device=x.device), 2)),
            ValueError,
            "target: got a broadcast tensor",
        ),
        (
            lambda x: gt.sin(x.astype("float8_e4m3")),
            TypeError,
            "dtype: got float8_e4m3, a type for storage",
        ),
        (
            lambda x: gt.add(1, 2, out=x),
            TypeError,
            "arguments: got numbers only; expected at least one Tensor",
        ),
        (
            lambda x: gt.relu(-1.0),
            TypeError,
            "relu: arguments: got numbers only",
        ),
        (
            lambda x: gt.where("no", x, x + 1),
            TypeError,
            r"where: argument 1: got str; expected a Tensor or a number \(asarray",
        ),
        (lambda x: gt.where(np.array([False]), x, 0), TypeError, "where: argument 1: got ndarray"),
    ],
)
def test_wrong_argument_is_named(place, call, error, message):
    x = gt.ones(2, device=place)
    with pytest.raises(error, match=message):
        call(x)
    assert x.tolist() == [1.0, 1.0]


def test_a_tensor_equals_no_object_of_another_type(place):
    x = gt.ones(2, device=place)
    assert (x == None) is False  # noqa: E711
    assert (x != "text") is True


@pytest.mark.parametrize("dtype", ["float8_e4m3", "float8_e5m2"])
def test_float8_stores_and_converts_as_ml_dtypes(place, rng, dtype):
    values = rng.uniform(-10, 10, 200).astype(np.float32)
    stored = gt.asarray(values, device=place).astype(dtype)
    scalar = ml_dtypes.float8_e4m3fn if dtype == "float8_e4m3" else ml_dtypes.float8_e5m2
    check_same(stored.astype("float32"), values.astype(scalar).astype(np.float32))


def test_conversion_between_all_dtypes_equals_numpy(place, rng):
    for source in DTYPES:
        a = random_array(rng, (6,), source, low=0, high=100)
        for target in DTYPES:
            if source in COMPLEX and target not in COMPLEX:
                continue
            expected = a.astype(target)
            if target.kind == "u" and a.dtype.kind in "fV":
                expected = a.astype(np.float64).astype(target)
            check_same(gt.asarray(a, device=place).astype(target), expected, name=f"{source}")


def test_short_maps_have_the_bits_of_numpy(place, rng):
    """Runs of floats that a host device computes without NumPy, and other layouts."""
    names = (("add", np.add), ("subtract", np.subtract), ("multiply", np.multiply),
             ("divide", np.divide))  # fmt: skip
    special = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 1e38, 3e-45])
    for dtype in ("float32", "float64"):
        for shape in ((), (1,), (7, 5), (33, 1, 40), (40_000,)):
            a, b = (rng.choice(special, shape).astype(dtype) for _ in range(2))
            a, b = (np.asarray(np.where(rng.random(shape) < 0.3, one, rng.standard_normal(shape)),
                               dtype) for one in (a, b))  # fmt: skip
            x, y = (gt.asarray(one, device=place) for one in (a, b))
            for (name, ufunc), number in itertools.product(names, (0.1, -3, np.inf)):
                function, tight = getattr(gt, name), np.array(number, dtype)
                pairs = [(x, y, a, b), (x, number, a, tight), (number, y, tight, b)]
                pairs += [(x[..., ::-1], y, a[..., ::-1], b)] if shape else []
                for one, other, left, right in pairs:
                    with np.errstate(all="ignore"):
                        want = ufunc(left, right)
                    assert np.array_equal(function(one, other).numpy(), want, equal_nan=True)
                out = gt.full(shape, 77, dtype=dtype, device=place)
                function(x, y, out=out)
                function(out, number, out=out)
                with np.errstate(all="ignore"):
                    want = ufunc(ufunc(a, b), tight)
                assert np.array_equal(out.numpy(), want, equal_nan=True)


@pytest.mark.parametrize("name", ["sqrt", "log", "deg2rad", "hypot", "add", "acos"])
def test_numbers_only_give_the_scalar_of_numpy(place, rng, name):
    numbers = [0.5, 0.25] if name in ("hypot", "add") else [0.5]
    got, wanted = getattr(gt, name)(*numbers), getattr(np, name)(*numbers)
    assert isinstance(got, np.generic) and got == wanted
    x = gt.asarray(rng.normal(size=3).astype(np.float16), device=place)
    assert (got * x).dtype == x.dtype, "a scalar is weak"
    assert (got < x).tolist() == (float(got) < x).tolist()
    assert (x / np.array(2.0)).dtype == (np.array(2.0) * x).dtype == x.dtype
    assert np.isnan(gt.log(-1.0)) and gt.where(True, 2, 3) == gt.clip(9, 0, 2) == 2
    assert gt.reciprocal(2) == 0.5 and gt.allclose(1.0, 1.0) is True


def test_names_of_torch_in_place(place):
    x, y = gt.asarray([4.0, 9.0], device=place), gt.asarray([1.0, 2.0], device=place)
    assert x.add_(y, alpha=-2) is x
    assert x.tolist() == [2.0, 5.0] == gt.subtract(x + 2 * y, y, alpha=2).tolist()
    assert x.addcmul_(y, y, value=10).tolist() == [12.0, 45.0]
    assert x.fill_(3).hypot_(y.new_tensor(4)).tolist() == [5.0, 5.0]
    assert x.lt_(y + 4).tolist() == [0.0, 1.0] and x.view_as(y[:, None]).shape == (2, 1)
    assert x.nelement() == 2 and x.is_same_size(y)
    assert gt.argsort(x * 0, kind="stable").tolist() == [0, 1]
    with pytest.raises(ValueError, match="sort: kind: got 'fast'; expected the name of a sort"):
        gt.sort(x, kind="fast")
