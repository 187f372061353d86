"""The operations around matmul against NumPy, on every device."""

import math

import numpy as np
import pytest

import gputensor as gt
from gputensor.tensor.products.einsum import einsum, tensordot
from tests.conformance.products.test_matmul import (
    ROUNDOFF,
    assert_within,
    bound,
    random_array,
    random_tensor,
    underflow,
    wide,
)

HALVES = ("float32", "float16", "bfloat16")


def gelu(x):
    return 0.5 * x * (1 + np.vectorize(math.erf)(x / math.sqrt(2)))


def gelu_tanh(x):
    return 0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))


ACTIVATIONS = {
    None: lambda x: x,
    "relu": lambda x: np.maximum(x, 0),
    "gelu": gelu,
    "gelu_tanh": gelu_tanh,
    "silu": lambda x: x / (1 + np.exp(-x)),
}
# The largest slope of each activation, with a margin in tanh forms for approximations of tanh.
SLOPE = {None: 1, "relu": 1, "gelu": 1.13, "gelu_tanh": 1.13, "silu": 1.1}


def sum_bound(a, b, addend, alpha, beta, name, activation=None):
    """The bound of act(alpha a b + beta c), with a rounding for each step that may be separate."""
    _, result = ROUNDOFF[name]
    inner = abs(alpha) * bound(a, b, name)
    size = abs(alpha) * np.matmul(np.abs(wide(a)), np.abs(wide(b))) + abs(beta) * np.abs(addend)
    limit = SLOPE[activation] * (inner + 4 * (result * size + underflow(name)))
    return limit + (2.0**-10 * size if activation in ("gelu", "gelu_tanh", "silu") else 0)


@pytest.mark.parametrize("activation", list(ACTIVATIONS))
@pytest.mark.parametrize("name", HALVES)
def test_linear_is_one_call(where, rng, name, activation):  # noqa: F811
    for lead in ((), (7,), (2, 5)):
        x, array_x = random_tensor(rng, (*lead, 24), name, where)
        w, array_w = random_tensor(rng, (16, 24), name, where)
        bias = random_array(rng, 16, name)
        offset = wide(bias)
        got = gt.linear(x, w, gt.asarray(bias, device=where), activation=activation)
        exact = ACTIVATIONS[activation](wide(array_x) @ wide(array_w).T + offset)
        limit = sum_bound(array_x, array_w.T, offset, 1, 1, name, activation)
        assert_within(got.numpy(), exact, limit)


def test_linear_without_bias(where, rng):  # noqa: F811
    x, array_x = random_tensor(rng, (5, 24), "float32", where)
    w, array_w = random_tensor(rng, (16, 24), "float32", where)
    exact = wide(array_x) @ wide(array_w).T
    assert_within(gt.linear(x, w).numpy(), exact, bound(array_x, array_w.T, "float32"))


@pytest.mark.parametrize("name", ["float64", *HALVES, "complex64"])
@pytest.mark.parametrize("shape", [(9, 11), (1, 11), (9, 1), (11,), ()])
def test_addmm_adds_any_input_that_broadcasts(where, rng, name, shape):  # noqa: F811
    for alpha, beta in ((1, 1), (0.5, -2.0), (2, 0)):
        a, array_a = random_tensor(rng, (9, 13), name, where)
        b, array_b = random_tensor(rng, (13, 11), name, where)
        c, array_c = random_tensor(rng, shape, name, where)
        addend = np.broadcast_to(wide(array_c), (9, 11))
        got = gt.addmm(c, a, b, alpha=alpha, beta=beta)
        exact = alpha * (wide(array_a) @ wide(array_b)) + beta * addend
        assert_within(got.numpy(), exact, sum_bound(array_a, array_b, addend, alpha, beta, name))


def test_addmm_into_its_input(where, rng):  # noqa: F811
    a, array_a = random_tensor(rng, (9, 13), "float32", where)
    b, array_b = random_tensor(rng, (13, 11), "float32", where)
    c, array_c = random_tensor(rng, (9, 11), "float32", where, fill=3.0)
    exact = wide(array_a) @ wide(array_b) + 0.5 * 3.0
    assert gt.addmm(c, a, b, beta=0.5, out=c) is c
    limit = sum_bound(array_a, array_b, np.full((9, 11), 3.0), 1, 0.5, "float32")
    assert_within(c.numpy(), exact, limit)


def test_beta_zero_ignores_the_input(where, rng):  # noqa: F811
    a, array_a = random_tensor(rng, (9, 13), "float32", where)
    b, array_b = random_tensor(rng, (13, 11), "float32", where)
    poison = gt.full((9, 11), np.nan, device=where)
    exact = wide(array_a) @ wide(array_b)
    limit = bound(array_a, array_b, "float32")
    assert_within(gt.addmm(poison, a, b, beta=0).numpy(), exact, limit)
    assert_within(gt.addmm(poison, a, b, beta=0, out=poison).numpy(), exact, limit)


@pytest.mark.parametrize("name", HALVES)
def test_baddbmm(where, rng, name):  # noqa: F811
    a, array_a = random_tensor(rng, (4, 5, 6), name, where)
    b, array_b = random_tensor(rng, (4, 6, 7), name, where)
    for shape in ((4, 5, 7), (1, 5, 7), (5, 1), (7,)):
        c, array_c = random_tensor(rng, shape, name, where)
        addend = np.broadcast_to(wide(array_c), (4, 5, 7))
        got = gt.baddbmm(c, a, b, beta=0.5, alpha=2)
        exact = 2 * (wide(array_a) @ wide(array_b)) + 0.5 * addend
        assert_within(got.numpy(), exact, sum_bound(array_a, array_b, addend, 2, 0.5, name))


@pytest.mark.parametrize("name", ["float32", "complex64", "complex128"])
def test_vecdot_conjugates_its_first_operand(where, rng, name):  # noqa: F811
    for shape_a, shape_b, axis in (
        ((5,), (5,), -1),
        ((4, 5), (5,), -1),
        ((4, 1, 5), (3, 5), -1),
        ((5, 4), (5, 1), -2),
        ((5, 4), (5, 4), 0),
    ):
        a, array_a = random_tensor(rng, shape_a, name, where)
        b, array_b = random_tensor(rng, shape_b, name, where)
        from_end = axis if axis < 0 else axis - max(a.ndim, b.ndim)
        left = np.moveaxis(wide(array_a), from_end, -1)
        right = np.moveaxis(wide(array_b), from_end, -1)
        exact = (left.conj() * right).sum(-1)
        size = (np.abs(left) * np.abs(right)).sum(-1)
        accumulate, result = ROUNDOFF[name]
        got = gt.vecdot(a, b, axis=axis).numpy()
        assert_within(got, exact, (7 * accumulate + result) * size)


def test_the_axis_of_vecdot_is_checked_like_other_axes(where):
    a = gt.ones((2, 3), device=where)
    for axis in (2, -3, 2**31, -(2**40), 2**70):
        with pytest.raises(IndexError, match=f"vecdot: axis: got {axis}; expected"):
            gt.vecdot(a, a, axis=axis)
    for axis in (-1.0, 0.5, None, "0"):
        with pytest.raises(TypeError, match="vecdot: axis: got .*; expected an int"):
            gt.vecdot(a, a, axis=axis)
    with pytest.raises(ValueError, match=r"axis: got -2; expected an axis of \(2, 3\) and \(3,\)"):
        gt.vecdot(a, a[0], axis=-2)


def test_products_by_their_pytorch_names(where, rng):  # noqa: F811
    a = gt.asarray(rng.integers(-4, 5, (3, 4)).astype(np.float32), device=where)
    b = gt.asarray(rng.integers(-4, 5, (4, 2)).astype(np.float32), device=where)
    v = gt.asarray(rng.integers(-4, 5, 4).astype(np.float32), device=where)
    np.testing.assert_array_equal(gt.mm(a, b).numpy(), a.numpy() @ b.numpy())
    np.testing.assert_array_equal(gt.mv(a, v).numpy(), a.numpy() @ v.numpy())
    np.testing.assert_array_equal(gt.dot(v, v).numpy(), v.numpy() @ v.numpy())
    stack = gt.asarray(rng.integers(-4, 5, (2, 4, 3)).astype(np.float32), device=where)
    for left, right in [(v, b), (a, v), (a, b), (a, stack), (stack, a), (v, v[0]), (v[0], b)]:
        expected = np.dot(left.numpy(), right.numpy())
        np.testing.assert_array_equal(left.dot(right).numpy(), expected)
        np.testing.assert_array_equal(np.dot(left, right).numpy(), expected)
    np.testing.assert_array_equal(a.dot(2).numpy(), 2 * a.numpy())
    out = gt.empty((3, 2), device=where)
    assert a.dot(b, out=out) is out
    np.testing.assert_array_equal(out.numpy(), a.numpy() @ b.numpy())
    with pytest.raises(TypeError, match="dot: out: .*; expected none where x2 has more than two"):
        gt.dot(a, stack, out=out)
    with pytest.raises(ValueError, match="got shapes|inner dimensions"):
        a.dot(a)
    with pytest.raises(ValueError, match="mm: input: got 1 dimensions; expected 2"):
        gt.mm(v, b)
    with pytest.raises(ValueError, match="bmm: input: got 2 dimensions; expected 3"):
        gt.bmm(a, b)
    with pytest.raises(
        ValueError, match=r"activation: got 'tanh'; expected None or one of \['gelu', 'gelu_tanh'"
    ):
        gt.linear(v, a, activation="tanh")
    with pytest.raises(ValueError, match="which do not broadcast"):
        gt.addmm(gt.ones((3, 3), device=where), a, b)
    with pytest.raises(TypeError, match="alpha: got str; expected a number"):
        gt.addmm(v[:2], a, b, alpha="2")


def test_tensordot(where, rng):  # noqa: F811
    x = rng.integers(-4, 5, (2, 3, 4)).astype(np.float64)
    y = rng.integers(-4, 5, (4, 3, 5)).astype(np.float64)
    a, b = gt.asarray(x, device=where), gt.asarray(y, device=where)
    for axes in (0, 1, ((1, 2), (1, 0)), ((-1,), (0,)), ((), ()), (-1, 0), [1, 1]):
        got = tensordot(a, b, axes=axes).numpy()
        np.testing.assert_array_equal(got, np.tensordot(x, y, axes))
    with pytest.raises(
        ValueError, match=r"axes: got axis 1 of \(2, 3, 4\) and axis 0 of \(4, 3, 5\)"
    ):
        tensordot(a, b, axes=2)
    with pytest.raises(ValueError, match=r"axes: got \[0, 0\]; expected each axis once"):
        tensordot(a, b, axes=((0, 0), (1, 1)))
    got = tensordot(a, b, axes=np.int64(1)).numpy()
    np.testing.assert_array_equal(got, np.tensordot(x, y, 1))
    for axes in (
        1.5,
        np.array(1.5),
        "ab",
        None,
        (1, 1.5),
        (1, 1, 1),
        ((0,), (0,), (0,)),
        ((0.5,), (0,)),
    ):
        with pytest.raises(TypeError, match="pair of sequences of ints"):
            tensordot(a, b, axes=axes)


LENGTHS = dict(zip("abcdefgh", (2, 3, 4, 5, 2, 3, 1, 4), strict=True))


@pytest.mark.parametrize("optimize", [True, False])
def test_einsum_agrees_with_numpy_on_random_expressions(where, rng, optimize):  # noqa: F811
    for _ in range(60):
        count = int(rng.integers(1, 4))
        terms = ["".join(rng.choice(list(LENGTHS), int(rng.integers(1, 5)))) for _ in range(count)]
        letters = sorted(set("".join(terms)))
        kept = [x for x in letters if rng.random() < 0.5]
        rng.shuffle(kept)
        subscripts = ",".join(terms) + "->" + "".join(kept)
        arrays = []
        for term in terms:
            shape = [LENGTHS[x] if rng.random() < 0.9 or term.count(x) > 1 else 1 for x in term]
            arrays.append(rng.integers(-3, 4, shape).astype(np.float64))
        expected = np.einsum(subscripts, *arrays)
        tensors = [gt.asarray(x, device=where) for x in arrays]
        got = einsum(subscripts, *tensors, optimize=optimize).numpy()
        np.testing.assert_array_equal(got, expected, err_msg=subscripts)


@pytest.mark.parametrize(
    ("subscripts", "shape"),
    [("ii->i", (10, 1)), ("ii", (1, 10)), ("iij->ij", (4, 1, 2)), ("ijij->", (3, 1, 3, 2))],
)
def test_a_diagonal_needs_equal_lengths(where, subscripts, shape):  # noqa: F811
    # A length of 1 broadcasts against other operands only; the diagonal would leave the memory.
    view = gt.reshape(gt.ones(100, device=where)[: math.prod(shape)], shape)
    with pytest.raises(ValueError, match="operands: got .*; expected equal lengths"):
        einsum(subscripts, view)
    with pytest.raises(ValueError, match="operands: got .*; expected equal lengths"):
        einsum(subscripts.split("->")[0] + ",i->", view, gt.ones(shape[0], device=where))


@pytest.mark.parametrize("dtype", ["bool", "int8", "float16", "float32"])
def test_einsum_of_two_dtypes_sums_in_the_wider(where, rng, dtype):  # noqa: F811
    narrow = rng.integers(0, 100, (300, 4)).astype(dtype)
    wide = rng.integers(-9, 9, (4, 3)) + 2.0**-30
    for subscripts in ("ij,jk->", "ij,jk->k", "ij,jk->jk", "ij,jk->ik"):
        got = einsum(subscripts, *(gt.asarray(one, device=where) for one in (narrow, wide)))
        expected = np.einsum(subscripts, narrow.astype("float64"), wide)
        np.testing.assert_allclose(got.numpy(), expected, 1e-12, 1e-9)


def test_einsum_without_an_arrow_and_with_an_ellipsis(where, rng):  # noqa: F811
    x = rng.integers(-3, 4, (2, 3, 4)).astype(np.float64)
    y = rng.integers(-3, 4, (3, 5, 4)).astype(np.float64)
    for subscripts in ("...ij,...kj->...ik", "...ij,...kj"):
        got = einsum(subscripts, gt.asarray(x[:, None], device=where), gt.asarray(y, device=where))
        np.testing.assert_array_equal(got.numpy(), np.einsum(subscripts, x[:, None], y))
    np.testing.assert_array_equal(einsum("ba", gt.asarray(x[0], device=where)).numpy(), x[0].T)


@pytest.mark.parametrize(
    ("subscripts", "text"),
    [
        ("ij,jk", "subscripts: got 2 terms in 'ij,jk'"),
        ("ijk->i", "subscripts: got the term 'ijk'"),
        ("ij->ii", "subscripts: got 'ij->ii'; expected each index of the result once"),
        ("ij->k", "subscripts: got 'ij->k'; expected an operand with k"),
        ("i1->i", "subscripts: got 'i1' in 'i1->i'"),
    ],
)
def test_malformed_expressions_are_named(where, subscripts, text):  # noqa: F811
    with pytest.raises(ValueError, match=text):
        einsum(subscripts, gt.ones((2, 2), device=where))


def test_arguments_of_other_types_are_named(where):  # noqa: F811
    a = gt.ones((2, 2), device=where)
    with pytest.raises(TypeError, match="subscripts: got int; expected a str"):
        einsum(3, a)
    for optimize in (3, None):
        with pytest.raises(TypeError, match="optimize: got .*; expected a bool or str"):
            einsum("ij,jk,kl", a, a, a, optimize=optimize)
    for activation in (["relu"], 3, "tanh"):
        with pytest.raises(
            ValueError, match=r"activation: got .*; expected None or one of \['gelu', 'gelu_tanh'"
        ):
            gt.matmul(a, a, activation=activation)


def test_a_strategy_that_opt_einsum_lacks_is_named(where):  # noqa: F811
    pytest.importorskip("opt_einsum", reason="needs opt_einsum")
    a = gt.ones((2, 2), device=where)
    assert np.all(einsum("ij,jk,kl", a, a, a, optimize="greedy").numpy() == 4)
    with pytest.raises(ValueError, match="optimize: got 'foo'; expected a strategy of opt_einsum"):
        einsum("ij,jk,kl", a, a, a, optimize="foo")
