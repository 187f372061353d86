"""activation(scale * (x @ w) + bias) + residual as one call, against float64, on every device.

The bound is that of the product plus one rounding for each of the four steps, because a step that
the library does not fuse may read the previous step's values rounded to the type of the result.
"""

import numpy as np
import pytest

import gputensor as gt
from tests.conformance.products.test_matmul import (
    ROUNDOFF,
    assert_within,
    bound,
    random_array,
    random_shapes,
    random_tensor,
    underflow,
    wide,
)
from tests.conformance.products.test_operations import ACTIVATIONS, SLOPE

TYPES = ("float64", "float32", "float16", "bfloat16")


def random_scale(rng, kind, columns, place):
    """A scale of one kind, as argument and as float64 array."""
    if kind == "number":
        value = float(rng.uniform(-2, 2))
        return value, np.float64(value)
    shape = {"scalar": (), "one": (1,), "columns": (2 * columns,)}[kind]
    array = rng.uniform(-2, 2, shape).astype(np.float32)
    tensor = gt.asarray(array, device=place)
    return (tensor[::2], array[::2]) if kind == "columns" else (tensor, array)


def limit_of(a, b, factor, steps, name, activation):
    """The bound of the whole; `steps` are the rounded values, `factor` scales the product."""
    unit = ROUNDOFF[name][1]
    sizes = sum(np.abs(wide(np.asarray(step))) for step in steps)
    smooth = 2.0**-10 if activation in ("gelu", "gelu_tanh", "silu") and name != "float64" else 0
    inner = bound(a, b, name) * np.abs(factor)
    return SLOPE[activation] * (inner + (4 * unit + smooth) * sizes + 4 * underflow(name))


@pytest.mark.parametrize("name", TYPES[1:])
def test_the_bound_admits_a_correctly_rounded_subnormal_result(rng, name):
    """Results far below the smallest normal number have an absolute rounding error."""
    tiny = 2 * underflow(name)
    factor = np.float64(0.1)
    a, b = np.full((1, 1), 16 * tiny), rng.uniform(1, 2, (1, 999))
    exact = a @ b * factor
    steps = (exact, a @ b * factor, 0.0, 0.0)
    rounded = (exact / tiny).round() * tiny
    assert np.max(np.abs(rounded - exact)) > 0.4 * tiny
    assert_within(rounded, exact, limit_of(a, b, factor, steps, name, None))


def check_epilogue(rng, place, name, call):
    """One random call of `call` ("linear" or "matmul") with a random set of the four steps."""
    if call == "linear":
        lead = [(), (7,), (2, 5)][int(rng.integers(0, 3))]
        k, n = (int(x) for x in rng.integers(1, 40, 2))
        shapes = ((*lead, k), (n, k))
    else:
        shapes = random_shapes(rng)
    x, array_x = random_tensor(rng, shapes[0], name, place)
    w, array_w = random_tensor(rng, shapes[1], name, place)
    right = array_w.T if call == "linear" else array_w
    exact = np.asarray(np.matmul(wide(array_x), wide(right)))
    size = np.asarray(np.matmul(np.abs(wide(array_x)), np.abs(wide(right))))
    columns = exact.shape[-1] if exact.ndim else 0
    activation = list(ACTIVATIONS)[int(rng.integers(0, len(ACTIVATIONS)))]
    keywords, factor, offset, extra = {"activation": activation}, np.float64(1), 0.0, 0.0
    kinds = ["number", "scalar", "columns" if columns else "scalar", "one" if columns else "scalar"]
    if rng.random() < 0.6:
        kind = kinds[int(rng.integers(0, 4))]
        keywords["scale"], factor = random_scale(rng, kind, columns, place)
    if columns and rng.random() < 0.6:
        keywords["bias"], offset = random_tensor(rng, (columns,), name, place)
    exact = exact * wide(factor) + wide(np.asarray(offset))
    out = None
    if rng.random() < 0.6:
        shape = tuple(d if rng.random() < 0.8 else 1 for d in exact.shape)
        keywords["residual"], extra = random_tensor(rng, shape, name, place)
        if shape == exact.shape and rng.random() < 0.3:
            out, extra = keywords["residual"], extra.copy()
    if out is None and rng.random() < 0.5:
        out, _ = random_tensor(rng, exact.shape, name, place, fill=np.nan)
    exact = ACTIVATIONS[activation](exact) + wide(np.asarray(extra))
    steps = (exact, size * np.abs(wide(factor)), offset, extra)
    limit = limit_of(array_x, right, wide(factor), steps, name, activation)
    with np.errstate(invalid="ignore"):
        got = getattr(gt, call)(x, w, out=out, **keywords)
    assert out is None or got is out
    assert got.dtype == x.dtype
    assert_within(got.numpy(), exact, limit)


@pytest.mark.parametrize("call", ["linear", "matmul"])
@pytest.mark.parametrize("name", TYPES)
def test_every_set_of_steps_is_within_its_bound(place, rng, name, call):
    for _ in range(40):
        check_epilogue(rng, place, name, call)


def check_vector_bias(rng, place, name, shape):
    """matmul(matrices, vector) with a bias, into a contiguous and into a strided result."""
    a, b, bias = (random_array(rng, s, name) for s in ((*shape, 5), (5,), shape[-1:]))
    exact = wide(a) @ wide(b) + wide(bias)
    steps = (exact, np.abs(wide(a)) @ np.abs(wide(b)), wide(bias))
    limit = limit_of(a, b, np.float64(1), steps, name, None)
    x, y, z = (gt.asarray(array, device=place) for array in (a, b, bias))
    for step in (1, 4):
        apart = gt.full((*shape, step), np.nan, dtype=x.dtype, device=place)
        got = gt.matmul(x, y, bias=z, out=apart[..., 0])
        assert_within(got.numpy(), exact, limit)


@pytest.mark.parametrize("name", TYPES)
@pytest.mark.parametrize("shape", [(17,), (2, 17), (3, 2, 9)])
def test_the_bias_of_matrices_times_a_vector_goes_along_their_rows(place, rng, name, shape):
    check_vector_bias(rng, place, name, shape)


def test_the_steps_come_in_the_documented_order(place):
    one = gt.ones((1, 1), device=place)
    minus = gt.full((1,), -3.0, device=place)
    got = gt.matmul(one, one, scale=2, bias=minus, activation="relu", residual=5 * one)
    assert got.numpy() == [[5.0]]  # relu(2 * 1 - 3) + 5
    got = gt.linear(one, one, minus + 2, scale=gt.full((), 4.0, device=place), residual=one)
    assert got.numpy() == [[4.0]]  # 4 * 1 - 1 + 1


@pytest.mark.parametrize("activation", [None, "relu", "gelu"])
def test_a_residual_may_be_the_result(place, rng, activation):
    x, array_x = random_tensor(rng, (9, 24), "float32", place)
    w, array_w = random_tensor(rng, (16, 24), "float32", place)
    start = random_array(rng, (9, 16), "float32")
    out = gt.asarray(start, device=place)
    assert gt.linear(x, w, activation=activation, residual=out, out=out) is out
    product = wide(array_x) @ wide(array_w).T
    exact = ACTIVATIONS[activation](product) + start
    steps = (exact, product, start)
    limit = limit_of(array_x, array_w.T, 1.0, steps, "float32", activation)
    assert_within(out.numpy(), exact, limit)


def test_a_product_too_large_for_float16_may_be_scaled_back(place):
    x = gt.full((4, 16), 200.0, dtype=gt.float16, device=place)
    w = gt.full((8, 16), 200.0, dtype=gt.float16, device=place)
    for scale in (2.0**-8, gt.full((), 2.0**-8, device=place)):
        assert np.all(gt.linear(x, w, scale=scale).numpy() == 2500)


def test_steps_of_a_sum_of_no_terms(place):
    x, w = gt.empty((3, 0), device=place), gt.empty((4, 0), device=place)
    bias, residual = gt.full((4,), -2.0, device=place), gt.full((3, 4), 5.0, device=place)
    scale = gt.full((), 3.0, device=place)
    for activation, expected in ((None, 3.0), ("relu", 5.0)):
        got = gt.linear(x, w, bias, scale=scale, activation=activation, residual=residual)
        np.testing.assert_array_equal(got.numpy(), np.full((3, 4), expected))
    assert gt.linear(x, w, activation="relu", residual=residual, out=residual) is residual
    np.testing.assert_array_equal(residual.numpy(), np.full((3, 4), 5.0))


def test_an_activation_applies_to_the_promoted_product_in_either_order(place):
    """Operands are promoted first: integer with float is allowed, float with complex is not."""
    values = {name: gt.full((2, 2), -1, dtype=name, device=place) for name in ("int32", "float64")}
    for names in (("int32", "float64"), ("float64", "int32")):
        a, b = (values[name] for name in names)
        got = gt.matmul(a, b, activation="relu", scale=-1)
        assert got.dtype == gt.float64 and np.all(got.numpy() == 0)
    a, b = (
        gt.ones((2, 2), dtype="float64", device=place),
        gt.ones((2, 2), dtype="complex64", device=place),
    )
    for left, right in ((a, b), (b, a)):
        for call in (gt.matmul, gt.linear, lambda *x, **how: gt.addmm(b, *x, **how)):
            with pytest.raises(TypeError, match="activation: got a product of complex128"):
                call(left, right, activation="gelu")


def test_wrong_steps_are_named(place):
    x, w = gt.ones((2, 3), device=place), gt.ones((4, 3), device=place)
    with pytest.raises(ValueError, match=r"linear: scale: got shape \(3,\)"):
        gt.linear(x, w, scale=gt.ones((3,), device=place))
    with pytest.raises(TypeError, match="linear: scale: got a tensor of float64"):
        gt.linear(x, w, scale=gt.ones((), dtype=gt.float64, device=place))
    with pytest.raises(TypeError, match="linear: scale: got str; expected a number"):
        gt.linear(x, w, scale="2")
    with pytest.raises(TypeError, match="linear: residual: got float64; expected float32, that of"):
        gt.linear(x, w, residual=gt.ones((2, 4), dtype=gt.float64, device=place))
    with pytest.raises(
        ValueError, match=r"linear: shapes: got \(2, 4\) and \(3, 4\), which do not broadcast"
    ):
        gt.linear(x, w, activation="relu", residual=gt.ones((3, 4), device=place))
    with pytest.raises(TypeError, match="matmul: activation: got a product of int32"):
        gt.matmul(x.astype(gt.int32), w.astype(gt.int32).mT, activation="relu")
    base = gt.ones((4, 4), device=place)
    with pytest.raises(ValueError, match="out: got memory that it shares with residual"):
        gt.linear(x, w, activation="relu", residual=base[1:3], out=base[:2])
