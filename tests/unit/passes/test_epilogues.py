"""Steps after a convolution or product are fused into it; images become channels-last."""

import itertools

import numpy as np
import pytest

import gputensor as gt
from gputensor.programs.few_rows import products as few_rows
from gputensor.programs.passes import order

BATCH = gt.Dim("n", 1, 4)


@pytest.fixture(autouse=True)
def host():
    with gt.device("host"):
        yield


def convolved(x, w, padding=1):
    """The 3x3 convolution in float64."""
    x = np.pad(np.asarray(x, np.float64), [(0, 0), (0, 0), *[(padding, padding)] * 2])
    windows = np.lib.stride_tricks.sliding_window_view(x, w.shape[2:], (2, 3))
    return np.einsum("nchwij,ocij->nohw", windows, np.asarray(w, np.float64))


def names(program):
    (function,) = program.functions.values()
    return [call.name for call in function.calls]


def made(function, *inputs, weights, dtype="float32", free=True):
    """Return (the program, its results in float64, the results of eager work)."""
    arrays = [gt.asarray(one, dtype=dtype) for one in inputs]
    specs = [
        gt.spec((BATCH if free else one.shape[0], *one.shape[1:]), one.dtype) for one in arrays
    ]
    placed = {name: gt.asarray(one, dtype=dtype) for name, one in weights.items()}
    program = gt.compile(function, *specs, weights=placed)
    found = program(*arrays).astype(gt.float64).numpy()
    return program, found, function(*arrays, weights=placed).astype(gt.float64).numpy()


def draw(rng, *shape):
    return rng.standard_normal(shape).astype(np.float32)


ACTIVATIONS = {
    "relu": (gt.relu, lambda x: np.maximum(x, 0)),
    "maximum": (lambda x: gt.maximum(x, 0), lambda x: np.maximum(x, 0)),
    "relu6": (gt.relu6, lambda x: np.clip(x, 0, 6)),
    "clip": (lambda x: gt.clip(x, 0, 6), lambda x: np.clip(x, 0, 6)),
    "both": (lambda x: gt.minimum(gt.maximum(x, 0.0), 6.0), lambda x: np.clip(x, 0, 6)),
    "silu": (gt.silu, lambda x: x / (1 + np.exp(-x))),
    "hardswish": (gt.hardswish, lambda x: x * np.clip(x + 3, 0, 6) / 6),
}


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_activations_of_convolutions(rng, name):
    function, wanted = ACTIVATIONS[name]
    x, weights = 3 * draw(rng, 2, 3, 6, 5), {"w": draw(rng, 4, 3, 3, 3), "b": draw(rng, 4)}

    def layer(x, *, weights):
        return function(gt.conv2d(x, weights["w"], weights["b"], padding=1))

    program, found, _eager = made(layer, x, weights=weights)
    assert names(program) == ["convolution"]
    want = wanted(convolved(x, weights["w"]) + weights["b"][:, None, None])
    np.testing.assert_allclose(found, want, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("first", [True, False])
def test_a_block_with_a_residual(rng, first):
    """The convolution that ends after the other operand computes the sum; relu follows."""
    x = draw(rng, 2, 4, 6, 5)
    weights = {name: draw(rng, 4, 4, 3, 3) / 6 for name in ("w1", "w2", "w3")}

    def block(x, *, weights):
        y = gt.relu(gt.conv2d(x, weights["w1"], padding=1))
        y = gt.conv2d(y, weights["w2"], padding=1)
        other = gt.conv2d(x, weights["w3"], padding=1)
        return gt.relu(y + other if first else other + y)

    program, found, _eager = made(block, x, weights=weights)
    assert names(program) == ["convolution"] * 3
    y = convolved(np.maximum(convolved(x, weights["w1"]), 0), weights["w2"])
    want = np.maximum(y + convolved(x, weights["w3"]), 0)
    np.testing.assert_allclose(found, want, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("dtype", ["float32", "float16"])
@pytest.mark.parametrize("has_bias", [True, False])
def test_normalisation_is_folded_into_weights(rng, has_bias, dtype):
    x = draw(rng, 2, 8, 6, 5)
    weights = {"w": draw(rng, 8, 8, 3, 3) / 8, "scale": draw(rng, 8), "shift": draw(rng, 8)}
    weights |= {"mean": draw(rng, 8), "variance": 0.5 + rng.random(8, np.float32)}
    if has_bias:
        weights["b"] = draw(rng, 8)

    def layer(x, *, weights):
        y = gt.conv2d(x, weights["w"], weights.get("b"), padding=1)
        factor = weights["scale"] * gt.rsqrt(weights["variance"] + 1e-3)
        shift = weights["shift"] - weights["mean"] * factor
        y = y * gt.reshape(factor, (-1, 1, 1)) + gt.reshape(shift, (-1, 1, 1))
        return gt.relu(y + x)

    program, found, eager = made(layer, x, weights=weights, dtype=dtype)
    assert names(program) == ["convolution"]
    sums = convolved(x, weights["w"]) + weights.get("b", np.zeros(8))[:, None, None]
    factor = weights["scale"] / np.sqrt(weights["variance"] + 1e-3)
    want = (sums - weights["mean"][:, None, None]) * factor[:, None, None]
    want = np.maximum(want + weights["shift"][:, None, None] + x, 0)
    # Eight roundings: of the image, weight, factor (five) and product of both; sums are in float32.
    unit = 2.0**-24 if dtype == "float32" else 2.0**-11
    terms = convolved(np.abs(x), np.abs(weights["w"])) + np.abs(weights["mean"])[:, None, None]
    terms += np.abs(weights.get("b", np.zeros(8)))[:, None, None]
    sizes = 3 * np.abs(weights["shift"])[:, None, None] + np.abs(x) + want
    bound = (8 * unit + 80 * 2.0**-24) * terms * np.abs(factor)[:, None, None] + unit * sizes
    assert (np.abs(found - want) <= 1.01 * bound + 1e-6).all()


@pytest.mark.parametrize("has_shift", [True, False])
def test_a_normalisation_and_a_scale_of_layers(rng, has_shift):
    """The second factor multiplies a bias that was itself made by the first one, or by its sum."""
    x = draw(rng, 2, 8, 6, 5)
    weights = {"w": draw(rng, 8, 8, 3, 3) / 8, "b": draw(rng, 8)}
    weights |= {name: draw(rng, 8) for name in ("scale", "shift", "gamma")}

    def layer(x, *, weights):
        columns = {name: gt.reshape(one, (-1, 1, 1)) for name, one in weights.items()}
        y = gt.conv2d(x, weights["w"], weights["b"], padding=1) * columns["scale"]
        return (y + columns["shift"] if has_shift else y) * columns["gamma"] + x

    program, found, eager = made(layer, x, weights=weights)
    assert names(program)[0] == "convolution" and (has_shift or len(names(program)) == 1)
    b, scale, shift, gamma = (weights[n][:, None, None] for n in ("b", "scale", "shift", "gamma"))
    shift = shift if has_shift else 0.0
    want = ((convolved(x, weights["w"]) + b) * scale + shift) * gamma + x
    terms = (convolved(np.abs(x), np.abs(weights["w"])) + np.abs(b)) * np.abs(scale)
    bound = 90 * 2.0**-24 * ((terms + np.abs(shift)) * np.abs(gamma) + np.abs(x))
    assert (np.abs(found - want) <= bound).all() and (np.abs(eager - want) <= bound).all()


def test_products_take_bias_activation_and_residual(rng):
    x, r = draw(rng, 3, 5, 8), draw(rng, 3, 5, 6)
    weights = {"w": draw(rng, 6, 8), "b": draw(rng, 6), "up": draw(rng, 6, 6)}

    def layer(x, r, *, weights):
        y = gt.gelu(x @ gt.swapaxes(weights["w"], 0, 1) + weights["b"])
        y = gt.linear(y, weights["up"]) + r
        return r + gt.silu(gt.linear(y, weights["up"], weights["b"]))

    program, found, eager = made(layer, x, r, weights=weights)
    assert names(program) == ["product"] * 3
    np.testing.assert_allclose(found, eager, rtol=1e-4, atol=1e-4)


def test_a_product_takes_one_of_two_sums(rng):
    x, weights = draw(rng, 3, 8), {"a": draw(rng, 8, 8), "b": draw(rng, 8, 8)}

    def parallel(x, *, weights):  # two branches beside a residual, as in Falcon
        return gt.linear(gt.tanh(x), weights["a"]) + gt.linear(gt.relu(x), weights["b"]) + x

    program, found, eager = made(parallel, x, weights=weights)
    assert names(program).count("product") == 2
    np.testing.assert_allclose(found, eager, rtol=1e-4, atol=1e-4)


def test_copies_of_in_place_operators_are_removed(rng):
    x, weights = draw(rng, 2, 4, 6, 5), {"w": draw(rng, 4, 4, 3, 3)}

    def layer(x, *, weights):
        y = gt.conv2d(x, weights["w"], padding=1)
        y[...] = gt.relu6(y)
        z = gt.conv2d(y, weights["w"], padding=1)
        z += y
        z[...] = gt.relu(z)
        return z

    program, found, eager = made(layer, x, weights=weights)
    assert names(program) == ["convolution"] * 2, str(program)
    np.testing.assert_allclose(found, eager, rtol=1e-4, atol=1e-4)


def test_results_that_something_else_reads_stay(rng):
    x, weights = draw(rng, 2, 3, 6, 5), {"w": draw(rng, 4, 3, 3, 3)}

    def layer(x, *, weights):
        y = gt.conv2d(x, weights["w"], padding=1)
        return gt.relu(y) + gt.max(y)

    program, found, eager = made(layer, x, weights=weights)
    assert names(program) == ["convolution", "reduce", "formula"]
    np.testing.assert_allclose(found, eager, rtol=1e-4, atol=1e-4)


def test_operands_that_are_written_again_stay(rng):
    """The first operand is overwritten between the product and the sum that follows."""
    w = draw(rng, 4, 4)

    def layer(x, *, weights):
        held = gt.copy(x)
        y = held @ weights["w"]
        held[0] = 7
        return gt.relu(y) + held

    program, found, _eager = made(layer, draw(rng, 4, 4), weights={"w": w}, free=False)
    assert "elementwise" in names(program)
    x = draw(rng, 4, 4)
    held = x.copy()
    held[0] = 7
    want = np.maximum(x.astype(np.float64) @ w, 0) + held
    np.testing.assert_allclose(program(gt.asarray(x)).numpy(), want, rtol=1e-4, atol=1e-5)
    del found


def test_each_rounding_is_kept_on_request(rng):
    x, weights = gt.asarray(draw(rng, 2, 3, 6, 5)), {"w": draw(rng, 4, 3, 3, 3)}

    def layer(x, *, weights):
        return gt.relu(gt.conv2d(x, weights["w"]))

    program = gt.compile(layer, gt.spec(x.shape), weights=weights, rounding="each")
    assert names(program) == ["convolution", "elementwise"]


def small_network(x, *, weights):
    y = gt.relu(gt.conv2d(x, weights["first"], padding=1, stride=2))
    y = gt.max_pool2d(y, 3, 2, 1)
    z = gt.relu(gt.conv2d(y, weights["inner"], padding=1))
    y = gt.relu(gt.conv2d(z, weights["inner"], padding=1) + y)
    y = gt.relu6(gt.conv2d(y, weights["depth"], padding=1, groups=8))
    return gt.linear(gt.mean(y, axis=(2, 3)), weights["head"])


def network_weights(rng):
    shapes = {"first": (8, 3, 3, 3), "inner": (8, 8, 3, 3), "depth": (8, 1, 3, 3), "head": (40, 8)}
    return {name: draw(rng, *shape) / np.prod(shape[1:]) ** 0.5 for name, shape in shapes.items()}


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32"])
def test_images_are_channels_last(rng, dtype, tmp_path):
    x, weights = draw(rng, 2, 3, 16, 12), network_weights(rng)
    program, found, eager = made(small_network, x, weights=weights, dtype=dtype)
    (function,) = program.functions.values()
    calls = [one for one in function.calls if one.name in ("convolution", "window")]
    is_last = [one.writes[0].strides[1] == 1 for one in calls]
    assert len(calls) == 5 and is_last == [dtype != "float32"] * 5
    bound = {"float16": 5e-3, "bfloat16": 4e-2, "float32": 1e-5}[dtype]
    np.testing.assert_allclose(found, eager, atol=bound * np.abs(eager).max())
    program.save(tmp_path / "network.gtp")
    with gt.load_program(tmp_path / "network.gtp") as loaded:
        again = loaded(gt.asarray(x, dtype=dtype)).astype(gt.float64).numpy()
    np.testing.assert_array_equal(again, found)


def test_images_that_are_flattened_stay(rng):
    weights = {"w": draw(rng, 8, 8, 3, 3), "head": draw(rng, 5, 8 * 30)}

    def layer(x, *, weights):
        y = gt.conv2d(gt.conv2d(x, weights["w"], padding=1), weights["w"], padding=1)
        return gt.linear(gt.reshape(y, (y.shape[0], -1)), weights["head"])

    given = draw(rng, 2, 8, 6, 5)
    program, found, eager = made(layer, given, weights=weights, dtype="float16")
    first, second = (one for function in program.functions.values() for one in function.calls[:2])
    assert first.writes[0].strides[1] == 1 and second.writes[0].strides[-1] == 1
    np.testing.assert_allclose(found, eager, atol=0.02 * np.abs(eager).max())


def test_products_of_many_rows_with_a_formula(rng, monkeypatch):
    """Halves of columns, vectors and other tensors are operands of one call; so is a free size."""
    # As for sizes at which a library is faster.
    monkeypatch.setattr(few_rows, "panel_wins", lambda *sizes, **options: False)
    weights = {"w": draw(rng, 96, 64) / 8, "b": draw(rng, 96)}
    x, other = draw(rng, 3, 20, 64), draw(rng, 3, 20, 48)

    def gated(x, other, *, weights):
        first, second = gt.split(gt.linear(x, weights["w"], weights["b"]), 2, axis=-1)
        return gt.silu(first) * second + other

    def scaled(x, other, *, weights):
        y = gt.linear(x, weights["w"], weights["b"])
        return gt.tanh(y * weights["b"]) - gt.sum(other, axis=-1, keepdims=True)

    given = [gt.asarray(one, dtype="bfloat16") for one in (x, other)]
    placed = {name: gt.asarray(one, dtype="bfloat16") for name, one in weights.items()}
    for function, lead in itertools.product((gated, scaled), (3, BATCH)):
        specs = [gt.spec((lead, *one.shape[1:]), "bfloat16") for one in (x, other)]
        for scheme in (None, {"w": "int8"}):
            program = gt.compile(function, *specs, weights=placed, quantize=scheme)
            assert names(program)[-1] == "formula_product", program
            with monkeypatch.context() as patch:
                patch.setattr(order, "join_products", lambda one, weights: one)
                apart = gt.compile(function, *specs, weights=placed, quantize=scheme)
            assert names(apart)[-1] == "formula"
            got, want = (one(*given).numpy().astype(np.float64) for one in (program, apart))
            # One product has 3 x 20 rows and the other 60, for which NumPy may add in another
            # order; then a few elements are rounded to their other neighbour.
            assert (got != want).mean() < 0.02
            np.testing.assert_allclose(got, want, rtol=0, atol=2.0**-6 * np.abs(want).max())


def test_products_that_keep_their_formula_apart(rng, monkeypatch):
    """Few rows, float32, a result with two readers, places of columns, and sums of columns."""
    monkeypatch.setattr(few_rows, "panel_wins", lambda *sizes, **options: False)
    placed = {"w": gt.asarray(draw(rng, 96, 64), dtype="bfloat16")}

    def with_two(x, *, weights):
        y = gt.linear(x, weights["w"])
        return gt.tanh(y) * 2, y

    def folded(x, *, weights):
        return gt.softmax(gt.linear(x, weights["w"]))

    def halved(x, *, weights):
        return gt.tanh(gt.linear(x, weights["w"])[:, 1:]) * 2

    def tanh(x, *, weights):
        return gt.tanh(gt.linear(x, weights["w"])) * 2

    for function, rows in ((with_two, 40), (folded, 40), (halved, 40), (tanh, 16)):
        program = gt.compile(function, gt.spec((rows, 64), "bfloat16"), weights=placed)
        assert "formula_product" not in names(program), function
    wide = {"w": gt.asarray(draw(rng, 96, 64))}
    assert "formula_product" not in names(gt.compile(tanh, gt.spec((40, 64)), weights=wide))
