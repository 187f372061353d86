"""ATen operators for reductions, matrix products, norms and network layers."""

from gputensor.errors import Described, ModelError, argument_error
from gputensor.importers.aten_operators import aten, dtype_of
from gputensor.importers.public_functions import gt

__all__ = []


def _axes(dims):
    return (
        None
        if dims is None or dims == []
        else tuple(dims)
        if isinstance(dims, (list, tuple))
        else dims
    )


@aten("sum")
def sum(x, dims=None, keepdim=False, *, dtype=None):
    kind = None if dtype is None else dtype_of(dtype)
    return gt.sum(x, axis=_axes(dims), dtype=kind, keepdims=keepdim)


@aten("mean")
def mean(x, dims=None, keepdim=False, *, dtype=None):
    x = x if dtype is None else x.astype(dtype_of(dtype), copy=False)
    return gt.mean(x, axis=_axes(dims), keepdims=keepdim)


@aten("var")
def var(x, dims=None, unbiased=True, keepdim=False, *, correction=None):
    correction = (1 if unbiased else 0) if correction is None else correction
    return gt.var(x, axis=_axes(dims), correction=correction, keepdims=keepdim)


@aten("amax")
def amax(x, dims=(), keepdim=False):
    return gt.max(x, axis=_axes(dims or None), keepdims=keepdim)


@aten("amin")
def amin(x, dims=(), keepdim=False):
    return gt.min(x, axis=_axes(dims or None), keepdims=keepdim)


@aten("max")
def max(x, dim=None, keepdim=False):
    if dim is None:
        return gt.max(x)
    if isinstance(dim, gt.Tensor):
        return gt.maximum(x, dim)
    return gt.max(x, axis=dim, keepdims=keepdim), gt.argmax(x, axis=dim, keepdims=keepdim)


@aten("argmax")
def argmax(x, dim=None, keepdim=False):
    return gt.argmax(x, axis=dim, keepdims=keepdim)


@aten("any")
def any(x, dims=None, keepdim=False):
    return gt.any(x, axis=_axes(dims), keepdims=keepdim)


@aten("all")
def all(x, dims=None, keepdim=False):
    return gt.all(x, axis=_axes(dims), keepdims=keepdim)


@aten("topk")
def topk(x, k, dim=-1, largest=True, sorted=True):
    return tuple(gt.topk(x, k, dim, largest=largest))


# ---- products


@aten("linear")
def linear(x, weight, bias=None):
    return gt.linear(x, weight, bias)


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


@aten("_softmax _safe_softmax")
def half_softmax(x, dim, half_to_float=False, dtype=None):
    return gt.softmax(x, axis=dim)


@aten("log_softmax _log_softmax")
def log_softmax(x, dim, dtype=None):
    return gt.log_softmax(x, axis=dim)


@aten("layer_norm")
def layer_norm(x, shape, weight=None, bias=None, eps=1e-5, cudnn_enable=True):
    return gt.layer_norm(x, weight, bias, axis=tuple(range(-len(shape), 0)), eps=eps)


@aten("native_layer_norm")
def native_layer_norm(x, shape, weight, bias, eps):
    return layer_norm(x, shape, weight, bias, eps), None, None


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


# ---- windows and attention


@aten("conv1d conv2d conv3d")
def conv(x, weight, bias=None, stride=1, padding=0, dilation=1, groups=1):
    function = getattr(gt, f"conv{weight.ndim - 2}d")
    stride, padding, dilation = (_sizes(one) for one in (stride, padding, dilation))
    return function(x, weight, bias, stride, padding, dilation, groups)


def _sizes(value):
    """Return one number for all axes, or a tuple with one for each."""
    if isinstance(value, (list, tuple)):
        return value[0] if len(value) == 1 else tuple(value)
    return value


@aten("convolution")
def convolution(x, weight, bias, stride, padding, dilation, *others):
    transposed, output_padding, groups = others
    if not transposed:
        return conv(x, weight, bias, stride, padding, dilation, groups)
    function = getattr(gt, f"conv_transpose{weight.ndim - 2}d")
    sizes = (_sizes(one) for one in (stride, padding, output_padding))
    return function(x, weight, bias, *sizes, groups, dilation=_sizes(dilation))


@aten("max_pool1d max_pool2d max_pool3d")
def max_pool(x, kernel, stride=None, padding=0, dilation=1, ceil_mode=False):
    rank = len(kernel) if isinstance(kernel, (list, tuple)) else x.ndim - 2
    sizes = (_sizes(one) for one in (kernel, stride or kernel, padding, dilation))
    return getattr(gt, f"max_pool{rank}d")(x, *sizes, ceil_mode)


@aten("max_pool2d_with_indices")
def max_pool_with_indices(*args, **kwargs):
    return max_pool(*args, **kwargs), None


@aten("avg_pool1d avg_pool2d avg_pool3d")
def avg_pool(x, kernel, stride=None, padding=0, *others):
    rank = len(kernel) if isinstance(kernel, (list, tuple)) else x.ndim - 2
    sizes = (_sizes(one) for one in (kernel, stride or kernel, padding))
    return getattr(gt, f"avg_pool{rank}d")(x, *sizes, *others)


@aten("adaptive_avg_pool1d adaptive_avg_pool2d adaptive_avg_pool3d _adaptive_avg_pool2d")
def adaptive_avg_pool(x, sizes):
    if set(sizes) == {1}:
        axes = tuple(range(-len(sizes), 0))
        return gt.mean(x, axis=axes, keepdims=True)
    return getattr(gt, f"adaptive_avg_pool{len(sizes)}d")(x, tuple(sizes))


@aten("scaled_dot_product_attention")
def attention(q, k, v, mask=None, dropout_p=0.0, is_causal=False, *, scale=None, enable_gqa=False):
    return gt.scaled_dot_product_attention(q, k, v, mask, is_causal=is_causal, scale=scale)
