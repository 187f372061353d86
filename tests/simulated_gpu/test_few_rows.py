"""Kernels of products of few rows with norms, gates, heads and residuals, run on the CPU."""

from functools import partial

import numpy as np
import pytest

import gputensor as gt
from gputensor._kernels.launch import nvrtc
from gputensor.blas.host import fused
from gputensor.blas.kernels import brief_programs
from gputensor.programs.few_rows import join
from tests.support import fused_checks, internals
from tests.support.products import skinny_on_cpu, tensor_cores_on_cpu
from tests.support.programs.decode_models import TYPES, UNIT, DecodeModel, calls_of

pytestmark = [
    pytest.mark.orders("deferred"),
    pytest.mark.process(FAKE_CUDA_SHARED="233472", FAKE_CUDA_MULTIPROCESSORS="8"),
]


def compile_source(source, *given):
    is_panel = "PanelParameters" in source or "HeldParameters" in source
    compiler = tensor_cores_on_cpu if is_panel else skinny_on_cpu
    return compiler.compile_source(source, *given)


@pytest.fixture(autouse=True)
def composed(monkeypatch):
    """The names of the functions that computed something by single calls, not in the kernel."""
    called = []

    def counted(source):
        def call(*given, **named):
            called.append(source.__name__)
            return source(*given, **named)

        return call

    for source in (fused.fused, fused.rotary, fused.normed, fused.row_product):
        monkeypatch.setattr(fused, source.__name__, counted(source))
    monkeypatch.setattr(nvrtc, "compile_source", compile_source)
    yield called
    internals.skinny_mma_configure()


@pytest.mark.parametrize("what", ["sum", "gate", "heads"])
@pytest.mark.parametrize("form", range(len(fused_checks.FORMS)))
def test_fused_product(rng, composed, form, what):
    """Random rows, types and shapes of blocks; the kernel itself normalizes up to four rows."""
    tiles, row_warps, k_warps, splits = rng.choice(
        [(0, 0, 0, 0), (2, 1, 3, 2), (1, 2, 5, 2), (1, 4, 4, 1)]
    ).tolist()
    internals.skinny_mma_configure(tiles=tiles, row_warps=row_warps, k_warps=k_warps, splits=splits)
    fused_checks.check_form(rng, *fused_checks.FORMS[form], what)
    assert set(composed) <= {"normed"}


@pytest.mark.parametrize("rows", [1, 2, 3, 4, 7, 8, 19])
def test_brief_products(rng, composed, monkeypatch, rows):
    """Sizes of incomplete pieces, warps and blocks; more terms than a lane holds at a time."""
    monkeypatch.setattr(brief_programs, "brief_wins", lambda m, n, k, dtype: True)
    n, k = int(rng.integers(1, 40)), 8 * int(rng.integers(1, 200))
    activation = rng.choice(["silu", "relu", "gelu", None])
    fused_checks.check_brief(rng, (rows, n, k), activation)
    assert not composed


@pytest.mark.parametrize("rows", [1, 2, 5, 16])
@pytest.mark.parametrize("columns", [(1, 17), (17, 65), (65, 257)])
def test_rows_of_brief_products(rng, composed, rows, columns):
    n = int(rng.integers(*columns))
    fused_checks.check_row(rng, (rows, n, 8 * int(rng.integers(1, (1 << 11) // n + 1))))
    assert not composed


def test_rows_of_other_products(rng, composed):
    """Single calls compute them."""
    fused_checks.check_row(rng, (17, int(rng.integers(1, 9)), 8 * int(rng.integers(1, 9))))
    fused_checks.check_row(rng, (int(rng.integers(1, 4)), 257, 8 * int(rng.integers(1, 9))))
    assert composed == ["row_product"] * 2


def random_array(rng, dtype, shape, scale):
    return (rng.standard_normal(shape) * scale).astype(TYPES[dtype])


def session_results(program, inputs):
    with program.session() as session:
        return [session(gt.asarray(x, device="cuda")).numpy() for x in inputs]


@pytest.mark.parametrize("form", ["int8", "int4:32", "plain"])
def test_tokens_of_a_model(rng, composed, form):
    """`once` differs from `each` by roundings only, and `each` has the bits of eager."""
    rows, width = (1, 2048) if form == "plain" else (int(rng.integers(1, 6)), None)
    dtype = str(rng.choice(["float16", "bfloat16"]))
    model = DecodeModel(rng, form, dtype, rows, width, attends=False)
    inputs = [model.inputs() for _ in range(2)]
    each = session_results(model.program("cuda", rounding="each"), inputs)
    program = model.program("cuda")
    once = session_results(program, inputs)
    for got, want in zip(once, each, strict=True):
        scale = np.abs(want.astype(np.float64)).max()
        np.testing.assert_allclose(
            got.astype(np.float64), want.astype(np.float64), rtol=0, atol=16 * UNIT[dtype] * scale
        )
    if form == "plain":
        for got, want in zip(each, model.eager("cuda", inputs), strict=True):
            np.testing.assert_array_equal(got, want)
    if form != "plain":
        (function,) = program.data.functions.values()
        assert {"fused_product", "rotary_product"} <= {call.name for call in function.calls}
        assert set(composed) == ({"normed"} if rows > 4 else set())


def test_norms_and_activations_of_plain_products(rng, composed):
    """A perceptron behind a layer norm is two calls."""
    m, k, n = 1, 16 * int(rng.integers(48, 60)), 16 * int(rng.integers(66, 90))
    dtype = str(rng.choice(["float16", "bfloat16"]))
    has_shift = bool(rng.integers(2))
    activation = str(rng.choice(["gelu", "gelu_tanh", "silu", "relu"]))
    draw = partial(random_array, rng, dtype)
    weights = {"up": draw((n, k), k**-0.5), "down": draw((k, n), n**-0.5), "gain": draw((k,), 1)}
    weights |= {name: draw((extent,), 1) for name, extent in (("shift", k), ("bias", n))}

    def function(x, *, weights):
        x = x + 1
        shift = weights["shift"] if has_shift else None
        rows = gt.layer_norm(x, weights["gain"], shift)
        up = gt.linear(rows, weights["up"], weights["bias"], activation=activation)
        return gt.linear(up, weights["down"], residual=x)

    x = draw((m, k), 3)
    spec = gt.spec((m, k), getattr(gt, dtype))
    held = {name: gt.asarray(one, device="cuda") for name, one in weights.items()}
    program = gt.compile(function, spec, weights=held)
    (made,) = program.data.functions.values()
    assert [call.name for call in made.calls] == ["formula", "fused_product", "fused_product"]
    assert [call.attributes["is_steady"] for call in made.calls[1:]] == [True, True]
    got = program(gt.asarray(x, device="cuda")).numpy().astype(np.float64)
    assert not composed
    wide = {
        name: gt.asarray(one.astype(np.float64), device="host") for name, one in weights.items()
    }
    want = function(gt.asarray(x.astype(np.float64), device="host"), weights=wide).numpy()
    # Sums of hundreds of random roundings, each of numbers of about 1; x and the result are larger.
    assert np.all(np.abs(got - want) <= UNIT[dtype] * (16 + 2 * np.abs(want)))


def with_activation(activation, x, *, weights):
    """Two layers whose norms are read by a product and added to the sum of another."""
    for w in weights["layers"]:
        rows = gt.linear(x @ w["in"], w["out"], residual=x)
        x = gt.layer_norm(rows, w["gain"], w["shift"])
        up = gt.linear(x, w["up"], w["bias"], activation=activation)
        x = gt.rms_norm(gt.linear(up, w["down"], residual=x), w["gain"])
    return gt.linear(x, weights["layers"][0]["up"])


def test_layers_of_panels(rng, composed):
    """Each product is a call of its own with the norm before it, and the norms are no calls."""
    m, k, hidden = int(rng.integers(17, 60)), *(8 * int(rng.integers(4, 16)) for _ in range(2))
    dtype = str(rng.choice(["float16", "bfloat16"]))
    activation = str(rng.choice(["gelu", "gelu_tanh", "silu", "relu"]))
    draw = partial(random_array, rng, dtype)
    shapes = {"in": (k, k), "out": (k, k), "up": (hidden, k), "down": (k, hidden)}
    layers = [
        {name: draw(shape, shape[1] ** -0.5) for name, shape in shapes.items()}
        | {"gain": draw((k,), 1), "shift": draw((k,), 1), "bias": draw((hidden,), 1)}
        for _ in range(2)
    ]
    function = partial(with_activation, activation)
    x = draw((m, k), 1)

    def on(device, dtype=None):
        made = [{name: gt.asarray(one.astype(dtype or one.dtype), device=device)
                 for name, one in w.items()} for w in layers]  # fmt: skip
        return {"layers": made}

    program = gt.compile(function, gt.spec((m, k), getattr(gt, dtype)), weights=on("cuda"))
    (made,) = program.data.functions.values()
    names = [call.name for call in made.calls]
    assert names == ["fused_product", "fused_product", "normed_product", "fused_product"] + [
        "normed_product", "fused_product", "normed_product", "fused_product", "fused_product"
    ]  # fmt: skip
    assert [call.attributes["is_steady"] for call in made.calls] == [False] + [True] * 8
    got = program(gt.asarray(x, device="cuda")).numpy().astype(np.float64)
    assert not composed
    given = gt.asarray(x.astype(np.float64), device="host")
    want = function(given, weights=on("host", np.float64)).numpy()
    # Nine roundings, each of a relative root mean square of at most .6 units.
    away = np.sqrt(np.square(got - want).mean() / np.square(want).mean())
    assert away < 5 * UNIT[dtype], away


def test_perceptron_of_one_row(rng, composed):
    """Small products too; the first reads an input, so its weights may come from work before."""
    k, hidden = (16 * int(rng.integers(32, 50)) for _ in range(2))
    n, dtype = int(rng.integers(8, 20)), str(rng.choice(["float16", "bfloat16"]))
    activation = str(rng.choice(["gelu", "gelu_tanh", "silu", "relu"]))
    draw = partial(random_array, rng, dtype)
    weights = {"up": draw((hidden, k), k**-0.5), "down": draw((n, hidden), hidden**-0.5)}
    weights |= {"first": draw((hidden,), 1), "second": draw((n,), 1)}

    def function(x, *, weights):
        x = gt.linear(x, weights["up"], weights["first"], activation=activation)
        return gt.linear(x, weights["down"], weights["second"])

    x = draw((1, k), 1)
    held = {name: gt.asarray(one, device="cuda") for name, one in weights.items()}
    program = gt.compile(function, gt.spec((1, k), getattr(gt, dtype)), weights=held)
    (made,) = program.data.functions.values()
    assert [call.name for call in made.calls] == ["fused_product", "fused_product"]
    assert [call.attributes["is_steady"] for call in made.calls] == [False, True]
    got = program(gt.asarray(x, device="cuda")).numpy().astype(np.float64)
    assert not composed
    wide = {
        name: gt.asarray(one.astype(np.float64), device="host") for name, one in weights.items()
    }
    want = function(gt.asarray(x.astype(np.float64), device="host"), weights=wide).numpy()
    # Each hidden number, below 8, is rounded once; the signs of their errors are random.
    assert np.all(np.abs(got - want) <= UNIT[dtype] * (16 + 2 * np.abs(want)))


@pytest.mark.parametrize("ending", ["softmax", "log_softmax", "scaled", "activated", "logits"])
def test_classifiers(rng, composed, ending):
    """The last product computes the formula of its rows, if no other call reads the product."""
    m, n = int(rng.integers(1, 17)), int(rng.integers(2, 20))
    k, hidden = (16 * int(rng.integers(2, 50)) for _ in range(2))
    dtype = str(rng.choice(["float16", "bfloat16"]))
    draw = partial(random_array, rng, dtype)
    weights = {"up": draw((hidden, k), k**-0.5), "down": draw((n, hidden), hidden**-0.5)}
    weights |= {"first": draw((hidden,), 1), "second": draw((n,), 1)}

    def function(x, *, weights):
        x = gt.linear(x, weights["up"], weights["first"], activation="relu")
        x = gt.linear(x, weights["down"], weights["second"])
        if ending == "activated":
            return gt.softmax(gt.relu(x))
        if ending == "scaled":
            return gt.exp(gt.softmax(x / 4) * 3)
        if ending == "logits":
            return x, gt.softmax(x)
        return getattr(gt, ending)(x)

    x = draw((m, k), 1)
    held = {name: gt.asarray(one, device="cuda") for name, one in weights.items()}
    program = gt.compile(function, gt.spec((m, k), getattr(gt, dtype)), weights=held)
    (made,) = program.data.functions.values()
    names = [call.name for call in made.calls]
    assert ("row_product" in names) is (ending != "logits"), names
    assert ("formula" in names) is (ending == "logits"), names
    got = program(gt.asarray(x, device="cuda"))
    assert not composed
    wide = {
        name: gt.asarray(one.astype(np.float64), device="host") for name, one in weights.items()
    }
    want = function(gt.asarray(x.astype(np.float64), device="host"), weights=wide)
    for one, other in zip(*((y if ending == "logits" else [y]) for y in (got, want)), strict=True):
        # Each hidden number, below 8, is rounded once; the signs of their errors are random.
        away = np.abs(one.numpy().astype(np.float64) - other.numpy())
        assert np.all(away <= UNIT[dtype] * (32 + 4 * np.abs(other.numpy())))


def test_nodes_of_a_layer(rng, monkeypatch):
    """The ten or more calls of a layer, attention included, become five."""
    model = DecodeModel(rng, "int8", "bfloat16", 1)
    assert calls_of(model) == {
        "rotary_product": 2, "fused_product": 6, "attention": 2,
    }  # fmt: skip
    (function,) = model.program("host").data.functions.values()
    products = [call for call in function.calls if "is_steady" in call.attributes]
    # The first x is an input, so a kernel before the program may have written the weights.
    assert [call.attributes["is_steady"] for call in products] == [False] + [True] * 7
    monkeypatch.setattr(join, "STEPS", {})
    assert calls_of(model) == {
        "quantized_product": 7, "formula": 3 * 2 + 2 * (2 - model.has_pairs) + 2 * 2 - 4,
        "scatter": 4, "attention": 2, "product": 1,
    }  # fmt: skip


@pytest.mark.parametrize("is_first", [True, False])
def test_reads_of_weights_before_attention_ended(rng, is_first):
    """Attention lets the next kernel come before it has waited for work before the program."""
    n, heads, size = int(rng.integers(1, 9)), int(rng.integers(1, 4)), 64
    width = heads * size

    def function(x, k, v, *, weights):
        rows = x if is_first else gt.linear(x, weights["query"])
        q = gt.moveaxis(gt.reshape(rows, (n, heads, size)), 0, 1)
        a = gt.scaled_dot_product_attention(q, k, v)
        return gt.linear(gt.reshape(gt.moveaxis(a, 0, 1), (n, width)), weights["out"])

    cache = gt.spec((heads, 32, size), gt.bfloat16)
    weights = {name: gt.ones((width, width), dtype=gt.bfloat16) for name in ("query", "out")}
    x = gt.spec((n, width), gt.bfloat16)
    program = gt.compile(function, x, cache, cache, weights=weights, quantize={"out": "int8"})
    (made,) = program.data.functions.values()
    assert "attention" in [call.name for call in made.calls]
    assert made.calls[-1].attributes.get("is_steady", False) is not is_first
