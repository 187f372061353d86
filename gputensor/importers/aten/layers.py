"""ATen operators of networks: products, norms, attention, positions, losses."""

import functools
import math

from gputensor.errors import Described, ModelError, argument_error
from gputensor.importers.aten.table import aten, axes_of, dtype_of
from gputensor.importers.public_functions import gt

__all__ = []


# ---- products


@aten("linear")
def linear(x, weight, bias=None):
    return gt.linear(x, weight, bias)


@aten("bilinear")
def bilinear(x, y, weight, bias=None):
    found = gt.einsum("...i,kij,...j->...k", x, weight, y)
    return found if bias is None else found + bias


for _name in ("bmm", "matmul", "mm", "mv"):
    aten(_name)(gt.matmul)
for _name in (
    "addbmm", "addmv", "cosine_similarity", "cross", "dist", "dot", "inner",
    "kron", "outer", "renorm", "trapezoid", "trapz", "vander", "vdot",
):  # fmt: skip
    aten(_name)(getattr(gt, _name))
aten("ger")(gt.outer)


@aten("addr")
def addr(c, x, y, *, beta=1, alpha=1):
    product = gt.outer(x, y) * alpha
    return product + c * beta if beta else product.astype(gt.result_type(c, product), copy=False)


@aten("linalg_cross")
def cross(x, y, *, dim=-1):
    return gt.cross(x, y, dim)


@aten("chain_matmul linalg_multi_dot")
def chain_matmul(tensors):
    return functools.reduce(gt.matmul, tensors)


@aten("cdist _cdist_forward")
def cdist_forward(x, y, p, mode=None):
    return gt.cdist(x, y, p)


@aten("tensordot")
def tensordot(x, y, dims_x, dims_y):
    return gt.tensordot(x, y, (tuple(dims_x), tuple(dims_y)))


@aten("_trilinear")
def trilinear(x, y, z, *others):
    """The sum over some axes of a product, after each factor got axes of extent 1."""
    *new_axes, dims, _unroll = (*others, 1)[:5]
    for axes, at in zip(new_axes, range(3), strict=True):
        factors = [x, y, z]
        for axis in sorted(axes):
            factors[at] = gt.expand_dims(factors[at], axis)
        x, y, z = factors
    return gt.sum(x * y * z, axis=tuple(dims))


@aten("_grouped_mm transformers.grouped_mm_fallback")
def grouped_mm(x, weights, offsets=None, bias=None, out_dtype=None):
    if offsets is None or x.ndim != 2 or weights.ndim != 3 or bias is not None:
        got = Described("other than rows of groups with one matrix each")
        raise argument_error(ModelError, "_grouped_mm", got, "rows (2 axes), matrices (3 axes)")
    return gt.grouped_matmul(x, weights, offsets)


@aten("pairwise_distance")
def pairwise_distance(x, y, p=2, eps=1e-6, keepdim=False):
    return vector_norm(x - y + eps, p, -1, keepdim)


@aten("addmm baddbmm")
def addmm(c, a, b, *, beta=1, alpha=1):
    if beta == alpha == 1 and c.ndim == 1 and c.shape[0] == b.shape[-1]:
        return gt.matmul(a, b, bias=c)
    product = gt.matmul(a, b)
    product = product if alpha == 1 else product * alpha
    return product + (c if beta == 1 else c * beta)


@aten("einsum")
def einsum(equation, operands, *, path=None):
    return gt.einsum(equation, *operands)


# ---- rows


@aten("softmax")
def softmax(x, dim, dtype=None):
    return gt.softmax(x, axis=dim, dtype=None if dtype is None else dtype_of(dtype))


@aten("_softmax")
def half_softmax(x, dim, half_to_float=False):
    return gt.softmax(x.astype("float32") if half_to_float else x, axis=dim)


@aten("_safe_softmax")
def safe_softmax(x, dim, dtype=None):
    """A softmax with zeros where all elements are -inf; the pass for attention knows this form."""
    is_seen = gt.any(gt.logical_not(x == -math.inf), axis=dim, keepdims=True)
    return gt.where(gt.logical_not(is_seen), 0.0, softmax(x, dim, dtype))


@aten("softmin")
def softmin(x, dim, dtype=None):
    return softmax(-x, dim, dtype)


@aten("log_softmax")
def log_softmax(x, dim, dtype=None):
    return gt.log_softmax(x if dtype is None else x.astype(dtype_of(dtype)), axis=dim)


@aten("_log_softmax")
def half_log_softmax(x, dim, half_to_float=False):
    return gt.log_softmax(x.astype("float32") if half_to_float else x, axis=dim)


@aten("layer_norm")
def layer_norm(x, shape, weight=None, bias=None, eps=1e-5, cudnn_enable=True):
    return gt.layer_norm(x, weight, bias, axis=tuple(range(-len(shape), 0)), eps=eps)


@aten("native_layer_norm")
def native_layer_norm(x, shape, weight, bias, eps):
    return layer_norm(x, shape, weight, bias, eps), None, None


@aten("_fused_rms_norm")
def fused_rms_norm(x, shape, weight, eps):
    return rms_norm(x, shape, weight, eps), None


@aten("instance_norm")
def instance_norm(x, weight, bias, centre, variance, use_input_stats, *others):
    if not use_input_stats:
        return _normalized(x, weight, bias, (centre, variance), others[1])
    return gt.instance_norm(x, weight, bias, eps=others[1])


@aten("rms_norm")
def rms_norm(x, shape, weight=None, eps=None):
    eps = gt.finfo(x.dtype).eps if eps is None else eps
    return gt.rms_norm(x, weight, axis=tuple(range(-len(shape), 0)), eps=eps)


@aten("group_norm")
def group_norm(x, groups, weight=None, bias=None, eps=1e-5, cudnn_enabled=True):
    return gt.group_norm(x, groups, weight, bias, eps=eps)


@aten("native_group_norm")
def native_group_norm(x, weight, bias, *others):
    *_sizes, groups, eps = others
    return gt.group_norm(x, groups, weight, bias, eps=eps), None, None


def _normalized(x, weight, bias, running, eps):
    centre, variance = running
    shape = (-1,) + (1,) * (x.ndim - 2)
    scale = gt.rsqrt(variance + eps)
    scale = scale if weight is None else scale * weight
    shift = -centre * scale if bias is None else bias - centre * scale
    scale, shift = (gt.reshape(one, shape).astype(x.dtype, copy=False) for one in (scale, shift))
    return x * scale + shift


@aten("batch_norm")
def batch_norm(x, weight, bias, centre, variance, training, *others):
    if training:
        raise argument_error(ModelError, "batch_norm", Described("training"), "model.eval()")
    return _normalized(x, weight, bias, (centre, variance), others[1])


@aten("_native_batch_norm_legit_no_training")
def native_batch_norm(x, weight, bias, centre, variance, momentum, eps):
    return _normalized(x, weight, bias, (centre, variance), eps), None, None


@aten("_native_batch_norm_legit")
def batch_norm_of_itself(x, weight, bias, *others):
    """Without running values, each channel is normalized by the values of its batch."""
    if len(others) == 5:
        return batch_norm(x, weight, bias, *others, True), None, None
    axes = (0, *range(2, x.ndim))
    centre, variance = gt.mean(x, axis=axes), gt.var(x, axis=axes, correction=0)
    return _normalized(x, weight, bias, (centre, variance), others[-1]), centre, variance


@aten("_weight_norm _weight_norm_interface")
def weight_norm(v, g, dim=0):
    axes = tuple(axis for axis in range(v.ndim) if axis != dim % v.ndim)
    length = gt.sqrt(gt.sum(gt.square(v), axis=axes, keepdims=True))
    return v * (g / length)


# ---- lengths and losses


@aten("norm linalg_norm")
def norm(x, p=None, dims=None, keepdim=False, *, dtype=None):
    x = x if dtype is None else x.astype(dtype_of(dtype))
    return gt.norm(x, p, axes_of(dims), keepdims=keepdim)


@aten("linalg_vector_norm")
def vector_norm(x, order=2, dims=None, keepdim=False, *, dtype=None):
    x = x if dtype is None else x.astype(dtype_of(dtype))
    return gt.linalg.vector_norm(x, ord=order, axis=axes_of(dims), keepdims=keepdim)


_REDUCTIONS = "none", "mean", "sum"


def _loss(name):
    def run(x, target, reduction=1, *others, **options):
        return getattr(gt, name)(x, target, _REDUCTIONS[reduction], *others, **options)

    return run


for _name in ("huber_loss", "kl_div", "l1_loss", "mse_loss", "smooth_l1_loss"):
    aten(_name)(_loss(_name))


@aten("binary_cross_entropy")
def binary_cross_entropy(x, target, weight=None, reduction=1):
    return gt.binary_cross_entropy(x, target, weight, reduction=_REDUCTIONS[reduction])


@aten("binary_cross_entropy_with_logits")
def binary_cross_entropy_with_logits(x, target, weight=None, pos_weight=None, reduction=1):
    how = {"reduction": _REDUCTIONS[reduction], "pos_weight": pos_weight}
    return gt.binary_cross_entropy_with_logits(x, target, weight, **how)


@aten("nll_loss nll_loss_nd nll_loss2d")
def nll_loss(x, target, weight=None, reduction=1, ignore_index=-100):
    how = {"reduction": _REDUCTIONS[reduction], "ignore_index": ignore_index}
    return gt.nll_loss(x, target, weight, **how)


@aten("nll_loss_forward nll_loss2d_forward")
def nll_loss_forward(*args):
    return nll_loss(*args), None


@aten("cross_entropy_loss")
def cross_entropy(x, target, weight=None, reduction=1, ignore_index=-100, label_smoothing=0.0):
    how = {"reduction": _REDUCTIONS[reduction], "label_smoothing": label_smoothing}
    return gt.cross_entropy(x, target, weight, ignore_index=ignore_index, **how)


# ---- attention


@aten("scaled_dot_product_attention")
def attention(q, k, v, mask=None, dropout_p=0.0, is_causal=False, *, scale=None, enable_gqa=False):
    if dropout_p:
        got = Described(f"dropout_p {dropout_p}")
        raise argument_error(ModelError, "scaled_dot_product_attention", got, "model.eval(), and 0")
    if is_causal and q.shape[-2] != k.shape[-2]:
        # PyTorch aligns the first query with the first key, the library the last with the last.
        queries, keys = (gt.arange(x.shape[-2], device=q.device) for x in (q, k))
        mask, is_causal = gt.expand_dims(queries, 1) >= keys, False
    return gt.scaled_dot_product_attention(q, k, v, mask, is_causal=is_causal, scale=scale)


@aten("_scaled_dot_product_flash_attention_for_cpu _scaled_dot_product_flash_attention")
def flash_attention(q, k, v, dropout_p=0.0, is_causal=False, *others, attn_mask=None, scale=None):
    return attention(q, k, v, attn_mask, dropout_p, is_causal, scale=scale), *[None] * 8


@aten("_scaled_dot_product_efficient_attention _scaled_dot_product_cudnn_attention")
def efficient_attention(q, k, v, mask, compute_log_sumexp, *others, scale=None):
    dropout_p, is_causal = (*others, 0.0, False)[:2] if len(others) != 1 else (others[0], False)
    return attention(q, k, v, mask, dropout_p, is_causal, scale=scale), *[None] * 8
