"""alpha, beta and scale: exact for integers, of the product's kind, no effect on empty sums."""

import numpy as np
import pytest

import gputensor as gt

INTEGERS = ("int8", "uint8", "int16", "int32", "int64", "uint64")
#: Some are not exact in a double, and some fit no integer type.
FACTORS = (1, 0, -1, 3, 255, 2**31, 2**53 + 1, -(2**53) - 3, 2**63 - 1, 2**64 + 5, -(10**30) - 7)


def wrapped(values, dtype):
    """Python integers modulo 2**bits, as NumPy's casts wrap them."""
    return (values & (2**64 - 1)).astype(np.uint64).astype(dtype)


def whole(rng, shape, name):
    limits = np.iinfo(name)
    return rng.integers(limits.min, limits.max, shape, dtype=name, endpoint=True)


def check_integer_factors(rng, where, name, result):
    """addmm and a scaled product with factors of any size, against Python's integers."""
    dtype = np.dtype(result)
    m, k, n = (int(x) for x in rng.integers(1, 20, 3))
    array_a, array_b = whole(rng, (m, k), name), whole(rng, (k, n), name)
    array_c = whole(rng, (m, n), result)
    a, b, c = (gt.asarray(x, device=where) for x in (array_a, array_b, array_c))
    product = array_a.astype(object) @ array_b.astype(object)
    addend = array_c.astype(object)
    none = [gt.empty(shape, dtype=name, device=where) for shape in ((m, 0), (0, n))]
    for alpha in FACTORS:
        beta = FACTORS[int(rng.integers(0, len(FACTORS)))]
        got = gt.addmm(c, a, b, alpha=alpha, beta=beta, out_dtype=result)
        expected = wrapped(alpha * product + beta * addend, dtype)
        np.testing.assert_array_equal(got.numpy(), expected, err_msg=f"{alpha} {beta}")
        got = gt.matmul(a, b, scale=alpha, out_dtype=result)
        np.testing.assert_array_equal(got.numpy(), wrapped(alpha * product, dtype))
        got = gt.addmm(c, *none, alpha=alpha, beta=beta, out_dtype=result)
        np.testing.assert_array_equal(got.numpy(), wrapped(beta * addend, dtype))


@pytest.mark.parametrize("name", INTEGERS)
def test_integer_factors_of_any_size_are_exact(where, rng, name):
    for _ in range(3):
        check_integer_factors(rng, where, name, name)


def test_integer_factors_of_int8_products_in_int32_are_exact(where, rng):
    for _ in range(3):
        check_integer_factors(rng, where, "int8", "int32")


def check_integer_vectors(where):
    v = gt.asarray(np.array([3, 5], np.int64), device=where)
    for factor in FACTORS:
        got = gt.matmul(v, v, scale=factor).numpy()
        np.testing.assert_array_equal(got, wrapped(np.array([34 * factor], object), np.int64)[0])


def test_integer_factors_of_vectors_are_exact(where):
    check_integer_vectors(where)


@pytest.mark.parametrize("factor", [0.5, 2.0, float("nan"), 1j, np.float32(2), np.complex64(1)])
@pytest.mark.parametrize("name", INTEGERS)
def test_a_product_of_integers_takes_integers_only(where, name, factor):
    a = gt.ones((2, 2), dtype=name, device=where)
    for which in ("alpha", "beta"):
        with pytest.raises(TypeError, match=f"addmm: {which}: got .*; expected an integer"):
            gt.addmm(a, a, a, **{which: factor})
    with pytest.raises(
        TypeError, match="matmul: scale: got .*; expected an integer for a product of integers"
    ):
        gt.matmul(a, a, scale=factor)
    np.testing.assert_array_equal(gt.addmm(a, a, a, alpha=np.int8(2), beta=True).numpy(), 5)


@pytest.mark.parametrize("name", ["float64", "float32", "float16", "bfloat16"])
def test_a_product_of_real_numbers_takes_real_numbers_only(where, name):
    a = gt.ones((2, 2), dtype=name, device=where)
    for factor in (1j, complex(1), np.complex64(2)):
        with pytest.raises(
            TypeError, match="baddbmm: alpha: got .*; expected a real number for a product of real"
        ):
            gt.baddbmm(a, a[None], a[None], alpha=factor)
        with pytest.raises(
            TypeError, match="linear: scale: got .*; expected a real number for a product of real"
        ):
            gt.linear(a, a, scale=factor)
    wide = a.astype("complex128")
    np.testing.assert_array_equal(gt.addmm(wide, a, wide, alpha=1j, beta=0).numpy(), 2j)


def check_no_terms(where, name, factor):
    """Sums of no terms with a factor as number and as tensor, alone and with the other steps."""
    left, right = (gt.empty(shape, dtype=name, device=where) for shape in ((3, 0), (0, 4)))
    one = gt.full((3, 4), 3.0, dtype=name, device=where)
    np.testing.assert_array_equal(gt.addmm(one, left, right, alpha=factor).numpy(), one.numpy())
    np.testing.assert_array_equal(gt.matmul(left, right, scale=factor).numpy(), 0 * one.numpy())
    if name != "complex64":
        bias = gt.full((4,), 2.0, dtype=name, device=where)
        for shape in ((), (4,)):
            scale = gt.full(shape, factor, dtype="float32", device=where)
            for activation, expected in ((None, 5), ("relu", 5)):
                got = gt.matmul(
                    left, right, scale=scale, bias=bias, activation=activation, residual=one
                )
                np.testing.assert_array_equal(got.numpy(), (expected + 0 * one).numpy())
            got = gt.matmul(left, right, scale=scale)
            np.testing.assert_array_equal(got.numpy(), 0 * one.numpy())


@pytest.mark.parametrize("name", ["float64", "float32", "float16", "bfloat16", "complex64"])
@pytest.mark.parametrize("factor", [float("inf"), float("nan"), 2.0])
def test_factors_do_not_change_a_sum_of_no_terms(where, name, factor):
    check_no_terms(where, name, factor)
