"""ONNX operators of networks: softmax, norms, dropout, attention, positions, losses."""

import math

import numpy as np

from gputensor.importers.onnx_registry import EXPANDED, operator
from gputensor.importers.onnx_values import number, numpy_dtype
from gputensor.importers.public_functions import gt

__all__ = []

# Operators that are run by the standard's definition in terms of other operators.
EXPANDED |= {
    ("", name)
    for name in (
        "AffineGrid", "BlackmanWindow", "DynamicQuantizeLinear",
        "HammingWindow", "HannWindow", "LinearAttention", "MeanVarianceNormalization",
        "NegativeLogLikelihoodLoss", "SoftmaxCrossEntropyLoss", "SwiGLU",
    )
}  # fmt: skip
EXPANDED.add(("ai.onnx.preview", "FlexAttention"))


def _of_rows(function, x, axis):
    """Apply a row function as in operator sets below 13: all axes from `axis` on form one row."""
    axis = axis % max(x.ndim, 1)
    rows = gt.reshape(x, (math.prod(x.shape[:axis]), math.prod(x.shape[axis:])))
    return gt.reshape(function(rows, 1), x.shape)


def _hardmax(x, axis):
    places = gt.arange(x.shape[axis], dtype="int64", device=x.device)
    places = gt.reshape(places, [-1 if i == axis % x.ndim else 1 for i in range(x.ndim)])
    return gt.equal(places, gt.argmax(x, axis=axis, keepdims=True)).astype(x.dtype)


def _softmax(x, axis):
    return gt.softmax(x, axis=axis)


def _log_softmax(x, axis):
    return gt.log_softmax(x, axis=axis)


def _row_function(name, function):
    operator(name)(lambda x, *, axis: _of_rows(function, x, axis))
    operator(name, 13)(lambda x, *, axis: function(x, axis))


_row_function("Softmax", _softmax)
_row_function("LogSoftmax", _log_softmax)
_row_function("Hardmax", _hardmax)


# ---- norms


def _axes(x, axis):
    return tuple(range(axis % x.ndim, x.ndim))


@operator("LayerNormalization")
def layer_normalization(x, weight, bias=None, *, axis, epsilon, stash_type, context):
    axes = _axes(x, axis)
    if context.n_outputs == 1 and weight.shape == x.shape[axes[0] :]:
        return gt.layer_norm(x, weight, bias, axis=axes, eps=epsilon)
    wide = x.astype("float32") if x.dtype.itemsize < 4 else x
    centre = gt.mean(wide, axis=axes, keepdims=True)
    wide = wide - centre
    scale = gt.rsqrt(gt.mean(gt.square(wide), axis=axes, keepdims=True) + epsilon)
    y = (wide * scale).astype(x.dtype) * weight
    return (y if bias is None else y + bias), centre, scale


@operator("RMSNormalization")
def rms_normalization(x, weight, *, axis, epsilon, stash_type):
    axes = _axes(x, axis)
    if weight.shape == x.shape[axes[0] :]:
        return gt.rms_norm(x, weight, axis=axes, eps=epsilon)
    return gt.rms_norm(x, axis=axes, eps=epsilon) * weight


@operator("SimplifiedLayerNormalization")
def simplified_layer_normalization(x, weight, *, axis=-1, epsilon=1e-5, stash_type=1):
    return gt.rms_norm(x, weight, axis=_axes(x, axis), eps=epsilon)


@operator("GroupNormalization", 18)
def group_normalization_18(x, weight, bias, *, epsilon, num_groups):
    """Operator sets below 21 have one scale and bias for each group."""
    repeats = x.shape[1] // num_groups
    weight, bias = (gt.repeat(one, repeats) for one in (weight, bias))
    return gt.group_norm(x, num_groups, weight, bias, eps=epsilon)


@operator("GroupNormalization", 21)
def group_normalization(x, weight, bias, *, epsilon, num_groups, stash_type):
    return gt.group_norm(x, num_groups, weight, bias, eps=epsilon)


@operator("InstanceNormalization")
def instance_normalization(x, weight, bias, *, epsilon):
    return gt.group_norm(x, x.shape[1], weight, bias, eps=epsilon)


def _by_channel(x, value):
    return gt.reshape(value, (-1,) + (1,) * (x.ndim - 2))


@operator("BatchNormalization")
def batch_normalization(x, weight, bias, centre, variance, *, epsilon, momentum, training_mode=0):
    if not training_mode:
        scale = weight * gt.rsqrt(variance + epsilon)
        shift = bias - centre * scale
        return x * _by_channel(x, scale).astype(x.dtype) + _by_channel(x, shift).astype(x.dtype)
    axes = (0, *range(2, x.ndim))
    here, spread = gt.mean(x, axis=axes), gt.var(x, axis=axes)
    scale = weight * gt.rsqrt(spread + epsilon)
    y = (x - _by_channel(x, here)) * _by_channel(x, scale) + _by_channel(x, bias)
    before, now = momentum, 1 - momentum
    return y, centre * before + here * now, variance * before + spread * now


@operator("LpNormalization")
def lp_normalization(x, *, axis, p):
    if p == 1:
        length = gt.sum(gt.abs(x), axis=axis, keepdims=True)
    else:
        length = gt.sqrt(gt.sum(gt.square(x), axis=axis, keepdims=True))
    return gt.where(gt.equal(length, 0), 0, x / length).astype(x.dtype)


@operator("LRN")
def lrn(x, *, alpha, beta, bias, size):
    if size % 2:
        return gt.local_response_norm(x, size, alpha, beta, bias)
    # Of an even number of channels, ONNX takes one more after the middle, PyTorch before it.
    return gt.flip(gt.local_response_norm(gt.flip(x, 1), size, alpha, beta, bias), 1)


@operator("Dropout")
def dropout_attribute(x, *, ratio, seed=None, context):
    return (x, x)[: context.n_outputs]


@operator("Dropout", 10)
def dropout_10(x, *, ratio, context):
    return (x, gt.ones(x.shape, dtype="bool", device=x.device))[: context.n_outputs]


# ---- attention


@operator("RotaryEmbedding")
def rotary_embedding(
    x, cosines, sines, positions=None, *, interleaved, num_heads, rotary_embedding_dim
):
    is_flat = x.ndim == 3
    if is_flat:
        batch, length, width = x.shape
        x = gt.reshape(x, (batch, length, num_heads, width // num_heads))
    else:
        x = gt.moveaxis(x, 1, 2)
    turned = rotary_embedding_dim or x.shape[-1]
    kept, x = x[..., turned:], x[..., :turned]
    if positions is not None:
        cosines, sines = (gt.take(one, positions, 0) for one in (cosines, sines))
    cosines, sines = (gt.expand_dims(one[..., : turned // 2], -2) for one in (cosines, sines))
    if interleaved:
        a, b = x[..., 0::2], x[..., 1::2]
    else:
        a, b = x[..., : turned // 2], x[..., turned // 2 :]
    first, second = a * cosines - b * sines, a * sines + b * cosines
    if interleaved:
        x = gt.reshape(gt.stack([first, second], -1), x.shape)
    else:
        x = gt.concat([first, second], axis=-1)
    x = gt.concat([x, kept], axis=-1) if kept.shape[-1] else x
    return gt.reshape(x, (batch, length, width)) if is_flat else gt.moveaxis(x, 2, 1)


def _heads(x, count):
    """Return (batch, length, count * size) as (batch, count, length, size)."""
    if x.ndim == 4:
        return x
    batch, length, width = x.shape
    return gt.moveaxis(gt.reshape(x, (batch, length, count, width // count)), 2, 1)


@operator("Attention")
def attention(
    query,
    key,
    value,
    mask=None,
    past_key=None,
    past_value=None,
    lengths=None,
    *,
    is_causal,
    kv_num_heads,
    q_num_heads,
    qk_matmul_output_mode,
    scale,
    softcap,
    softmax_precision,
    left_window_size=-1,
    right_window_size=-1,
    context,
):
    is_flat = query.ndim == 3
    q, k, v = _heads(query, q_num_heads), _heads(key, kv_num_heads), _heads(value, kv_num_heads)
    is_plain = (
        context.n_outputs <= 3
        and softmax_precision is None
        and left_window_size < 0
        and right_window_size < 0
    )
    # With as many new queries as new keys, ONNX too aligns the last query with the last key.
    is_aligned = q.shape[2] == k.shape[2] and lengths is None
    n_keys = k.shape[2] + (0 if past_key is None else past_key.shape[2])
    if not is_plain or is_causal and not is_aligned:
        return NotImplemented
    if mask is not None and mask.shape[-1] != n_keys:
        return NotImplemented
    if past_key is not None:
        k, v = gt.concat([past_key, k], axis=2), gt.concat([past_value, v], axis=2)
    y = gt.scaled_dot_product_attention(
        q, k, v, mask, is_causal=bool(is_causal), scale=scale, soft_cap=softcap or None,
        kv_length=lengths,
    )  # fmt: skip
    if is_flat:
        batch, length = query.shape[:2]
        y = gt.reshape(gt.moveaxis(y, 1, 2), (batch, length, -1))
    return (y, k, v)[: context.n_outputs]


# ---- signals


@operator("MelWeightMatrix", known=(-1,))
def mel_weight_matrix(n_bins, n_points, rate, low, high, *, output_datatype):
    bins, points = int(number(n_bins)), int(number(n_points))
    edges = np.arange(bins + 2, dtype=np.float64)
    lowest, highest = (2595 * np.log10(1 + number(hertz) / 700) for hertz in (low, high))
    mels = edges * ((highest - lowest) / edges.size) + lowest
    hertz = 700 * (np.power(10, mels / 2595) - 1)
    places = ((points + 1) * hertz // number(rate)).astype(np.int64)
    found = np.zeros((points // 2 + 1, bins), np.float64)
    for i in range(bins):
        first, middle, last = (int(place) for place in places[i : i + 3])
        if middle == first:
            found[middle, i] = 1
        for j in range(first, middle + 1) if middle > first else ():
            found[j, i] = (j - first) / (middle - first)
        for j in range(middle, last) if last > middle else ():
            found[j, i] = (last - j) / (last - middle)
    return found.astype(numpy_dtype(output_datatype))
