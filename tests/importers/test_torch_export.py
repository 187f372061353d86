"""`from_exported` on stand-ins for torch's programs; tests/gpu/test_torch_models.py uses torch."""

import operator
import subprocess
import sys
from types import SimpleNamespace

import numpy as np
import pytest

import gputensor as gt
from gputensor.importers.aten import find
from tests.importers.exported_programs import Builder, Dtype, Symbol, Target


@pytest.fixture
def layers(rng):
    """(builder, reference) of a batch of rows through two layers and a softmax."""
    w1, b1 = rng.standard_normal((6, 4), np.float32), rng.standard_normal(6, np.float32)
    w2 = rng.standard_normal((6, 3), np.float32)
    built = Builder()
    p1, p2 = built.weight("up.weight", w1), built.weight("up.bias", b1)
    p3 = built.weight("down", w2, "BUFFER")
    n = Symbol("s0")
    built.ranges[n] = SimpleNamespace(lower=2, upper="int_oo")
    x = built.input("x", (n, 2, 4))
    size = built.call("aten.sym_size.int", x, 0)
    rows = built.call(operator.mul, size, 2)
    flat = built.call("aten.view.default", x, [rows, 4])
    y = built.call("aten.linear.default", flat, p1, p2)
    # Only a check reads these, of which the library has no `item`.
    is_right = built.call("aten.item.default", built.call("aten.all.default", y))
    built.call("aten._assert_scalar.default", built.call(operator.eq, is_right, 1), "some text")
    y = built.call("aten.relu_.default", y)
    y = built.call("aten.mm.default", y, p3)
    y = built.call("aten.softmax.int", y, -1)
    parts = built.call("aten.split.Tensor", y, rows)
    built.output(built.call(operator.getitem, parts, 0))

    def reference(x):
        hidden = np.maximum(x.reshape(-1, 4).astype(np.float64) @ w1.T + b1, 0) @ w2
        e = np.exp(hidden - hidden.max(-1, keepdims=True))
        return e / e.sum(-1, keepdims=True)

    return built, reference


def test_a_program_runs_eagerly(layers, device, rng):
    built, reference = layers
    model = gt.from_exported(built.program)
    assert model.inputs == ("x",) and set(model.weights) == {"up.weight", "up.bias", "down"}
    x = rng.standard_normal((5, 2, 4), np.float32)
    y = model.run(gt.asarray(x, device=device))
    np.testing.assert_allclose(y.numpy(), reference(x), rtol=1e-4, atol=1e-5)


def test_a_program_is_traced_for_all_sizes(layers, rng):
    built, reference = layers
    model = gt.from_exported(built.program)
    assert model.specs[0].shape[0] == gt.Dim("s0", 2, 1024)
    with model.compile(target="host") as program:
        for n in (2, 7, 100):
            x = rng.standard_normal((n, 2, 4), np.float32)
            y = program(gt.asarray(x, device="host"))
            np.testing.assert_allclose(y.numpy(), reference(x), rtol=1e-4, atol=1e-5)
    fixed = gt.from_exported(built.program, dims={"s0": 3})
    assert fixed.specs[0].shape == (3, 2, 4)
    with pytest.raises(ValueError, match="dims: got 's1'; expected one of s0"):
        gt.from_exported(built.program, dims={"s1": 3})


def ran(device, *inputs, calls):
    """The result of a program that `calls` builds from a builder and the input nodes."""
    built = Builder()
    nodes = [built.input(f"x{i}", one.shape, one.dtype.name) for i, one in enumerate(inputs)]
    built.output(calls(built, *nodes))
    model = gt.from_exported(built.program)
    result = model.run(*(gt.asarray(one, device=device) for one in inputs))
    return result.numpy()


IMAGE = (2, 4, 6, 5)
MASK = np.random.default_rng(5).integers(2, size=IMAGE[1:]).astype(bool)
CASES = {
    "add alpha": (lambda b, x: b.call("aten.add.Tensor", x, x, alpha=2), lambda x: 3 * x),
    "rsub": (lambda b, x: b.call("aten.rsub.Scalar", x, 1), lambda x: 1 - x),
    "hardswish": (
        lambda b, x: b.call("aten.hardswish.default", x),
        lambda x: x * np.clip(x / 6 + 0.5, 0, 1),
    ),
    "hardtanh": (lambda b, x: b.call("aten.hardtanh.default", x, 0.0, 6.0),
                 lambda x: np.clip(x, 0, 6)),
    "flatten": (lambda b, x: b.call("aten.flatten.using_ints", x, 1),
                lambda x: x.reshape(2, -1)),
    "permute": (lambda b, x: b.call("aten.permute.default", x, [0, 2, -1, 1]),
                lambda x: x.transpose(0, 2, 3, 1)),
    "slice": (lambda b, x: b.call("aten.slice.Tensor", x, 2, 1, 9223372036854775807, 2),
              lambda x: x[:, :, 1::2]),
    "select": (lambda b, x: b.call("aten.select.int", x, -1, -1), lambda x: x[..., -1]),
    "cat": (lambda b, x: b.call("aten.cat.default", [x, x], -1),
            lambda x: np.concatenate([x, x], -1)),
    "expand": (
        lambda b, x: b.call(
            "aten.expand.default", b.call("aten.unsqueeze.default", x, 0), [3, -1, -1, -1, -1]
        ),
        lambda x: np.broadcast_to(x, (3, *x.shape)),
    ),
    "squeeze": (
        lambda b, x: b.call("aten.squeeze.dims", b.call("aten.unsqueeze.default", x, 1), [0, 1]),
        lambda x: x,
    ),
    "mean": (lambda b, x: b.call("aten.mean.dim", x, [-1, -2], True),
             lambda x: x.mean((-1, -2), keepdims=True)),
    "var": (lambda b, x: b.call("aten.var.correction", x, [1], correction=1),
            lambda x: x.var(1, ddof=1)),
    "max": (lambda b, x: b.call(operator.getitem, b.call("aten.max.dim", x, 1), 0),
            lambda x: x.max(1)),
    "pad": (lambda b, x: b.call("aten.constant_pad_nd.default", x, [1, 2, 0, 1], 3.0),
            lambda x: np.pad(x, [(0, 0), (0, 0), (0, 1), (1, 2)], constant_values=3)),
    "to": (lambda b, x: b.call("aten.to.dtype", x, Dtype("float64")), lambda x: x),
    "arange": (
        lambda b, x: b.call("aten.add.Tensor", x, b.call("aten.arange.default", 5, device="cpu")),
        lambda x: x + np.arange(5),
    ),
    "full": (
        lambda b, x: b.call(
            "aten.where.self",
            b.call("aten.gt.Scalar", x, 0),
            x,
            b.call("aten.full.default", [], -1.0, dtype=Dtype("float32"), pin_memory=False),
        ),
        lambda x: np.where(x > 0, x, -1),
    ),
    "pool": (lambda b, x: b.call("aten.adaptive_avg_pool2d.default", x, [1, 1]),
             lambda x: x.mean((2, 3), keepdims=True)),
    "max pool": (
        lambda b, x: b.call("aten.max_pool2d.default", x, [2, 1], [2, 1]),
        lambda x: x.reshape(2, 4, 3, 2, 5).max(3),
    ),
    "chunk": (lambda b, x: b.call(operator.getitem, b.call("aten.chunk.default", x, 3, 1), 1),
              lambda x: x[:, 2:4]),
    "index": (
        lambda b, x: b.call(
            "aten.index.Tensor", x, [None, b.attribute("places", np.array([2, 0]))]
        ),
        lambda x: x[:, [2, 0]],
    ),
    "masked scatter": (
        lambda b, x: b.call(
            "aten.masked_scatter.default", x, b.attribute("mask", MASK),
            b.call("aten.neg.default", x),
        ),
        lambda x: np.where(
            MASK,
            -x.ravel()[np.cumsum(np.broadcast_to(MASK, x.shape)) - 1].reshape(x.shape),
            x,
        ),
    ),
    "copy": (lambda b, x: b.call("aten.clone.default", x, memory_format="any"), lambda x: x),
    "write to a copy": (
        lambda b, x: b.call("aten.sub.Tensor", x, b.call(
            "aten.mul_.Tensor", b.call("aten.clone.default", x), 3.0
        )),
        lambda x: -2 * x,
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_operators_give_torchs_results(name, device, rng):
    calls, reference = CASES[name]
    x = rng.standard_normal(IMAGE, np.float32)
    wanted = reference(x.astype(np.float64))
    np.testing.assert_allclose(ran(device, x, calls=calls), wanted, rtol=1e-4, atol=1e-5)


def test_norms_convolution_and_attention(device, rng):
    x = rng.standard_normal((1, 4, 6, 6), np.float32)
    w = rng.standard_normal((4, 1, 3, 3), np.float32)
    stats = [rng.random(4, np.float32) + 0.5 for _i in range(4)]

    def calls(b, x, w, *stats):
        y = b.call("aten.conv2d.default", x, w, None, [2, 2], [1, 1], [1, 1], 4)
        return b.call("aten.batch_norm.default", y, *stats, False, 0.1, 1e-5, True)

    y = ran(device, x, w, *stats, calls=calls)
    wide = np.pad(x.astype(np.float64), [(0, 0), (0, 0), (1, 1), (1, 1)])
    wanted = np.zeros((1, 4, 3, 3))
    for i, j in np.ndindex(3, 3):
        wanted += wide[:, :, i : i + 5 : 2, j : j + 5 : 2] * w[:, 0, i, j].reshape(1, 4, 1, 1)
    a, b, centre, variance = (one.astype(np.float64).reshape(1, 4, 1, 1) for one in stats)
    wanted = (wanted - centre) / np.sqrt(variance + 1e-5) * a + b
    np.testing.assert_allclose(y, wanted, rtol=1e-3, atol=1e-4)

    q = rng.standard_normal((2, 3, 5, 8), np.float32)

    def attend(b, q):
        return b.call("aten.scaled_dot_product_attention.default", q, q, q, None, 0.0, True)

    scores = q.astype(np.float64) @ q.swapaxes(-1, -2) / np.sqrt(8)
    scores = np.where(np.tril(np.ones((5, 5), bool)), scores, -np.inf)
    e = np.exp(scores - scores.max(-1, keepdims=True))
    wanted = e / e.sum(-1, keepdims=True) @ q
    np.testing.assert_allclose(ran(device, q, calls=attend), wanted, rtol=1e-4, atol=1e-5)


def test_nested_graphs_are_run(device):
    inside = Builder()
    one = inside.input("arg0", (3,))
    inside.output(inside.call("aten.mul.Tensor", one, 2.0))

    def calls(b, x):
        graph = b.attribute("submod_1", SimpleNamespace(graph=inside.graph))
        wrapper = Target("wrap_with_set_grad_enabled")
        wrapper.__name__ = "wrap_with_set_grad_enabled"
        return b.call(operator.getitem, b.call(wrapper, False, graph, x), 0)

    assert ran(device, np.float32([1, 2, 3]), calls=calls).tolist() == [2, 4, 6]


def test_all_missing_operators_are_named_at_once():
    built = Builder()
    x = built.input("x", (2,))
    a = built.call("aten.nonzero_static.default", x)
    built.call("aten.poisson.default", x)  # drawn in training only: nothing reads it
    built.output(built.call("custom.mine.default", a))
    with pytest.raises(gt.ModelError) as caught:
        gt.from_exported(built.program)
    text = str(caught.value)
    assert (
        f"aten.nonzero_static.default (nodes '{a.name}')" in text and "custom.mine.default" in text
    )
    assert "poisson" not in text


def test_other_objects_and_training_programs_are_refused():
    with pytest.raises(TypeError, match="got int; expected a torch.export.ExportedProgram"):
        gt.from_exported(3)
    built = Builder()
    x = built.input("x", (2,))
    built.output(x, kind="BUFFER_MUTATION")
    with pytest.raises(gt.ModelError, match="got BUFFER_MUTATION; expected a module in evaluation"):
        gt.from_exported(built.program)


def test_training_is_refused():
    with pytest.raises(gt.ModelError, match="dropout: got training"):
        find("dropout")(gt.ones(2, device="host"), 0.5, True)


def test_torch_is_not_imported():
    program = "import gputensor as gt, sys; gt.from_exported; print('torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.stdout.strip() == "False", done.stderr


def test_a_parameter_scaled_in_place_serves_one_run(rng):
    w, x = rng.standard_normal((4, 3), np.float32), rng.standard_normal((2, 3), np.float32)
    built = Builder()
    weight, given = built.weight("w", w), built.input("x", (2, 3))
    half = built.call("aten.div_.Tensor", weight, 2)
    built.output(built.call("aten.linear.default", given, half))
    model = gt.from_exported(built.program)
    given = gt.asarray(x, device="host")
    weights = {"w": gt.asarray(w, device="host")}
    with model.compile(target="host") as program:
        for _run in range(2):
            for found in (model.run(given), model.run(given, weights=weights), program(given)):
                np.testing.assert_allclose(found.numpy(), x @ w.T / 2, rtol=1e-5, atol=1e-6)
    assert (weights["w"].numpy() == w).all()
