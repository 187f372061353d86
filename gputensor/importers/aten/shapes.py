"""ATen operators on shapes: views, copies, padding, joining and splitting."""

import builtins
import math

from gputensor.errors import Described, ModelError, argument_error
from gputensor.importers.aten.table import aten, dtype_of
from gputensor.importers.public_functions import gt

__all__ = ["slice_"]


@aten("view reshape _reshape_alias")
def view(x, shape, *_strides):
    if not isinstance(shape, (list, tuple)):
        return x.view(dtype_of(shape))
    return gt.reshape(x, tuple(shape))


@aten("view_as reshape_as")
def view_as(x, other):
    return gt.reshape(x, other.shape)


@aten("permute permute_dims")
def permute(x, dims):
    return gt.permute_dims(x, tuple(dim % x.ndim for dim in dims))


@aten("transpose")
def transpose(x, a, b):
    return gt.swapaxes(x, a, b)


@aten("t numpy_T matrix_H mT mH adjoint")
def t(x):
    return x if x.ndim < 2 else gt.swapaxes(x, -1, -2)


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


@aten("expand broadcast_to")
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


@aten("repeat tile")
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


for _name in ("column_stack", "dstack", "hstack", "row_stack", "vstack"):
    aten(_name)(getattr(gt, _name))


def _of_list(function):
    return lambda tensors: function(*tensors)


for _name in ("atleast_1d", "atleast_2d", "atleast_3d"):
    aten(_name)(getattr(gt, _name))
for _name in ("block_diag", "broadcast_tensors", "cartesian_prod"):
    aten(_name)(_of_list(getattr(gt, _name)))


@aten("meshgrid")
def meshgrid(tensors, *, indexing="ij"):
    return gt.meshgrid(*tensors, indexing=indexing)


@aten("split split_with_sizes unsafe_split unsafe_split_with_sizes")
def split(x, sizes, dim=0):
    extent = x.shape[dim]
    if isinstance(sizes, int):
        sizes = [min(sizes, extent - at) for at in range(0, extent, sizes)]
    found, at = [], 0
    for size in sizes:
        found.append(slice_(x, dim, at, at + size))
        at += size
    return found


@aten("chunk unsafe_chunk")
def chunk(x, count, dim=0):
    return split(x, -(-x.shape[dim] // count), dim)


@aten("unbind")
def unbind(x, dim=0):
    return list(gt.unstack(x, axis=dim))


@aten("clone contiguous alias detach detach_ lift_fresh_copy lift_fresh resolve_conj resolve_neg")
def identity(x, *_args, **_kwargs):
    return x


@aten("dropout feature_dropout alpha_dropout feature_alpha_dropout")
def dropout(x, p=0.5, train=False):
    if train and p:
        raise argument_error(ModelError, "dropout", Described("training"), "model.eval()")
    return x


@aten("native_dropout")
def native_dropout(x, p, train):
    return dropout(x, p, train), gt.ones(x.shape, dtype="bool", device=x.device)


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
    if min(widths) < 0:  # cuts elements off
        ends = zip(x.shape, pairs, strict=True)
        x = x[tuple(builtins.slice(max(-a, 0), n + min(b, 0)) for n, (a, b) in ends)]
        pairs = [(max(a, 0), max(b, 0)) for a, b in pairs]
    if mode == "constant":
        return gt.pad(x, pairs, constant_values=0 if value is None else value)
    return gt.pad(x, pairs, {"replicate": "edge", "circular": "wrap"}.get(mode, mode))


def _padding(mode):
    return lambda x, widths: pad(x, widths, mode)


for _ndim in (1, 2, 3):
    aten(f"reflection_pad{_ndim}d")(_padding("reflect"))
    aten(f"replication_pad{_ndim}d")(_padding("replicate"))


@aten("tril")
def tril(x, diagonal=0):
    return gt.tril(x, k=diagonal)


@aten("triu")
def triu(x, diagonal=0):
    return gt.triu(x, k=diagonal)


@aten("diag")
def diag(x, diagonal=0):
    return gt.diag(x, diagonal)


@aten("diagonal")
def diagonal(x, offset=0, dim1=0, dim2=1):
    return gt.diagonal(x, offset, dim1, dim2)


@aten("channel_shuffle native_channel_shuffle")
def channel_shuffle(x, groups):
    batch, channels, *extents = x.shape
    parts = gt.reshape(x, (batch, groups, channels // groups, *extents))
    return gt.reshape(gt.swapaxes(parts, 1, 2), x.shape)


@aten("fill")
def fill(x, value):
    return gt.broadcast_to(value, x.shape) if isinstance(value, gt.Tensor) else full(x, value)


@aten("zero")
def zero(x):
    return full(x, 0)


def full(x, value):
    return gt.full(x.shape, value, x.dtype, device=x.device)
