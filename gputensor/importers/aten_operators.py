"""The table of ATen operators that torch.export writes: a function of tensors for each name.

Functions take PyTorch's arguments in PyTorch's order. The overloads of a name share one function.
An in-place form, whose name ends in `_`, writes the result of the plain form.
"""

import builtins
import math

from gputensor.errors import Described, ModelError, argument_error
from gputensor.importers.public_functions import gt

__all__ = ["MAKERS", "aten", "dtype_of", "find"]

_TABLE: dict = {}


def aten(names):
    """Register a function for one or more names, separated by spaces."""

    def register(function):
        for name in names.split():
            _TABLE[name] = function
        return function

    return register


def find(name):
    """Return the function for an ATen name, or None."""
    if name in _TABLE:
        return _TABLE[name]
    plain = _TABLE.get(name[:-1]) if name.endswith("_") and not name.endswith("__") else None
    if plain is None:
        return None

    def in_place(x, *args, **kwargs):
        x[...] = plain(x, *args, **kwargs)
        return x

    return in_place


def dtype_of(dtype):
    """Return the library's name for a torch dtype, which prints as `torch.float16`."""
    name = str(dtype).rpartition(".")[2]
    return {"bool": "bool", "float8_e4m3fn": "float8_e4m3"}.get(name, name)


def _tensor(x, like):
    return x if isinstance(x, gt.Tensor) else gt.asarray(x, device=like.device)


# Functions of the library that take the same arguments, by ATen name.
_SAME = {
    "abs": "abs", "acos": "acos", "asin": "asin", "atan": "atan", "atan2": "atan2",
    "bitwise_and": "bitwise_and", "bitwise_not": "bitwise_invert", "bitwise_or": "bitwise_or",
    "bitwise_xor": "bitwise_xor", "bmm": "matmul", "ceil": "ceil", "cos": "cos", "cosh": "cosh",
    "eq": "equal", "erf": "erf", "exp": "exp", "exp2": "exp2", "expm1": "expm1", "floor": "floor",
    "floor_divide": "floor_divide", "fmod": "fmod", "ge": "greater_equal", "gt": "greater",
    "isinf": "isinf", "isnan": "isnan", "le": "less_equal", "log": "log", "log10": "log10",
    "log1p": "log1p", "log2": "log2", "logical_and": "logical_and", "logical_not": "logical_not",
    "logical_or": "logical_or", "logical_xor": "logical_xor", "lt": "less", "matmul": "matmul",
    "maximum": "maximum", "minimum": "minimum", "mm": "matmul", "mul": "multiply", "mv": "matmul",
    "ne": "not_equal", "neg": "negative", "pow": "pow", "reciprocal": "reciprocal", "relu": "relu",
    "remainder": "remainder", "rsqrt": "rsqrt", "sigmoid": "sigmoid", "sign": "sign",
    "silu": "silu", "sin": "sin", "sinh": "sinh", "sqrt": "sqrt", "square": "square", "tan": "tan",
    "tanh": "tanh", "trunc": "trunc", "cumsum": "cumsum", "diff": "diff", "flip": "flip",
    "roll": "roll",
    "masked_fill": "masked_fill", "movedim": "moveaxis", "dot": "dot", "__and__": "bitwise_and",
    "__or__": "bitwise_or",
}  # fmt: skip
for _name, _function in _SAME.items():
    _TABLE[_name] = getattr(gt, _function)


@aten("add")
def add(x, y, *, alpha=1):
    return gt.add(x, y if alpha == 1 else y * alpha)


@aten("sub")
def sub(x, y, *, alpha=1):
    return gt.subtract(x, y if alpha == 1 else y * alpha)


@aten("rsub")
def rsub(x, y, alpha=1):
    return gt.subtract(y, x if alpha == 1 else x * alpha)


@aten("div")
def div(x, y, *, rounding_mode=None):
    if rounding_mode == "floor":
        return gt.floor_divide(x, y)
    return gt.divide(x, y) if rounding_mode is None else gt.trunc(gt.divide(x, y)).astype(x.dtype)


@aten("round")
def round(x, *, decimals=0):
    return gt.round(x, decimals)


@aten("clamp clip")
def clamp(x, min=None, max=None):
    return gt.clip(x, min, max)


@aten("clamp_min")
def clamp_min(x, least):
    return gt.maximum(x, least)


@aten("clamp_max")
def clamp_max(x, most):
    return gt.minimum(x, most)


@aten("where")
def where(condition, x, y):
    return gt.where(condition, x, y)


@aten("gelu")
def gelu(x, *, approximate="none"):
    return gt.gelu(x, approximate=approximate)


@aten("relu6")
def relu6(x):
    return gt.clip(x, 0, 6)


@aten("hardtanh")
def hardtanh(x, low=-1, high=1):
    return gt.clip(x, low, high)


@aten("hardsigmoid")
def hardsigmoid(x):
    return gt.clip(x / 6 + 0.5, 0, 1)


@aten("hardswish")
def hardswish(x):
    return x * gt.clip(x / 6 + 0.5, 0, 1)


@aten("leaky_relu")
def leaky_relu(x, slope=0.01):
    return gt.where(x < 0, x * slope, x)


@aten("elu")
def elu(x, alpha=1, scale=1, input_scale=1):
    return gt.where(x < 0, gt.expm1(x * input_scale) * alpha, x) * scale


@aten("softplus")
def softplus(x, beta=1, threshold=20):
    wide = x * beta
    return gt.where(wide > threshold, x, gt.log1p(gt.exp(gt.minimum(wide, threshold))) / beta)


# ---- shapes


@aten("view reshape _unsafe_view")
def view(x, shape):
    return gt.reshape(x, tuple(shape))


@aten("permute")
def permute(x, dims):
    return gt.permute_dims(x, tuple(dim % x.ndim for dim in dims))


@aten("transpose")
def transpose(x, a, b):
    return gt.swapaxes(x, a, b)


@aten("t")
def t(x):
    return x if x.ndim < 2 else x.T


@aten("unsqueeze")
def unsqueeze(x, dim):
    return gt.expand_dims(x, dim)


@aten("squeeze")
def squeeze(x, dims=None):
    dims = range(x.ndim) if dims is None else [dims] if isinstance(dims, int) else dims
    axes = tuple(dim % x.ndim for dim in dims if x.shape[dim] == 1)
    return gt.squeeze(x, axes) if axes else x


@aten("flatten")
def flatten(x, start=0, end=-1):
    start, end = start % x.ndim, end % x.ndim
    return gt.reshape(
        x, (*x.shape[:start], math.prod(x.shape[start : end + 1]), *x.shape[end + 1 :])
    )


@aten("expand")
def expand(x, sizes, *, implicit=False):
    lead = len(sizes) - x.ndim
    extents = [x.shape[i - lead] if extent == -1 else extent for i, extent in enumerate(sizes)]
    return gt.broadcast_to(x, tuple(extents))


@aten("expand_as")
def expand_as(x, other):
    return gt.broadcast_to(x, other.shape)


@aten("unflatten")
def unflatten(x, dim, sizes):
    dim %= x.ndim
    return gt.reshape(x, (*x.shape[:dim], *sizes, *x.shape[dim + 1 :]))


@aten("repeat_interleave")
def repeat_interleave(x, repeats, dim=None, *, output_size=None):
    if type(repeats) is not int:
        got = Described("repeats that are a tensor")
        raise argument_error(ModelError, "repeat_interleave", got, "an int")
    if dim is None:
        x, dim = gt.reshape(x, (-1,)), 0
    dim %= x.ndim
    shape = (*x.shape[: dim + 1], repeats, *x.shape[dim + 1 :])
    found = gt.broadcast_to(gt.expand_dims(x, axis=dim + 1), shape)
    return gt.reshape(found, (*x.shape[:dim], x.shape[dim] * repeats, *x.shape[dim + 1 :]))


@aten("repeat")
def repeat(x, counts):
    return gt.tile(x, tuple(counts))


@aten("slice")
def slice_(x, dim=0, start=None, end=None, step=1):
    return x[(builtins.slice(None),) * (dim % x.ndim) + (builtins.slice(start, end, step),)]


@aten("narrow")
def narrow(x, dim, start, length):
    return slice_(x, dim, start, start + length)


@aten("select")
def select(x, dim, index):
    return x[(builtins.slice(None),) * (dim % x.ndim) + (index,)]


@aten("cat concat concatenate")
def cat(tensors, dim=0):
    # PyTorch ignores empty tensors of one dimension here.
    found = [one for one in tensors if one.shape != (0,)] or tensors
    return gt.concat(found, axis=dim)


@aten("stack")
def stack(tensors, dim=0):
    return gt.stack(tensors, axis=dim)


@aten("split split_with_sizes")
def split(x, sizes, dim=0):
    extent = x.shape[dim]
    if isinstance(sizes, int):
        sizes = [min(sizes, extent - at) for at in range(0, extent, sizes)]
    found, at = [], 0
    for size in sizes:
        found.append(slice_(x, dim, at, at + size))
        at += size
    return found


@aten("chunk")
def chunk(x, count, dim=0):
    return split(x, -(-x.shape[dim] // count), dim)


@aten("unbind")
def unbind(x, dim=0):
    return list(gt.unstack(x, axis=dim))


@aten("clone contiguous alias detach detach_ lift_fresh_copy lift_fresh")
def identity(x, *_args, **_kwargs):
    return x


@aten("dropout feature_dropout")
def dropout(x, p=0.5, train=False):
    if train and p:
        raise argument_error(ModelError, "dropout", Described("training"), "model.eval()")
    return x


@aten("copy")
def copy(x, source, non_blocking=False):
    return gt.broadcast_to(source.astype(x.dtype, copy=False), x.shape)


@aten("to _to_copy")
def to(x, *args, dtype=None, **_kwargs):
    for one in args:
        dtype = one if "torch." in f"{type(one)}{one}" and hasattr(one, "itemsize") else dtype
    return x if dtype is None else x.astype(dtype_of(dtype), copy=False)


@aten("type_as")
def type_as(x, other):
    return x.astype(other.dtype, copy=False)


@aten("constant_pad_nd pad")
def pad(x, widths, mode="constant", value=None):
    if isinstance(mode, (int, float)):
        mode, value = "constant", mode
    pairs = [(0, 0)] * (x.ndim - len(widths) // 2)
    pairs += [tuple(widths[i : i + 2]) for i in range(len(widths) - 2, -1, -2)]
    if mode == "constant":
        return gt.pad(x, pairs, constant_values=0 if value is None else value)
    return gt.pad(x, pairs, {"replicate": "edge", "circular": "wrap"}.get(mode, mode))


@aten("tril")
def tril(x, diagonal=0):
    return gt.tril(x, k=diagonal)


@aten("triu")
def triu(x, diagonal=0):
    return gt.triu(x, k=diagonal)


# ---- picking


@aten("index")
def index(x, indices):
    return x[tuple(builtins.slice(None) if one is None else one for one in indices)]


@aten("index_put")
def index_put(x, indices, values, accumulate=False):
    if accumulate:
        raise argument_error(ModelError, "index_put", Described("accumulate"), "accumulate=False")
    result = gt.copy(x)
    result[tuple(builtins.slice(None) if one is None else one for one in indices)] = values
    return result


@aten("masked_scatter")
def masked_scatter(x, mask, source):
    mask = gt.broadcast_to(mask, x.shape)
    places = gt.cumsum(gt.reshape(mask, -1), dtype=gt.int64) - 1
    picked = gt.take(gt.reshape(source, -1), gt.maximum(places, 0), 0)
    return gt.where(mask, gt.reshape(picked, x.shape), x)


@aten("index_select")
def index_select(x, dim, places):
    return gt.take(x, places, dim)


@aten("gather")
def gather(x, dim, places, *, sparse_grad=False):
    return gt.gather(x, dim, places)


@aten("embedding")
def embedding(table, places, padding_idx=-1, scale_grad_by_freq=False, sparse=False):
    return gt.take(table, places, 0)


@aten("one_hot")
def one_hot(x, count=-1):
    return gt.one_hot(x, count)


# ---- new tensors


def _made(function, shape, dtype, device):
    return function(tuple(shape), dtype=dtype_of(dtype or "float32"), device=device)


@aten("arange")
def arange(*numbers, dtype=None, device=None, **_rest):
    kind = "float32" if any(isinstance(one, float) for one in numbers) else "int64"
    return gt.arange(*numbers, dtype=kind if dtype is None else dtype_of(dtype), device=device)


@aten("full")
def full(shape, value, *, dtype=None, device=None, **_rest):
    default = {bool: "bool", int: "int64"}.get(type(value), "float32")
    return gt.full(tuple(shape), value, dtype_of(dtype or default), device=device)


@aten("scalar_tensor")
def scalar_tensor(value, *, dtype=None, device=None, **_rest):
    return gt.full((), value, dtype_of(dtype or "float32"), device=device)


@aten("zeros empty")
def zeros(shape, *, dtype=None, device=None, **_rest):
    return _made(gt.zeros, shape, dtype, device)


@aten("ones")
def ones(shape, *, dtype=None, device=None, **_rest):
    return _made(gt.ones, shape, dtype, device)


def _like(x, value, shape, dtype):
    kind = x.dtype if dtype is None else dtype_of(dtype)
    return gt.full(tuple(shape), value, kind, device=x.device)


@aten("full_like")
def full_like(x, value, *, dtype=None, **_rest):
    return _like(x, value, x.shape, dtype)


@aten("zeros_like empty_like")
def zeros_like(x, *, dtype=None, **_rest):
    return _like(x, 0, x.shape, dtype)


@aten("ones_like")
def ones_like(x, *, dtype=None, **_rest):
    return _like(x, 1, x.shape, dtype)


@aten("new_full")
def new_full(x, shape, value, *, dtype=None, **_rest):
    return _like(x, value, shape, dtype)


@aten("new_zeros new_empty")
def new_zeros(x, shape, *, dtype=None, **_rest):
    return _like(x, 0, shape, dtype)


@aten("new_ones")
def new_ones(x, shape, *, dtype=None, **_rest):
    return _like(x, 1, shape, dtype)


#: Functions that take the device as an argument.
MAKERS = (arange, full, scalar_tensor, zeros, ones)
