"""Element-wise functions of special values agree with NumPy: every dtype, every device.

The documented exceptions are those of special_values.py, and negative powers of integer tensors.
"""

import itertools
import math

import numpy as np
import pytest

import gputensor as gt
from gputensor._kernels.operations import BY_HAND, ELEMENTWISE
from tests.support.special_values import check, sampled, special_values
from tests.support.tensor_arrays import BOOL, COMPLEX, FLOATS, INTEGERS

REALS = [*INTEGERS, *FLOATS]
NUMBERS = [*REALS, *COMPLEX]
ANY = [BOOL, *NUMBERS]
FLOATING = [*FLOATS, *COMPLEX]
WHOLE = [BOOL, *INTEGERS]

# name -> (arity, dtypes); functions that need floats get integers as well, which become float32.
FUNCTIONS = {
    **dict.fromkeys(["negative", "square", "positive", "conj"], (1, NUMBERS)),
    **dict.fromkeys(["abs", "isnan", "isinf", "isfinite"], (1, ANY)),
    **dict.fromkeys(["sign", "signbit"], (1, REALS)),
    **dict.fromkeys(["floor", "ceil", "trunc", "round"], (1, REALS)),
    **dict.fromkeys(["exp", "log", "sqrt", "sin", "cos", "tan", "sinh", "cosh", "tanh"], (1, ANY)),
    **dict.fromkeys(["reciprocal"], (1, FLOATING)),
    **dict.fromkeys(["expm1", "log1p"], (1, REALS)),
    **dict.fromkeys(["log2", "log10", "asin", "acos", "atan", "asinh", "acosh", "atanh"], (1, ANY)),
    **dict.fromkeys(["add", "multiply", "equal", "not_equal"], (2, ANY)),
    **dict.fromkeys(["subtract"], (2, NUMBERS)),
    **dict.fromkeys(["divide"], (2, FLOATING)),
    **dict.fromkeys(["maximum", "minimum", "less", "less_equal", "greater"], (2, [BOOL, *REALS])),
    **dict.fromkeys(["floor_divide", "remainder", "copysign", "hypot", "logaddexp"], (2, REALS)),
    **dict.fromkeys(["atan2"], (2, FLOATS)),
    **dict.fromkeys(["pow"], (2, NUMBERS)),
    **dict.fromkeys(["logical_and", "logical_or", "logical_xor"], (2, ANY)),
    **dict.fromkeys(["bitwise_and", "bitwise_or", "bitwise_xor"], (2, WHOLE)),
}
# The others of the table of operations that NumPy has under the same name, on real floats.
FUNCTIONS |= {
    row.public_name: (row.arity, FLOATS)
    for row in ELEMENTWISE
    if row.public_name not in FUNCTIONS and hasattr(np, row.public_name) and "float" in row.kinds
    if row.example != BY_HAND and row.name != "i0"  # NumPy's is NaN at infinities
}
OF_FLOATS = {
    *("exp", "log", "sqrt", "sin", "cos", "tan", "sinh", "cosh", "tanh", "expm1", "log1p"),
    *("log2", "log10", "asin", "acos", "atan", "asinh", "acosh", "atanh", "copysign", "hypot"),
    *("logaddexp", "isnan", "isinf", "isfinite"),
}
# The errors allowed to a device's own functions.
TOLERANCE = {"float16": 2**-9, "bfloat16": 2**-6, "float64": 1e-12, "complex128": 1e-11}
LOOSE = {"pow": 100, "logaddexp": 8, "tan": 4}
# Functions whose zeros have a sign on every device.
SIGNED = {"negative", "abs", "sqrt", "floor", "ceil", "trunc", "round", "copysign", "divide"}


def reference(name, inputs):
    """NumPy's result, 16-bit floats by way of float32, integers as the library promotes them."""
    dtype = inputs[0].dtype
    if name in OF_FLOATS and dtype.kind in "iub":
        inputs = [one.astype(np.float32) for one in inputs]
    narrow = dtype if dtype.itemsize == 2 and dtype.kind in "fV" else None
    if narrow is not None:
        inputs = [one.astype(np.float32) for one in inputs]
    with np.errstate(all="ignore"):
        result = getattr(np, {"pow": "power"}.get(name, name))(*inputs)
        # NumPy gives float16 for small integers; a narrow result is rounded once.
        return result.astype(narrow) if narrow is not None and result.dtype != bool else result


def special_inputs(rng, name, dtype, arity, size):
    inputs = [sampled(rng, name, dtype, size) for _ in range(arity)]
    if name == "pow" and dtype.kind in "iu":
        inputs[1] = rng.integers(0, 70, size).astype(dtype)
    if arity == 1 and name not in ("square", "reciprocal"):
        inputs = [np.concatenate([inputs[0], special_values(dtype)])]
    return inputs


def special_program(rng, place, name, dtype, size):
    """One function of one dtype on random special values."""
    arity = FUNCTIONS[name][0]
    inputs = special_inputs(rng, name, dtype, arity, size)
    expected = reference(name, inputs)
    actual = getattr(gt, name)(*(gt.asarray(one, device=place) for one in inputs))
    assert actual.dtype == expected.dtype, f"{name} {dtype}"
    tolerance = TOLERANCE.get(dtype.name, 4e-6) * LOOSE.get(name, 1)
    is_signed = name in SIGNED and dtype.kind != "c"
    got = actual.numpy()
    if name == "logaddexp":  # its two terms cancel where the result is near 0
        is_small = np.abs(expected.astype(np.float64)) < 1
        got, expected = (
            np.where(is_small, one + one.dtype.type(4), one) for one in (got, expected)
        )
    check(f"{name} {dtype}", inputs, got, expected, tolerance, is_signed)
    return expected.size


@pytest.mark.parametrize("name", FUNCTIONS)
def test_function_of_special_values_equals_numpy(where, rng, name):
    for dtype in FUNCTIONS[name][1]:
        special_program(rng, where, name, dtype, 200)


@pytest.mark.parametrize("name", ["isnan", "isinf", "isfinite", "signbit", "negative", "abs"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_functions_write_results_with_gaps(place, rng, name, dtype):
    size = int(rng.integers(33_000, 40_000))  # more than the host device's own loops take
    values = rng.choice(np.array([1, -2, 0, np.nan, np.inf, -np.inf], dtype), 4 * size)
    x = gt.asarray(values, device=place)
    for step, gap in itertools.product((1, 2, -3, 4), (1, 2, -1, -3, 4)):
        expected = getattr(np, name)(values[::step][:size].copy())
        poison = rng.integers(0, 2, 4 * size).astype(expected.dtype)
        whole = gt.asarray(poison, device=place)
        getattr(gt, name)(x[::step][:size], out=whole[::gap][:size])
        poison[::gap][:size] = expected
        np.testing.assert_array_equal(whole.numpy(), poison, f"{step} {gap}")


@pytest.mark.parametrize("dtype", FLOATS, ids=lambda dtype: dtype.name)
def test_sign_bit_of_nan_is_read_and_copied(place, rng, dtype):
    bits = {2: np.int16, 4: np.int32, 8: np.int64}[dtype.itemsize]
    signs = rng.integers(0, 2, 40).astype(bool)
    # NaN of random payload and sign, by its bits: arithmetic need not keep them.
    nan = np.full(40, np.nan).astype(dtype).view(bits) | rng.integers(0, 8, 40).astype(bits)
    nan = np.where(signs, nan | np.iinfo(bits).min, nan & np.iinfo(bits).max).view(dtype)
    x = gt.asarray(nan, device=place)
    assert gt.signbit(x).numpy().tolist() == signs.tolist()
    for one in (gt.ones(40, dtype=dtype, device=place), -gt.ones(40, dtype=dtype, device=place)):
        for sign in (x, x[::-1][::-1]):
            assert (gt.copysign(one, sign) < 0).numpy().tolist() == signs.tolist()
    assert (gt.copysign(1.0, x) < 0).numpy().tolist() == signs.tolist()
    wide = gt.copysign(gt.ones(40, dtype="float64", device=place), x)
    assert (wide < 0).numpy().tolist() == signs.tolist()
    for number in (math.nan, -math.nan, -0.0, 0.0, -2):
        wanted = math.copysign(1.0, number) < 0
        result = gt.copysign(gt.ones(2, dtype=dtype, device=place), number)
        assert result.dtype == dtype
        assert (result < 0).numpy().tolist() == [wanted] * 2


def test_sign_bit_of_other_dtypes_is_refused(place):
    for dtype in ("complex64", "complex128", "float8_e4m3"):
        x = gt.ones(2, dtype="float32", device=place).astype(dtype)
        with pytest.raises(TypeError, match=r"signbit: dtype: got .*; expected a real dtype"):
            gt.signbit(x)


@pytest.mark.parametrize("dtype", [one for one in INTEGERS if one.kind == "i"], ids=str)
def test_integers_to_a_negative_number_are_refused_as_in_numpy(place, dtype):
    values = np.array([1, 2, -3], dtype)
    x = gt.asarray(values, device=place)
    for number in (-1, np.int64(-3)):
        with pytest.raises(ValueError, match="Integers to negative integer powers"):
            values**number
        for call in (lambda n: x**n, lambda n: gt.pow(x, n), lambda n: x.__ipow__(n)):
            with pytest.raises(ValueError, match=f"pow: exponent: got {number}; expected 0"):
                call(number)
    assert x.tolist() == [1, 2, -3]
    assert (x**2).tolist() == [1, 4, 9]
    assert (x**-1.0).dtype == gt.float32
    assert (2 ** gt.asarray([3, 0], device=place)).tolist() == [8, 1]


def test_negative_powers_in_a_tensor_are_whole_inverses_on_every_device(place):
    bases = gt.asarray([[1], [-1], [2], [-3], [0]], device=place)
    powers = gt.asarray([-1, -2, -7, 3], device=place)
    assert (bases**powers).tolist() == [
        [1, 1, 1, 1],
        [-1, 1, -1, -1],
        [0, 0, 0, 8],
        [0, 0, 0, -27],
        [0, 0, 0, 0],
    ]


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_half_powers_of_minus_zero_and_minus_infinity_are_positive(place, dtype):
    values = [-0.0, -math.inf, 0.0, math.inf, 2.25]
    x = gt.asarray(values, dtype=dtype, device=place)
    half = gt.asarray(0.5, dtype=dtype, device=place)
    powers = gt.asarray([0.5, 0.5, 0.5, 3, 0.5], dtype=dtype, device=place)
    expected = [str(math.pow(value, 0.5)) for value in values]
    for result in (x**0.5, gt.pow(x, half), x**powers, gt.stack([x[i] ** half for i in range(5)])):
        assert [str(value) for value in result.tolist()] == expected
    odd = gt.asarray([3.0, 0.5], dtype=dtype, device=place)
    assert [str(value) for value in (x[0] ** odd).tolist()] == ["-0.0", "0.0"]


@pytest.mark.parametrize("dtype", COMPLEX, ids=str)
def test_sign_of_infinite_complex_numbers_is_their_direction(place, dtype):
    inf, nan = np.inf, np.nan
    values = [complex(inf, 3), complex(2, -inf), complex(inf, inf), complex(nan, inf), -0j, 3 - 4j]
    expected = [1, -1j, complex(nan, nan), complex(nan, nan), 0, 0.6 - 0.8j]
    values, expected = np.array(values, dtype), np.array(expected, dtype)
    check("sign", [values], gt.sign(gt.asarray(values, device=place)).numpy(), expected, 1e-6)


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
def test_parts_of_complex_numbers_are_rounded_and_replaced_apart(place, dtype):
    values = [0.0, -0.0, 1.26, -2.5, np.inf, -np.inf, np.nan]
    a = np.array([complex(one, other) for one in values for other in values], dtype)
    x = gt.asarray(a, device=place)
    kept = {"nan": 7.0, "posinf": np.inf, "neginf": -1.0}
    for got, want in (
        (gt.round(x), np.round(a)),
        (gt.round(x, 1), np.round(a, 1)),
        (gt.round(x[::-2], out=gt.zeros(25, dtype, device=place)), np.round(a[::-2])),
        (gt.nan_to_num(x, **kept), np.nan_to_num(a, **kept)),
        (gt.nan_to_num(gt.copy(x), copy=False), np.nan_to_num(a)),
    ):
        got = got.numpy()
        for part in ("real", "imag"):
            mine, theirs = getattr(got, part), getattr(want, part)
            np.testing.assert_array_equal(mine, theirs)
            np.testing.assert_array_equal(np.signbit(mine), np.signbit(theirs))
