"""ATen operators that read or write elements by position."""

import builtins

import numpy as np

from gputensor.errors import Described, ModelError, argument_error
from gputensor.importers.aten.shapes import slice_
from gputensor.importers.aten.table import aten
from gputensor.importers.public_functions import gt

__all__ = []


def _key(indices):
    return tuple(builtins.slice(None) if one is None else one for one in indices)


for _name in (
    "index_add", "index_copy", "index_fill", "index_reduce", "masked_select", "scatter_add",
    "scatter_reduce", "take",
):  # fmt: skip
    aten(_name)(getattr(gt, _name))


@aten("index")
def index(x, indices):
    return x[_key(indices)]


@aten("index_put _index_put_impl")
def index_put(x, indices, values, accumulate=False, unsafe=False):
    if accumulate:
        return _added(x, indices, values)
    result = gt.copy(x)
    result[_key(indices)] = values.astype(x.dtype, copy=False)
    return result


def _added(x, indices, values):
    """Return x with `values` added at positions that may repeat."""
    axes = [axis for axis, one in enumerate(indices) if one is not None]
    picked = [indices[axis] for axis in axes]
    if any(one.dtype.kind == "b" for one in picked):
        got = Described("accumulate with a mask")
        raise argument_error(ModelError, "index_put", got, "integer indices")
    shape, flat = gt.broadcast_shapes(*(one.shape for one in picked)), 0
    for axis, one in zip(axes, picked, strict=True):
        flat = flat * x.shape[axis] + gt.where(one < 0, one + x.shape[axis], one)
    flat = gt.reshape(gt.broadcast_to(flat, shape), (-1,))
    # The axes of adjacent indices stay where they are, those of others come first.
    free = [axis for axis in range(x.ndim) if axis not in axes]
    is_adjacent = axes == list(range(axes[0], axes[-1] + 1))
    before = [axis for axis in free if axis < axes[0]] if is_adjacent else []
    lead, rest = ([x.shape[axis] for axis in some] for some in (before, free))
    values = gt.broadcast_to(
        values.astype(x.dtype, copy=False), (*lead, *shape, *rest[len(lead) :])
    )
    values = gt.moveaxis(
        values, tuple(range(len(lead), len(lead) + len(shape))), tuple(range(len(shape)))
    )
    order = tuple(axes + free)
    rows = gt.reshape(gt.permute_dims(x, order), (-1, *rest))
    found = gt.index_add(rows, 0, flat, gt.reshape(values, (-1, *rest)))
    found = gt.reshape(found, tuple(x.shape[axis] for axis in order))
    return gt.permute_dims(found, tuple(order.index(axis) for axis in range(x.ndim)))


@aten("masked_scatter")
def masked_scatter(x, mask, source):
    mask = gt.broadcast_to(mask, x.shape)
    places = gt.cumsum(gt.reshape(mask, -1), dtype=gt.int64) - 1
    picked = gt.take(gt.reshape(source, -1), gt.maximum(places, 0), 0)
    return gt.where(mask, gt.reshape(picked, x.shape), x)


@aten("nonzero")
def nonzero(x):
    return gt.stack(gt.nonzero(x), -1)


@aten("nonzero_numpy")
def nonzero_numpy(x):
    return gt.nonzero(x)


@aten("index_select")
def index_select(x, dim, places):
    return gt.take(x, gt.reshape(places, (-1,)), dim)


@aten("take_along_dim")
def take_along_dim(x, places, dim=None):
    return gt.take_along_dim(x, places, dim)


@aten("gather")
def gather(x, dim, places, *, sparse_grad=False):
    return gt.gather(x, dim, places)


@aten("scatter")
def scatter(x, dim, places, source, *, reduce=None):
    if not isinstance(source, gt.Tensor):
        source = gt.full(places.shape, source, x.dtype, device=x.device)
    if reduce is not None:
        how = {"add": "sum", "multiply": "prod"}[reduce]
        return gt.scatter_reduce(x, dim, places, source, how)
    return gt.scatter(x, dim, places, source)


def _replaced(view, x, source, *where):
    """Return a copy of x in which the part that `view` selects is `source`."""
    result = gt.copy(x)
    view(result, *where)[...] = source.astype(x.dtype, copy=False)
    return result


@aten("select_scatter")
def select_scatter(x, source, dim, place):
    return _replaced(slice_, x, gt.expand_dims(source, dim), dim, place, place + 1 or None)


@aten("slice_scatter")
def slice_scatter(x, source, dim=0, start=None, end=None, step=1):
    return _replaced(slice_, x, source, dim, start, end, step)


@aten("diagonal_scatter")
def diagonal_scatter(x, source, offset=0, dim1=0, dim2=1):
    n, m = x.shape[dim1], x.shape[dim2]
    rows = np.arange(n)[:, None] + offset == np.arange(m)
    on = gt.asarray(np.expand_dims(rows, tuple(range(x.ndim - 2))), device=x.device)
    wide = gt.diag_embed(source, offset)
    wide = wide[..., : n if wide.shape[-2] > n else None, : m if wide.shape[-1] > m else None]
    moved = gt.moveaxis(x, (dim1, dim2), (-2, -1))
    return gt.moveaxis(gt.where(on, wide, moved), (-2, -1), (dim1, dim2))


@aten("embedding")
def embedding(table, places, padding_idx=-1, scale_grad_by_freq=False, sparse=False):
    return gt.take(table, places, 0)


@aten("embedding_bag _embedding_bag _embedding_bag_forward_only")
def embedding_bag(table, places, offsets, scale_grad_by_freq=False, mode=0, sparse=False, *others):
    """A bag is the sum (mode 0), mean (1) or maximum (2) of rows; `offsets` are its starts."""
    weights, is_last_the_end, padding = list(others) + [None, False, -1][len(others) :]
    count, bags = places.shape[0], offsets.shape[0] - bool(is_last_the_end)
    at = gt.arange(count, dtype=offsets.dtype, device=table.device)
    bag = gt.sum(gt.expand_dims(at, 1) >= offsets[:bags], axis=1) - 1
    rows = gt.take(table, places, 0)
    rows = rows if weights is None else rows * gt.expand_dims(weights, 1)
    ones = gt.ones((count,), dtype=table.dtype, device=table.device)
    if padding is not None and padding >= 0:
        ones = gt.not_equal(places, padding).astype(table.dtype)
        rows = rows * gt.expand_dims(ones, 1)
    empty = gt.zeros((bags, table.shape[1]), dtype=table.dtype, device=table.device)
    if mode == 2:
        found = gt.index_reduce(empty, 0, bag, rows, "amax", include_self=False)
    else:
        found = gt.index_add(empty, 0, bag, rows)
    if mode == 1:
        counts = gt.index_add(empty[:, 0], 0, bag, ones)
        found = found / gt.expand_dims(gt.maximum(counts, 1), 1)
    return found, bag, None, None


@aten("one_hot")
def one_hot(x, count=-1):
    return gt.one_hot(x, count)
