"""Attention of exported transformers, from ONNX and from torch.export, becomes one call."""

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper
from onnx.reference import ReferenceEvaluator

import gputensor as gt

WIDTH, HEADS, SIZE = 32, 4, 8


@pytest.fixture(autouse=True)
def host():
    with gt.device("host"):
        yield


class Graph:
    """A graph of nodes as exporters write them."""

    def __init__(self, rng):
        self.rng, self.nodes, self.arrays = rng, [], []

    def array(self, values):
        name = f"array_{len(self.arrays)}"
        self.arrays.append(numpy_helper.from_array(np.asarray(values), name))
        return name

    def weight(self, *shape):
        return self.array(self.rng.standard_normal(shape).astype(np.float32) / shape[0] ** 0.5)

    def node(self, kind, *inputs, **attributes):
        name = f"{kind.lower()}_{len(self.nodes)}"
        self.nodes.append(helper.make_node(kind, list(inputs), [name], **attributes))
        return name

    def heads(self, x):
        y = self.node("Reshape", x, self.array(np.int64([0, 0, HEADS, SIZE])))
        return self.node("Transpose", y, perm=[0, 2, 1, 3])

    def layer(self, x, mask, form):
        q, k, v = (self.heads(self.node("MatMul", x, self.weight(WIDTH, WIDTH))) for _i in "qkv")
        k = self.node("Transpose", k, perm=[0, 1, 3, 2])
        scale = self.array(np.float32(SIZE**-0.5))
        if form == "scaled queries":
            q = self.node("Mul", q, scale)
        scores = self.node("MatMul", q, k)
        if form != "scaled queries":
            scores = self.node("Mul", scores, scale)
        if form == "where":
            scores = self.node("Where", mask, scores, self.array(np.float32(-1e9)))
        elif form != "none":
            scores = self.node("Add", scores, mask)
        y = self.node("MatMul", self.node("Softmax", scores, axis=-1), v)
        y = self.node("Transpose", y, perm=[0, 2, 1, 3])
        y = self.node("Reshape", y, self.array(np.int64([0, 0, WIDTH])))
        y = self.node("MatMul", y, self.weight(WIDTH, WIDTH))
        return self.node("Add", x, y)

    def model(self, inputs, output):
        value, kind = helper.make_tensor_value_info, onnx.TensorProto
        self.nodes[-1].output[0] = "y"
        given = [value(name, kind.DataType.Value(kind_), shape) for name, kind_, shape in inputs]
        out = [value("y", kind.FLOAT, output)]
        graph = helper.make_graph(self.nodes, "layers", given, out, self.arrays)
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)


@pytest.mark.parametrize("form", ["none", "add", "where", "scaled queries"])
@pytest.mark.parametrize("is_free", [True, False])
def test_onnx_transformers(rng, tmp_path, form, is_free):
    graph, x = Graph(rng), "x"
    for _layer in range(2):
        x = graph.layer(x, "mask", form)
    n = "n" if is_free else 5
    b = "b" if is_free else 2
    kind = "BOOL" if form == "where" else "FLOAT"
    inputs = [("x", "FLOAT", [b, n, WIDTH]), ("mask", kind, [b, 1, 1, n])]
    model = graph.model(inputs[: 1 if form == "none" else 2], [b, n, WIDTH])
    onnx.checker.check_model(model)
    onnx.save(model, tmp_path / "m.onnx")
    dims = {"b": gt.Dim("b", 1, 4), "n": gt.Dim("n", 2, 16)} if is_free else None
    program = gt.load_onnx(tmp_path / "m.onnx", dims=dims).compile()
    calls = [call.name for call in program.functions["layers"].calls]
    assert calls.count("attention") == 2 and "formula" not in calls
    seen = rng.random((2, 1, 1, 5)) < 0.7
    seen[..., 0] = True
    mask = seen if form == "where" else np.where(seen, 0, -1e9).astype(np.float32)
    given = {"x": rng.standard_normal((2, 5, WIDTH)).astype(np.float32), "mask": mask}
    given = {name: given[name] for name, *_rest in inputs[: 1 if form == "none" else 2]}
    (want,) = ReferenceEvaluator(model).run(None, given)
    found = program(*(gt.asarray(one) for one in given.values())).numpy()
    np.testing.assert_allclose(found, want, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("is_free", [True, False])
def test_onnx_masks_that_are_slices_of_a_larger_one(rng, tmp_path, is_free):
    """A mask as in GPT-2 becomes a flag if its length is fixed, otherwise a view of a weight."""
    graph = Graph(rng)
    count = graph.node("Gather", graph.node("Shape", "x"), graph.array(np.int64([1])))
    ends = graph.node("Concat", count, count, axis=0)
    zeros, axes = graph.array(np.int64([0, 0])), graph.array(np.int64([2, 3]))
    tri = graph.array(np.tri(16, dtype=bool)[None, None])
    graph.layer("x", graph.node("Slice", tri, zeros, ends, axes), "where")
    n = "n" if is_free else 5
    model = graph.model([("x", "FLOAT", [2, n, WIDTH])], [2, n, WIDTH])
    onnx.save(model, tmp_path / "m.onnx")
    dims = {"n": gt.Dim("n", 2, 16)} if is_free else None
    program = gt.load_onnx(tmp_path / "m.onnx", dims=dims).compile()
    (call,) = (one for one in program.functions["layers"].calls if one.name == "attention")
    assert call.attributes["is_causal"] == (not is_free)
    x = rng.standard_normal((2, 5, WIDTH)).astype(np.float32)
    (want,) = ReferenceEvaluator(model).run(None, {"x": x})
    np.testing.assert_allclose(program(gt.asarray(x)).numpy(), want, rtol=1e-4, atol=1e-5)


FORMS = ("product", "masked_fill", "attention", "causal", "added", "repeated", "expanded")


def module(torch, form):
    """An attention layer in one of the common forms."""
    functional = torch.nn.functional

    class Layer(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.qkv, self.out = torch.nn.Linear(WIDTH, 3 * WIDTH), torch.nn.Linear(WIDTH, WIDTH)
            ones = torch.ones(1, 1, 64, 64, dtype=torch.bool)
            self.register_buffer("seen", torch.tril(ones))

        def forward(self, x):
            b, n, _c = x.shape
            parts = self.qkv(x).split(WIDTH, dim=2)
            q, k, v = (part.view(b, n, HEADS, SIZE).transpose(1, 2) for part in parts)
            return self.out(self.attend(q, k, v).transpose(1, 2).reshape(b, n, WIDTH))

        def attend(self, q, k, v):
            b, _h, n, _d = q.shape
            if form in ("attention", "causal"):
                causal = form == "causal"
                return functional.scaled_dot_product_attention(q, k, v, is_causal=causal)
            if form == "repeated":
                k, v = (one[:, :2].repeat_interleave(2, 1) for one in (k, v))
            if form == "expanded":
                wide = (one[:, :2, None].expand(b, 2, 2, n, SIZE) for one in (k, v))
                k, v = (one.reshape(b, HEADS, n, SIZE) for one in wide)
            scores = (q @ k.transpose(-2, -1)) * SIZE**-0.5
            if form == "masked_fill":
                scores = scores.masked_fill(~self.seen[:, :, :n, :n], float("-inf"))
            if form == "added":
                places = torch.arange(n)
                mask = torch.where(places[None] <= places[:, None], 0.0, -3e38)
                scores = scores + mask[None, None]
            shares = functional.softmax(scores, dim=-1, dtype=torch.float32).to(q.dtype)
            return shares @ v

    torch.manual_seed(0)
    return Layer().eval()


@pytest.mark.filterwarnings("ignore")  # a warning of torch about its tree specs
@pytest.mark.parametrize("is_decomposed", [False, True])
@pytest.mark.parametrize("form", FORMS)
def test_torch_modules(form, is_decomposed):
    torch = pytest.importorskip("torch", reason="an installed torch runs these")
    layer, x = module(torch, form), torch.randn(2, 12, WIDTH)
    exported = torch.export.export(layer, (x,))
    if is_decomposed:
        exported = exported.run_decompositions()
    program = gt.from_exported(exported).compile()
    (function,) = program.functions.values()
    (call,) = (call for call in function.calls if call.name == "attention")
    assert "formula" not in {call.name for call in function.calls}
    assert call.attributes["is_causal"] == (form in ("causal", "added", "masked_fill"))
    assert call.reads[1].shape[1] == (2 if form in ("repeated", "expanded") else HEADS)
    want = layer(x).detach().numpy()
    found = program(gt.asarray(x.numpy())).numpy()
    np.testing.assert_allclose(found, want, rtol=1e-4, atol=1e-5)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("is_decomposed", [False, True])
@pytest.mark.parametrize("is_free", [False, True])
def test_layers_of_torch(is_free, is_decomposed):
    """An encoder layer, and a decoder layer of fixed length whose mask is causal."""
    torch = pytest.importorskip("torch", reason="an installed torch runs these")
    torch.manual_seed(0)
    how = {"batch_first": True, "dropout": 0.0}

    class Layers(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.encoder = torch.nn.TransformerEncoderLayer(WIDTH, HEADS, 64, **how)
            self.decoder = torch.nn.TransformerDecoderLayer(WIDTH, HEADS, 64, **how)

        def forward(self, x):
            y = self.encoder(x)
            if is_free:
                return y
            mask = torch.nn.Transformer.generate_square_subsequent_mask(x.shape[1])
            return self.decoder(y, y, tgt_mask=mask)

    layers, x = Layers().eval(), torch.randn(2, 12, WIDTH)
    free = {"x": {1: torch.export.Dim("n", min=2, max=32)}} if is_free else None
    with torch.no_grad():
        exported = torch.export.export(layers, (x,), dynamic_shapes=free)
        want = layers(x).numpy()
    if is_decomposed:
        exported = exported.run_decompositions()
    program = gt.from_exported(exported).compile()
    (function,) = program.functions.values()
    calls = [call for call in function.calls if call.name == "attention"]
    wanted = [False] if is_free else [False, True, False]
    assert [call.attributes["is_causal"] for call in calls] == wanted
    assert not any("exp" in str(call.attributes) for call in function.calls)
    found = program(gt.asarray(x.numpy())).numpy()
    np.testing.assert_allclose(found, want, rtol=1e-4, atol=2e-5)
