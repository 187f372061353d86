"""Operators of the domain com.microsoft, which ONNX Runtime writes when it optimizes a graph."""

import itertools

from gputensor.errors import Described, argument_error
from gputensor.importers.onnx_neural import layer_normalization, rotary_embedding
from gputensor.importers.onnx_quantized import requantized
from gputensor.importers.onnx_reduction import centred, gemm
from gputensor.importers.onnx_registry import find, operator
from gputensor.importers.onnx_values import Missing
from gputensor.importers.public_functions import gt

__all__ = []

DOMAIN = "com.microsoft"


def microsoft(name, **options):
    return operator(name, domain=DOMAIN, **options)


for _name in ("DequantizeLinear", "QuantizeLinear"):
    microsoft(_name, folds=True)(find("", _name, 21).function)


# ---- activations and products


@microsoft("Gelu")
def gelu(x):
    return gt.gelu(x)


@microsoft("BiasGelu")
def bias_gelu(x, bias):
    return gt.gelu(x + bias)


@microsoft("FastGelu")
def fast_gelu(x, bias=None):
    return gt.gelu(x if bias is None else x + bias, approximate="tanh")


@microsoft("QuickGelu")
def quick_gelu(x, *, alpha=1.702):
    return x * gt.sigmoid(x * alpha)


def _activated(y, name, alpha=None):
    functions = {
        None: lambda x: x, "": lambda x: x, "Relu": gt.relu, "Tanh": gt.tanh,
        "Sigmoid": gt.sigmoid,
        "LeakyRelu": lambda x: gt.where(x < 0, x * (0.01 if alpha is None else alpha), x),
    }  # fmt: skip
    if name not in functions:
        raise argument_error(Missing, "activation", name, "Relu, Tanh, Sigmoid or LeakyRelu")
    return functions[name](y)


@microsoft("FusedMatMul")
def fused_matmul(a, b, *, alpha=1.0, transA=0, transB=0, transBatchA=0, transBatchB=0):
    if transBatchA or transBatchB:
        got = Described("transBatchA or transBatchB")
        raise argument_error(Missing, "FusedMatMul", got, "transA and transB")
    a = gt.matrix_transpose(a) if transA else a
    b = gt.matrix_transpose(b) if transB else b
    product = gt.matmul(a, b)
    return product if alpha == 1 else product * alpha


@microsoft("FusedGemm")
def fused_gemm(
    a, b, c=None, *, alpha=1.0, beta=1.0, transA=0, transB=0, activation=None,
    activation_alpha=None, activation_beta=None, activation_gamma=None,
):  # fmt: skip
    y = gemm(a, b, c, alpha=alpha, beta=beta, transA=transA, transB=transB)
    return _activated(y, activation, activation_alpha)


@microsoft("FusedConv")
def fused_conv(
    x, w, b=None, other=None, *, activation=None, activation_params=None, auto_pad="NOTSET",
    dilations=None, group=1, kernel_shape=None, pads=None, strides=None,
):  # fmt: skip
    y = find("", "Conv", 21).function(
        x, w, b, auto_pad=auto_pad, dilations=dilations, group=group, kernel_shape=kernel_shape,
        pads=pads, strides=strides,
    )  # fmt: skip
    y = y if other is None else y + other
    return _activated(y, activation, (activation_params or [None])[0])


# ---- norms beside a residual


def _with_skip(x, skip, bias):
    total = x + skip
    return total if bias is None else total + bias


@microsoft("SkipLayerNormalization")
def skip_layer_normalization(x, skip, gamma, beta=None, bias=None, *, epsilon=1e-12, context):
    total = _with_skip(x, skip, bias)
    y = gt.layer_norm(total, gamma, beta, eps=epsilon)
    return (y, None, None, total)[: context.n_outputs]


@microsoft("SkipSimplifiedLayerNormalization")
def skip_rms_normalization(x, skip, gamma, bias=None, *, epsilon=1e-12, context):
    total = _with_skip(x, skip, bias)
    return (gt.rms_norm(total, gamma, eps=epsilon), None, None, total)[: context.n_outputs]


@microsoft("LayerNormalization")
def microsoft_layer_normalization(
    x, weight, bias=None, *, axis=-1, epsilon=1e-5, stash_type=1, context
):
    how = {"axis": axis, "epsilon": epsilon, "stash_type": stash_type, "context": context}
    return layer_normalization(x, weight, bias, **how)


@microsoft("EmbedLayerNormalization")
def embed_layer_normalization(
    tokens, segments, words, positions, kinds, *others, epsilon=1e-12, mask_index_type=0, context
):
    gamma, beta, mask, places = (*others, None, None)[:4]
    length = tokens.shape[1]
    total = gt.take(words, tokens, 0)
    total = total + (positions[:length] if places is None else gt.take(positions, places, 0))
    total = total if kinds is None else total + gt.take(kinds, segments, 0)
    lengths = gt.zeros((tokens.shape[0],), dtype="int32", device=tokens.device)
    if mask is not None:
        lengths = gt.sum(mask, axis=1).astype("int32")
    found = gt.layer_norm(total, gamma, beta, eps=epsilon), lengths, total
    return found[: context.n_outputs]


# ---- attention


def _heads(x, count):
    """Return (batch, length, count * size) as (batch, count, length, size)."""
    if x.ndim == 4:
        return x
    batch, length, width = x.shape
    return gt.moveaxis(gt.reshape(x, (batch, length, count, width // count)), 2, 1)


def _parts(x, sizes):
    """Return the parts of the last axis, which have these extents."""
    ends = list(itertools.accumulate(sizes))
    return [x[..., end - size : end] for size, end in zip(sizes, ends, strict=True)]


def _joined(x):
    batch, count, length, size = x.shape
    return gt.reshape(gt.moveaxis(x, 1, 2), (batch, length, count * size))


def _masked(name, mask, n_keys, addend):
    """Return a mask of keys and a sum of scores as one mask of `scaled_dot_product_attention`."""
    if mask is None:
        return addend
    if mask.ndim == 1:
        places = gt.arange(n_keys, dtype=mask.dtype, device=mask.device)
        mask = places < gt.expand_dims(mask, 1)
    elif mask.ndim > 3:
        raise argument_error(Missing, name, Described("a mask of 4 axes"), "at most 3 axes")
    else:
        mask = gt.not_equal(mask, 0)
    mask = gt.expand_dims(mask, 1)
    mask = gt.expand_dims(mask, 1) if mask.ndim == 3 else mask
    return mask if addend is None else gt.where(mask, addend, -10000.0).astype(addend.dtype)


def _attended(name, q, k, v, masks, how):
    past, (mask, addend), (scale, is_causal) = how[0], masks, how[1]
    if past is not None:
        k, v = gt.concat([past[0], k], axis=2), gt.concat([past[1], v], axis=2)
    if mask is not None and mask.ndim == 1 and mask.shape[0] != q.shape[0]:
        got = Described(f"{mask.shape[0]} numbers as a mask of {q.shape[0]} rows")
        raise argument_error(Missing, name, got, "one length for each row")
    mask = _masked(name, mask, k.shape[2], addend)
    y = gt.scaled_dot_product_attention(
        q, k, v, mask, is_causal=bool(is_causal), scale=scale or None
    )
    return _joined(y), k, v


@microsoft("MultiHeadAttention")
def multi_head_attention(
    q, k=None, v=None, bias=None, mask=None, addend=None, *past,
    num_heads, mask_filter_value=-10000.0, scale=0.0, unidirectional=0, context,
):  # fmt: skip
    if k is None or v is None or q.ndim != 3:
        got = Described("packed queries, keys and values")
        raise argument_error(Missing, "MultiHeadAttention", got, "three inputs")
    if bias is not None:
        n, m = q.shape[-1], (k.shape[-1] if k.ndim == 3 else 0)
        q = q + bias[:n]
        if k.ndim == 3:
            k, v = k + bias[n : n + m], v + bias[n + m :]
    q, k, v = (_heads(x, num_heads) for x in (q, k, v))
    if any(one is not None for one in past[2:]):
        got = Described("the length of a shared cache")
        raise argument_error(Missing, "MultiHeadAttention", got, "8 inputs")
    how = (past[:2] if past and past[0] is not None else None), (scale, unidirectional)
    return _attended("MultiHeadAttention", q, k, v, (mask, addend), how)[: context.n_outputs]


@microsoft("Attention")
def attention(
    x, weights, bias=None, mask=None, past=None, addend=None, past_length=None, *, num_heads,
    do_rotary=0, mask_filter_value=-10000.0, past_present_share_buffer=0, qkv_hidden_sizes=None,
    rotary_embedding_dim=0, scale=0.0, unidirectional=0, context,
):  # fmt: skip
    if do_rotary or past_present_share_buffer:
        got = Described("do_rotary or past_present_share_buffer")
        raise argument_error(Missing, "Attention", got, "neither")
    packed = gt.matmul(x, weights)
    packed = packed if bias is None else packed + bias
    sizes = qkv_hidden_sizes or [packed.shape[-1] // 3] * 3
    q, k, v = (_heads(part, num_heads) for part in _parts(packed, sizes))
    past = None if past is None else (past[0], past[1])
    how = past, (scale, unidirectional)
    y, k, v = _attended("Attention", q, k, v, (mask, addend), how)
    return (y,) if context.n_outputs == 1 else (y, gt.stack([k, v], 0))


@microsoft("RotaryEmbedding")
def microsoft_rotary_embedding(
    x, places, cosines, sines, *, interleaved=0, is_packed_batching=0, num_heads=0,
    rotary_embedding_dim=0, scale=1.0,
):  # fmt: skip
    length = x.shape[2] if x.ndim == 4 else x.shape[1]
    if places.size == 1:
        steps = gt.arange(length, dtype=places.dtype, device=x.device)
        places = gt.broadcast_to(gt.reshape(places, (1, 1)) + steps, (x.shape[0], length))
    if x.ndim == 3 and not num_heads:
        num_heads = x.shape[2] // (2 * cosines.shape[1])
    how = {"interleaved": interleaved, "num_heads": num_heads}
    return rotary_embedding(
        x, cosines, sines, places, rotary_embedding_dim=rotary_embedding_dim, **how
    )


@microsoft("GroupQueryAttention")
def group_query_attention(
    q, k, v, past_key, past_value, last, *others, num_heads,
    kv_num_heads, do_rotary=0, k_quant_type="NONE", kv_cache_bit_width=0, local_window_size=-1,
    qk_output=0, rotary_interleaved=0, scale=0.0, smooth_softmax=0, softcap=0.0,
    v_quant_type="NONE", context,
):  # fmt: skip
    """`last` is the place of the last valid key of each row; new keys end there."""
    _total, cosines, sines, *rest = (*others, None, None)[: max(len(others), 3)]
    if smooth_softmax or any(one is not None for one in rest) or kv_cache_bit_width:
        got = Described("positions, a sum of scores, sinks, or a quantized cache")
        raise argument_error(Missing, "GroupQueryAttention", got, "the form without them")
    if k is None:
        size = q.shape[-1] // (num_heads + 2 * kv_num_heads)
        q, k, v = _parts(q, [num_heads * size, kv_num_heads * size, kv_num_heads * size])
    batch, length = q.shape[:2]
    start = gt.maximum(gt.reshape(last.astype("int64"), (-1, 1)) + (1 - length), 0)
    at = gt.broadcast_to(start + gt.arange(length, device=q.device), (batch, length))
    q, k, v = _heads(q, num_heads), _heads(k, kv_num_heads), _heads(v, kv_num_heads)
    if do_rotary:
        how = {"interleaved": rotary_interleaved, "num_heads": 0, "rotary_embedding_dim": 0}
        how["rotary_embedding_dim"] = 2 * cosines.shape[1]
        q, k = (rotary_embedding(x, cosines, sines, at, **how) for x in (q, k))
    if past_key is not None and past_key.shape[2]:
        k, v = _placed(past_key, k, at), _placed(past_value, v, at)
    places = gt.arange(k.shape[2], device=q.device)
    mask = places <= gt.expand_dims(at, 2)
    if local_window_size >= 0:
        mask = gt.logical_and(mask, places > gt.expand_dims(at, 2) - local_window_size)
    y = gt.scaled_dot_product_attention(
        q, k, v, gt.expand_dims(mask, 1), scale=scale or None, soft_cap=softcap or None
    )
    return (_joined(y), k, v)[: context.n_outputs]


def _placed(past, new, at):
    """Return a longer cache (batch, heads, length, size) with new rows at their places."""
    room = gt.zeros((*past.shape[:2], new.shape[2], past.shape[3]), dtype=past.dtype,
                    device=past.device)  # fmt: skip
    found = gt.moveaxis(gt.concat([past, room], axis=2), 2, 1)
    rows = gt.reshape(gt.arange(past.shape[0], device=past.device), (-1, 1))
    found[rows, at] = gt.moveaxis(new, 2, 1)
    return gt.moveaxis(found, 1, 2)


# ---- quantized values


@microsoft("MatMulNBits")
def matmul_n_bits(
    a, b, scales, points=None, order=None, bias=None, *, K, N, bits=4, block_size, accuracy_level=0,
    weight_prepacked=0, is_grouped=False,
):  # fmt: skip
    if is_grouped:  # by group_weights: `points` are offsets
        y = gt.quantized_linear(a, b, scales, bias)
        if points is None:
            return y
        sums = gt.sum(gt.reshape(a, (*a.shape[:-1], points.shape[0], -1)), axis=-1)
        return y + gt.matmul(sums, points)
    if bits not in (2, 4, 8) or order is not None or weight_prepacked:
        got = Described(f"{bits} bits, or with g_idx or weight_prepacked")
        raise argument_error(Missing, "MatMulNBits", got, "2, 4 or 8 bits with neither")
    blocks = -(-K // block_size)
    codes = gt.reshape(_unpacked(b, bits), (N, blocks, -1))[..., :block_size]
    if points is None:
        zero = float(1 << (bits - 1))
    elif points.dtype.kind == "u":
        zero = _unpacked(gt.reshape(points, (N, -1)), bits)[:, :blocks]
        zero = gt.expand_dims(zero, 2).astype(scales.dtype)
    else:
        zero = gt.reshape(points, (N, blocks, 1))
    weights = (codes.astype(scales.dtype) - zero) * gt.reshape(scales, (N, blocks, 1))
    weights = gt.reshape(weights, (N, -1))[:, :K].astype(a.dtype, copy=False)
    return gt.linear(a, weights, bias)


def _unpacked(x, bits):
    """Return the numbers of some bits in bytes, the lowest first."""
    if bits == 8:
        return x
    mask = (1 << bits) - 1
    parts = [gt.bitwise_and(gt.bitwise_right_shift(x, i), mask) for i in range(0, 8, bits)]
    return gt.reshape(gt.stack(parts, -1), (*x.shape[:-1], -1))


def _plain(x, scale, zero):
    x = x.astype("float32")
    x = x if zero is None else x - zero.astype("float32")
    return x * scale


def _q_linear(name, function):
    def run(*values):
        a, scale, zero = values[0], values[6], (*values, None)[7]
        y = function(_plain(*values[:3]), _plain(*values[3:6]))
        return requantized(y / scale, 1.0, _point(zero, a))

    microsoft(name)(run)


def _point(zero, like):
    if zero is not None:
        return zero
    return gt.zeros((), dtype=like.dtype, device=like.device)


_q_linear("QLinearAdd", gt.add)
_q_linear("QLinearMul", gt.multiply)


@microsoft("QLinearSigmoid")
def q_linear_sigmoid(x, x_scale, x_zero, scale, zero=None):
    return requantized(gt.sigmoid(_plain(x, x_scale, x_zero)) / scale, 1.0, _point(zero, x))


@microsoft("QLinearLeakyRelu")
def q_linear_leaky_relu(x, x_scale, x_zero, scale, zero=None, *, alpha=0.01):
    y = _plain(x, x_scale, x_zero)
    return requantized(gt.where(y < 0, y * alpha, y) / scale, 1.0, _point(zero, x))


@microsoft("QLinearGlobalAveragePool")
def q_linear_global_average_pool(x, x_scale, x_zero, scale, zero, *, channels_last=0):
    axes = tuple(range(1, x.ndim - 1)) if channels_last else tuple(range(2, x.ndim))
    y = gt.mean(_plain(x, x_scale, x_zero), axis=axes, keepdims=True)
    return requantized(y / scale, 1.0, _point(zero, x))


@microsoft("QLinearConcat")
def q_linear_concat(scale, zero, *triples, axis):
    parts = [_plain(*triples[i : i + 3]) for i in range(0, len(triples), 3)]
    return requantized(gt.concat(parts, axis=axis) / scale, 1.0, zero)


@microsoft("MatMulIntegerToFloat")
def matmul_integer_to_float(a, b, a_scale, b_scale, a_zero=None, b_zero=None, bias=None):
    y = gt.matmul(centred(a, a_zero, 0), centred(b, b_zero, 1)).astype(a_scale.dtype)
    y = y * (a_scale * b_scale)
    return y if bias is None else y + bias


@microsoft("DynamicQuantizeMatMul")
def dynamic_quantize_matmul(a, b, b_scale, b_zero=None, bias=None):
    low, high = gt.minimum(gt.min(a), 0), gt.maximum(gt.max(a), 0)
    scale = (high - low) / 255
    scale = gt.where(gt.equal(scale, 0), 1, scale)
    zero = gt.clip(gt.round(-low / scale), 0, 255)
    codes = gt.clip(gt.round(a / scale) + zero, 0, 255) - zero
    y = gt.matmul(codes.astype("int32"), centred(b, b_zero, 1)).astype(a.dtype)
    y = y * (scale * b_scale)
    return y if bias is None else y + bias
