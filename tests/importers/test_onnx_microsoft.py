"""Operators of com.microsoft, as ONNX Runtime writes them, against NumPy in float64."""

import numpy as np
import pytest
from onnx import helper, numpy_helper

import gputensor as gt
from gputensor.importers.onnx_model import model_of

DOMAIN = "com.microsoft"


def ran(kind, *values, outputs=1, weights=(), **attributes):
    """The outputs of one node, run eagerly and compiled; `weights` are the places of initializers.

    A value of None is an input that the node omits.
    """
    names = [f"x{i}" if value is not None else "" for i, value in enumerate(values)]
    results = [f"y{i}" for i in range(outputs)]
    node = helper.make_node(kind, names, results, domain=DOMAIN, **attributes)
    given = {name: value for name, value in zip(names, values, strict=True) if name}
    stored = {f"x{i}" for i in weights}
    types = {name: helper.np_dtype_to_tensor_dtype(x.dtype) for name, x in given.items()}
    graph = helper.make_graph(
        [node], "one",
        [helper.make_tensor_value_info(name, types[name], x.shape)
         for name, x in given.items() if name not in stored],
        [helper.make_tensor_value_info(name, 1, None) for name in results],
        [numpy_helper.from_array(given[name], name) for name in sorted(stored)],
    )  # fmt: skip
    opsets = [helper.make_opsetid("", 21), helper.make_opsetid(DOMAIN, 1)]
    model = model_of(helper.make_model(graph, opset_imports=opsets, ir_version=10))
    inputs = [gt.asarray(x, device="host") for name, x in given.items() if name not in stored]
    eager = model.run(*inputs)
    with model.compile(target="host") as program:
        compiled = program(*inputs)
    if outputs == 1:
        eager, compiled = [eager], [compiled]
    for a, b in zip(eager, compiled, strict=True):
        most = np.abs(a.numpy().astype(np.float64)).max()
        np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=1e-4, atol=1e-4 + 1e-5 * most)
    return [one.numpy() for one in eager]


def model_of_node(kind, x, *values, dtype=None, **attributes):
    """The model of one node, whose inputs after the first are initializers."""
    names = ["x", *(f"x{i}" if one is not None else "" for i, one in enumerate(values))]
    node = helper.make_node(kind, names, ["y"], domain=DOMAIN, **attributes)
    stored = [
        numpy_helper.from_array(one, name)
        for name, one in zip(names[1:], values, strict=True)
        if name
    ]
    inputs = [helper.make_tensor_value_info("x", 1, x.shape)]
    outputs = [helper.make_tensor_value_info("y", 1, None)]
    graph = helper.make_graph([node], "one", inputs, outputs, stored)
    opsets = [helper.make_opsetid("", 21), helper.make_opsetid(DOMAIN, 1)]
    return model_of(helper.make_model(graph, opset_imports=opsets, ir_version=10), dtype=dtype)


def draw(rng, *shape):
    return rng.standard_normal(shape).astype(np.float32)


def softmax(x):
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def heads(x, count):
    return x.astype(np.float64).reshape(*x.shape[:2], count, -1).swapaxes(1, 2)


def attended(q, k, v, mask=0.0):
    """Attention of (batch, heads, length, size), as (batch, length, width)."""
    y = softmax(q @ k.swapaxes(-1, -2) / np.sqrt(q.shape[-1]) + mask) @ v
    return y.swapaxes(1, 2).reshape(q.shape[0], q.shape[2], -1)


def close(found, wanted):
    np.testing.assert_allclose(found, wanted, rtol=1e-3, atol=1e-4)


def test_products_and_activations(rng):
    a, b = draw(rng, 2, 5, 3), draw(rng, 2, 4, 5)
    (y,) = ran("FusedMatMul", a, b, alpha=0.5, transA=1, transB=1)
    close(y, 0.5 * a.astype(np.float64).swapaxes(1, 2) @ b.swapaxes(1, 2))
    (y,) = ran("FusedGemm", a[0], b[0], transA=1, transB=1, activation="Relu")
    close(y, np.maximum(a[0].T.astype(np.float64) @ b[0].T, 0))
    (y,) = ran("QuickGelu", a)
    close(y, a / (1 + np.exp(-1.702 * a.astype(np.float64))))


@pytest.mark.parametrize("kind", ["SkipLayerNormalization", "SkipSimplifiedLayerNormalization"])
def test_norms_beside_a_residual(kind, rng):
    x, skip, gamma, beta, bias = draw(rng, 2, 3, 8), draw(rng, 2, 3, 8), *draw(rng, 3, 8)
    is_plain = kind == "SkipLayerNormalization"
    more = (beta, bias) if is_plain else (bias,)
    y, _mean, _scale, total = full(kind, x, skip, gamma, *more)
    wanted = x.astype(np.float64) + skip + bias
    close(total, wanted)
    centre = wanted.mean(-1, keepdims=True) if is_plain else 0
    scale = np.sqrt(((wanted - centre) ** 2).mean(-1, keepdims=True) + 1e-5)
    close(y, (wanted - centre) / scale * gamma + (beta if is_plain else 0))


def full(kind, *values):
    """The outputs of a node that omits its second and third ones."""
    names = [f"x{i}" for i in range(len(values))]
    node = helper.make_node(kind, names, ["y", "", "", "sum"], domain=DOMAIN, epsilon=1e-5)
    graph = helper.make_graph(
        [node], "one",
        [helper.make_tensor_value_info(name, 1, x.shape)
         for name, x in zip(names, values, strict=True)],
        [helper.make_tensor_value_info(name, 1, None) for name in ("y", "sum")],
    )  # fmt: skip
    opsets = [helper.make_opsetid("", 21), helper.make_opsetid(DOMAIN, 1)]
    model = model_of(helper.make_model(graph, opset_imports=opsets, ir_version=10))
    y, total = model.run(*(gt.asarray(x, device="host") for x in values))
    return y.numpy(), None, None, total.numpy()


def test_attention_of_several_heads(rng):
    q, k, v = draw(rng, 2, 3, 8), draw(rng, 2, 5, 8), draw(rng, 2, 5, 8)
    bias, addend = draw(rng, 24), draw(rng, 1, 2, 3, 5)
    keys = np.int32([[1, 1, 1, 1, 1], [1, 1, 1, 0, 0]])
    (y,) = ran("MultiHeadAttention", q, k, v, bias, keys, num_heads=2)
    mask = np.where(keys[:, None, None] == 0, -np.inf, 0)
    parts = q + bias[:8], k + bias[8:16], v + bias[16:]
    close(y, attended(*(heads(one, 2) for one in parts), mask))
    (y,) = ran("MultiHeadAttention", q, k, v, None, None, addend, num_heads=2)
    close(y, attended(heads(q, 2), heads(k, 2), heads(v, 2), addend))


def test_packed_causal_attention_with_earlier_keys(rng):
    x, w, b = draw(rng, 2, 3, 8), draw(rng, 8, 24), draw(rng, 24)
    past = draw(rng, 2, 2, 2, 4, 4)
    y, present = ran("Attention", x, w, b, None, past, outputs=2, num_heads=2, unidirectional=1)
    q, k, v = (heads(one, 2) for one in np.split(x.astype(np.float64) @ w + b, 3, -1))
    k, v = np.concatenate([past[0], k], 2), np.concatenate([past[1], v], 2)
    mask = np.where(np.tril(np.ones((3, 7)), 4) > 0, 0, -np.inf)
    close(y, attended(q, k, v, mask))
    close(present, np.stack([k, v]))


def turned(x, places):
    """Rotary positions of (batch, heads, length, size), by halves."""
    size = x.shape[-1] // 2
    angle = places[:, None, :, None] / 100.0 ** (np.arange(size) / size)
    a, b = x[..., :size], x[..., size:]
    return np.concatenate([a * np.cos(angle) - b * np.sin(angle),
                           b * np.cos(angle) + a * np.sin(angle)], -1)  # fmt: skip


def cosines_sines(count, size):
    angle = np.arange(count)[:, None] / 100.0 ** (np.arange(size) / size)
    return np.cos(angle).astype(np.float32), np.sin(angle).astype(np.float32)


@pytest.mark.parametrize("window", [-1, 3])
def test_grouped_attention_with_a_cache_and_rotary_positions(window, rng):
    packed = draw(rng, 2, 2, (4 + 2 + 2) * 4)
    past_k, past_v = draw(rng, 2, 2, 5, 4), draw(rng, 2, 2, 5, 4)
    last = np.int32([6, 4])  # so the new keys are at 5 and 6, and at 3 and 4
    y, k, v = ran(
        "GroupQueryAttention", packed, None, None, past_k, past_v, last, np.int32(7),
        *cosines_sines(9, 2), outputs=3, num_heads=4, kv_num_heads=2, do_rotary=1,
        local_window_size=window,
    )  # fmt: skip
    q, new_k, new_v = np.split(packed, [16, 24], -1)
    at = np.array([[5, 6], [3, 4]])
    q, new_k, new_v = turned(heads(q, 4), at), turned(heads(new_k, 2), at), heads(new_v, 2)
    for row in range(2):
        wide_k, wide_v = (
            np.concatenate([x[row], np.zeros((2, 2, 4))], 1) for x in (past_k, past_v)
        )
        wide_k[:, at[row]], wide_v[:, at[row]] = new_k[row], new_v[row]
        close(k[row, :, : last[row] + 1], wide_k[:, : last[row] + 1])
        close(v[row, :, : last[row] + 1], wide_v[:, : last[row] + 1])
        seen = np.arange(7) <= at[row][:, None]
        if window > 0:
            seen &= np.arange(7) > at[row][:, None] - window
        wide = [x.repeat(2, 0)[None] for x in (wide_k, wide_v)]
        close(y[row], attended(q[row][None], *wide, np.where(seen, 0, -np.inf))[0])


@pytest.mark.parametrize("bits", [4, 8])
def test_products_with_weights_of_few_bits(bits, rng):
    n, k, block = 5, 24, 16
    codes = rng.integers(0, 1 << bits, (n, 32))
    scales = rng.uniform(0.5, 1, (n, 2)).astype(np.float32)
    points = rng.integers(0, 1 << bits, (n, 2))
    x = draw(rng, 3, k)

    def packed(numbers):
        numbers = numbers.astype(np.uint8)
        return numbers[..., 0::2] | numbers[..., 1::2] << 4 if bits == 4 else numbers

    stored = packed(codes).reshape(n, 2, -1)
    (y,) = ran("MatMulNBits", x, stored, scales.reshape(-1), packed(points).reshape(-1),
               weights=(1, 2, 3), K=k, N=n, bits=bits, block_size=block)  # fmt: skip
    wide = (codes.reshape(n, 2, 16) - points[..., None]) * scales[..., None].astype(np.float64)
    wanted = x.astype(np.float64) @ wide.reshape(n, 32)[:, :k].T
    np.testing.assert_allclose(y, wanted, rtol=1e-3, atol=1e-5 * np.abs(wide).max() * 24 * 4)


@pytest.mark.parametrize("points", ["none", "centre", "codes", "floats"])
@pytest.mark.parametrize("block", [32, 64, 128, 256, "all"])
@pytest.mark.parametrize("bits", [4, 8])
def test_weights_of_few_bits_stay_so(bits, block, points, rng):
    n = int(rng.integers(1, 40))
    k = 48 if block == "all" else block * int(rng.integers(2, 4))
    block = 64 if block == "all" else block
    blocks, centre = -(-k // block), 1 << bits - 1
    codes = rng.integers(0, 1 << bits, (n, blocks * block))
    scales = rng.choice(np.float32([0.5, 1]), (n, blocks))  # all sums are exact
    zeros = rng.integers(0, 1 << bits, (n, blocks))
    zeros = np.full((n, blocks), centre) if points in ("none", "centre") else zeros
    x, bias = (rng.integers(-3, 4, shape).astype(np.float32) for shape in ((2, 3, k), n))

    def packed(numbers):
        numbers = numbers.astype(np.uint8)
        if bits == 8:
            return numbers
        numbers = np.pad(numbers, [(0, 0), (0, numbers.shape[1] % 2)])
        return numbers[:, 0::2] | numbers[:, 1::2] << 4

    stored = {"none": None, "floats": zeros.astype(np.float32)}.get(points, packed(zeros))
    inputs = x, packed(codes).reshape(n, blocks, -1), scales, stored, None, bias
    how = {"K": k, "N": n, "bits": bits, "block_size": block}
    model = model_of_node("MatMulNBits", *inputs, **how)
    wide_model = model_of_node("MatMulNBits", *inputs, **how, dtype="float64")
    wide = (codes.reshape(n, blocks, block) - zeros[..., None]) * scales[..., None].astype(float)
    wide = wide.reshape(n, -1)[:, :k]
    wanted = x.astype(np.float64) @ wide.T + bias
    y = wide_model.run(gt.asarray(x, dtype="float64", device="host"))
    np.testing.assert_array_equal(y.numpy(), wanted)
    with model.compile(target="host") as program:
        names = [call.name for call in program.data.functions["one"].calls]
        assert "quantized_product" in names
        assert ("product" in names) == (points in ("codes", "floats"))
        for run in (model.run, program):
            np.testing.assert_array_equal(run(gt.asarray(x, device="host")).numpy(), wanted)


def test_sums_of_quantized_values(rng):
    a, b = (rng.integers(-128, 128, (3, 4)).astype(np.int8) for _i in range(2))
    scales = [np.float32(one) for one in (0.25, 0.5, 2.0)]  # exact, so that ties are the same
    zeros = [np.int8(one) for one in (3, -5, 7)]
    (y,) = ran("QLinearAdd", a, scales[0], zeros[0], b, scales[1], zeros[1], scales[2], zeros[2])
    wide = 0.25 * (a.astype(np.float64) - 3) + 0.5 * (b.astype(np.float64) + 5)
    assert (y == np.clip(np.rint(wide / 2) + 7, -128, 127)).all()


def test_a_product_that_quantizes_its_rows(rng):
    a, b = draw(rng, 3, 6), rng.integers(-9, 10, (6, 4)).astype(np.int8)
    (y,) = ran("DynamicQuantizeMatMul", a, b, np.float32(0.5), weights=(1, 2))
    # Each element of `a` is wrong by at most a scale, the 255th part of its range.
    bound = (max(a.max(), 0) - min(a.min(), 0)) / 255 * 0.5 * np.abs(b).sum(0) + 1e-4
    assert (np.abs(y - a.astype(np.float64) @ b * 0.5) <= bound).all()
