"""Products against float64, for random shapes, strides and types, on every device.

The bound of a result element is derived, not chosen. For inner products of K terms computed with
unit roundoff u of the accumulation, inputs exact or rounded to v first, and one final rounding w,

    |computed - exact| <= ((K + 2) u + 2 v + w) * (|a| @ |b|)       (Higham, 2002, section 3.1)

with the first-order factor (K u) / (1 - K u). docs/blas.md has the table of u, v and w. A unit
roundoff is relative and holds for normal numbers; below the smallest normal, each rounding may lose
half the smallest subnormal instead (`underflow`), whatever the size of the number.
"""

import ml_dtypes
import numpy as np
import pytest

import gputensor as gt

BFLOAT16 = np.dtype(ml_dtypes.bfloat16)
# dtype name -> unit roundoffs of accumulation and of the result.
ROUNDOFF = {
    "float64": (2.0**-53, 2.0**-53),
    "float32": (2.0**-24, 2.0**-24),
    "float16": (2.0**-24, 2.0**-11),
    "bfloat16": (2.0**-24, 2.0**-8),
    "complex64": (2.0**-22, 2.0**-23),
    "complex128": (2.0**-51, 2.0**-52),
}
TF32 = 2.0**-11
FLOATS = ("float64", "float32", "float16", "bfloat16")


def numpy_dtype(name):
    return BFLOAT16 if name == "bfloat16" else np.dtype(name)


def random_array(rng, shape, name):
    value = rng.standard_normal(shape)
    if name.startswith("complex"):
        value = value + 1j * rng.standard_normal(shape)
    return value.astype(numpy_dtype(name))


def random_tensor(rng, shape, name, where, *, fill=None):
    """A tensor with random memory order, padding and offset, sometimes with one axis reversed."""
    ndim = len(shape)
    order = list(rng.permutation(ndim)) if rng.random() < 0.5 else list(range(ndim))
    padded = [shape[axis] + int(rng.integers(0, 3)) for axis in order]
    base = random_array(rng, padded, name)
    if fill is not None:
        base[...] = fill
    tensor = gt.permute_dims(
        gt.asarray(base, device=where), tuple(int(i) for i in np.argsort(order))
    )
    array = np.transpose(base, np.argsort(order))
    index = []
    for length, have in zip(shape, tensor.shape, strict=True):
        first = int(rng.integers(0, have - length + 1))
        index.append(slice(first, first + length))
    if not index:
        return tensor, array
    tensor, array = tensor[tuple(index)], array[tuple(index)]
    if fill is None and ndim and rng.random() < 0.15:
        axis = int(rng.integers(0, ndim))
        flip = tuple(slice(None, None, -1) if i == axis else slice(None) for i in range(ndim))
        tensor, array = tensor[flip], array[flip]
    return tensor, array


def wide(array):
    return array.astype(np.complex128 if array.dtype.kind == "c" else np.float64)


def underflow(name):
    """The largest error of one rounding to a subnormal number of the type."""
    return float(ml_dtypes.finfo(numpy_dtype(name)).smallest_subnormal) / 2


def bound(a, b, name, extra=0.0):
    """The largest admissible error of each element of a @ b."""
    accumulate, result = ROUNDOFF[name]
    terms = a.shape[-1]
    size = np.matmul(np.abs(wide(a)), np.abs(wide(b)))
    return ((terms + 2) * accumulate + result + extra) * size * 1.01 + 2 * underflow(name)


def assert_within(got, exact, limit):
    got = wide(np.asarray(got))
    assert got.shape == exact.shape
    error = np.abs(got - exact)
    worst = np.max(error - limit, initial=-1.0)
    assert np.all(np.isfinite(got)), "the result has elements that were not written"
    assert worst <= 0, f"error exceeds its bound by {worst}"


def random_shapes(rng, largest=40):
    m, k, n = (int(rng.choice([1, 2, 3, 8, 16, 17, int(rng.integers(1, largest))])) for _ in "mkn")
    batch = [int(rng.choice([1, 2, 3])) for _ in range(int(rng.integers(0, 3)))]
    kind = rng.random()
    if kind < 0.1:
        return (k,), (*batch, k, n)
    if kind < 0.2:
        return (*batch, m, k), (k,)
    shape_a = [d if rng.random() < 0.7 else 1 for d in batch[int(rng.integers(0, 2)) :]]
    shape_b = [d if rng.random() < 0.7 else 1 for d in batch[int(rng.integers(0, 2)) :]]
    return (*shape_a, m, k), (*shape_b, k, n)


@pytest.mark.parametrize("name", [*FLOATS, "complex64", "complex128"])
def test_matmul_is_within_its_bound_for_any_views(where, rng, name):
    for _ in range(40):
        shape_a, shape_b = random_shapes(rng)
        a, array_a = random_tensor(rng, shape_a, name, where)
        b, array_b = random_tensor(rng, shape_b, name, where)
        got = gt.matmul(a, b)
        assert got.dtype == a.dtype
        exact = np.matmul(wide(array_a), wide(array_b))
        assert_within(got.numpy(), exact, bound(array_a, array_b, name))


@pytest.mark.parametrize("name", FLOATS)
def test_out_may_be_any_view_and_all_of_it_is_written(where, rng, name):
    for _ in range(30):
        shape_a, shape_b = random_shapes(rng)
        a, array_a = random_tensor(rng, shape_a, name, where)
        b, array_b = random_tensor(rng, shape_b, name, where)
        exact = np.matmul(wide(array_a), wide(array_b))
        out, _ = random_tensor(rng, exact.shape, name, where, fill=np.nan)
        assert gt.matmul(a, b, out=out) is out
        assert_within(out.numpy(), exact, bound(array_a, array_b, name))


def test_nothing_beside_out_is_written(where, rng):
    a, array_a = random_tensor(rng, (5, 7), "float32", where)
    b, array_b = random_tensor(rng, (7, 6), "float32", where)
    base = gt.full((9, 11), -7.0, dtype=gt.float32, device=where)
    gt.matmul(a, b, out=base[2:7, 3:9])
    got = base.numpy()
    assert_within(got[2:7, 3:9], wide(array_a) @ wide(array_b), bound(array_a, array_b, "float32"))
    got[2:7, 3:9] = -7.0
    assert np.all(got == -7.0)


@pytest.mark.parametrize("name", ["float16", "bfloat16"])
def test_half_products_can_be_given_in_float32(where, rng, name):
    a, array_a = random_tensor(rng, (33, 65), name, where)
    b, array_b = random_tensor(rng, (65, 17), name, where)
    exact = wide(array_a) @ wide(array_b)
    for got in (
        gt.matmul(a, b, out_dtype=gt.float32),
        gt.matmul(a, b, out=gt.empty((33, 17), dtype=gt.float32, device=where)),
    ):
        assert got.dtype == gt.float32
        assert_within(got.numpy(), exact, bound(array_a, array_b, "float32"))


@pytest.mark.parametrize(
    ("setting", "extra"),
    [
        ("tf32", 2 * TF32),
        ("high", 2 * TF32),
        ("medium", 2 * 2.0**-8),
        ("bf16x9", 2.0**-22),
        ("highest", 0.0),
    ],
)
def test_float32_precisions_stay_within_their_bounds(where, rng, setting, extra):
    a, array_a = random_tensor(rng, (50, 70), "float32", where)
    b, array_b = random_tensor(rng, (70, 30), "float32", where)
    got = gt.matmul(a, b, precision=setting)
    limit = bound(array_a, array_b, "float32", extra)
    assert_within(got.numpy(), wide(array_a) @ wide(array_b), limit)


@pytest.mark.parametrize("name", ["int8", "int16", "int32", "int64", "uint8"])
def test_integer_products_are_exact_and_wrap(where, rng, name):
    limits = np.iinfo(name)
    a = rng.integers(limits.min, limits.max, (9, 20), dtype=name, endpoint=True)
    b = rng.integers(limits.min, limits.max, (20, 5), dtype=name, endpoint=True)
    got = gt.matmul(gt.asarray(a, device=where), gt.asarray(b, device=where)).numpy()
    with np.errstate(over="ignore"):
        expected = a.astype(np.int64) @ b.astype(np.int64)
    np.testing.assert_array_equal(got, expected.astype(name))


def test_int8_products_can_be_given_in_int32(where, rng):
    for shape_a, shape_b in (((17, 64), (64, 16)), ((3, 5), (5, 7)), ((64, 128), (128, 32))):
        a = rng.integers(-128, 128, shape_a, dtype=np.int8)
        b = rng.integers(-128, 128, shape_b, dtype=np.int8)
        got = gt.matmul(
            gt.asarray(a, device=where), gt.asarray(b, device=where), out_dtype=gt.int32
        )
        assert got.dtype == gt.int32
        np.testing.assert_array_equal(got.numpy(), a.astype(np.int32) @ b.astype(np.int32))


@pytest.mark.parametrize("shape", [((0, 3), (3, 2)), ((2, 3), (3, 0)), ((0, 2, 3), (3, 2))])
def test_an_empty_result_is_returned_at_once(where, shape):
    a, b = (gt.ones(s, device=where) for s in shape)
    assert gt.matmul(a, b).shape == np.matmul(np.ones(shape[0]), np.ones(shape[1])).shape


def test_a_sum_of_no_terms_is_zero(where):
    a = gt.empty((3, 0), device=where)
    b = gt.empty((0, 4), device=where)
    out = gt.full((3, 4), np.nan, device=where)
    gt.matmul(a, b, out=out)
    np.testing.assert_array_equal(out.numpy(), np.zeros((3, 4)))
    c = gt.full((3, 4), 2.0, device=where)
    np.testing.assert_array_equal(gt.addmm(c, a, b, beta=3).numpy(), np.full((3, 4), 6.0))


def test_out_that_shares_memory_with_an_operand_is_refused(where):
    base = gt.ones((8, 8), device=where)
    with pytest.raises(ValueError, match="out: got memory that it shares with the first operand"):
        gt.matmul(base[:4, :4], gt.ones((4, 4), device=where), out=base[2:6, 2:6])
    with pytest.raises(ValueError, match="out: got memory that it shares with the second operand"):
        gt.matmul(gt.ones((4, 4), device=where), base[:4, :4], out=base[:4, :4])


def test_out_interleaved_with_an_operand_is_allowed(where, rng):
    base = gt.asarray(rng.standard_normal((4, 8)).astype(np.float32), device=where)
    a, out = base[:, :4], base[:, 4:]
    array = a.numpy()
    gt.matmul(a, gt.ones((4, 4), device=where), out=out)
    np.testing.assert_allclose(out.numpy(), array @ np.ones((4, 4)), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(
    ("a", "b", "text"),
    [
        ((2, 3), (4, 5), "inner dimensions"),
        ((2, 2, 3), (3, 3, 4), "batch dimensions"),
        ((), (3,), "one dimension or more"),
    ],
)
def test_shapes_that_do_not_fit_are_named(where, a, b, text):
    with pytest.raises(ValueError, match=text):
        gt.matmul(gt.ones(a, device=where), gt.ones(b, device=where))


def test_wrong_arguments_are_refused(where):
    a = gt.ones((2, 2), device=where)
    with pytest.raises(
        TypeError,
        match=r"argument: got ndarray; expected a Tensor \(asarray makes one of an array or",
    ):
        gt.matmul(a, np.ones((2, 2)))
    with pytest.raises(TypeError, match="dtype: got bool, which has no product"):
        gt.matmul(a == a, a == a, out_dtype="float32")
    with pytest.raises(
        ValueError, match=r"out: got shape \(3, 2\); expected that of \(2, 2\) @ \(2, 2\)"
    ):
        gt.matmul(a, a, out=gt.ones((3, 2), device=where))
    with pytest.raises(TypeError, match=r"dtypes \(a, b, out\): got float32, float32, float16"):
        gt.matmul(a, a, out=gt.ones((2, 2), dtype=gt.float16, device=where))
    with pytest.raises(
        ValueError, match=r"float32: got 'exactest'; expected one of \['bf16', 'bf16x9', 'high'"
    ):
        gt.matmul(a, a, precision="exactest")
    with pytest.raises(ValueError, match="more than one index"):
        gt.matmul(a, a, out=gt.broadcast_to(gt.ones((1, 2), device=where), (2, 2)))


def test_operands_of_different_types_are_promoted(where, rng):
    a = gt.asarray(rng.standard_normal((3, 4)).astype(np.float32), device=where)
    b = gt.asarray(rng.standard_normal((4, 5)), device=where)
    got = gt.matmul(a, b)
    assert got.dtype == gt.float64
    wide, other = a.numpy().astype(np.float64), b.numpy()
    bound = 2 * 4 * 2**-53 * (np.abs(wide) @ np.abs(other))  # four terms, added in any two orders
    assert (np.abs(got.numpy() - wide @ other) <= bound).all()


def test_a_batch_longer_than_a_grid_is_exact(where, rng):
    a = rng.integers(-3, 4, (65537, 2, 3)).astype(np.float32)
    b = rng.integers(-3, 4, (65537, 3, 2)).astype(np.float32)
    got = gt.bmm(gt.asarray(a, device=where), gt.asarray(b, device=where))
    np.testing.assert_array_equal(got.numpy(), a @ b)


def test_operators_multiply(where, rng):
    a = gt.asarray(rng.integers(-5, 6, (3, 4)).astype(np.float64), device=where)
    b = gt.asarray(rng.integers(-5, 6, (4, 2)).astype(np.float64), device=where)
    np.testing.assert_array_equal((a @ b).numpy(), a.numpy() @ b.numpy())
