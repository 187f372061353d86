"""Reductions of elements that share a position: scatter_reduce, index_reduce, ufunc.at."""

from gputensor._arrays.dtypes import int64
from gputensor.errors import Described, argument_error
from gputensor.tensor import functions as fn
from gputensor.tensor.core import axis_argument, spellings, tensor_argument
from gputensor.tensor.interop import astype
from gputensor.tensor.interop import copy as copy_of
from gputensor.tensor.manipulation import arange, broadcast_to, reshape, zeros
from gputensor.tensor.manipulation.joining import concat
from gputensor.tensor.sorting import argsort, searchsorted
from gputensor.tensor.writing import flat_places, index_add

__all__ = ["extremes_at", "index_reduce", "joined_at", "scatter_reduce"]

REDUCTIONS = ("sum", "prod", "mean", "amax", "amin")


def extremes_at(x, places, values, is_least, is_included=True):
    """Return a vector with the greatest or least of the values at each place, and of its own.

    The values are sorted by place, so the result is the same at each call; NaN wins. Without
    `is_included` an element counts only if no value is at its place.

    >>> import gputensor as gt
    >>> x, places = gt.zeros(2, device="host"), gt.asarray([1, 1], device="host")
    >>> extremes_at(x, places, gt.asarray([3.0, 2.0], device="host"), False).tolist()
    [0.0, 3.0]
    """
    if not values.size:
        return fn.positive(x) if x.dtype.kind != "b" else fn.logical_or(x, x)
    order = argsort(values)
    order = order[argsort(places[order])]
    places, values = places[order], values[order]
    slots = arange(x.size, device=x.device)
    first, end = (searchsorted(places, slots, side=side) for side in ("left", "right"))
    last = values[fn.maximum(end - 1, 0)]
    best = last
    if is_least:  # a NaN is the last one
        least = values[fn.minimum(first, values.size - 1)]
        best = fn.where(fn.isnan(last), last, least) if x.dtype.kind in "fV" else least
    joined = (fn.minimum if is_least else fn.maximum)(x, best) if is_included else best
    return fn.where(fn.less(first, end), joined, x)


def joined_at(join, x, places, values, is_included=True):
    """Return a vector with its elements and the values at their places joined, in their order.

    `join` is an associative function of two tensors. Without `is_included` an element counts only
    if no value is at its place.

    >>> import gputensor as gt
    >>> x, places = gt.ones(2, device="host"), gt.asarray([1, 1], device="host")
    >>> joined_at(gt.multiply, x, places, gt.asarray([3.0, 2.0], device="host")).tolist()
    [1.0, 6.0]
    """
    if not values.size:
        return copy_of(x)
    order = argsort(places)
    places, found = places[order], values[order]
    step = 1  # each element takes in those of its place that are up to `step` before it
    while step < places.size:
        both = join(found[:-step], found[step:])
        joined = fn.where(places[step:] == places[:-step], both, found[step:])
        found = concat([found[:step], joined])
        step *= 2
    slots = arange(x.size, device=x.device)
    first, end = (searchsorted(places, slots, side=side) for side in ("left", "right"))
    joined = found[fn.maximum(end - 1, 0)]
    joined = join(x, joined) if is_included else joined
    return fn.where(fn.less(first, end), joined, x)


def _checked(x, source, reduce, name):
    if reduce not in REDUCTIONS:
        rule = f"one of {', '.join(REDUCTIONS)}"
        raise argument_error(ValueError, f"{name}: reduce", reduce, rule)
    if tensor_argument(source, name).dtype != tensor_argument(x, name).dtype:
        got = Described(source.dtype.name)
        raise argument_error(TypeError, f"{name}: dtype of source", got, x.dtype.name)
    if x.dtype.kind in "bc":
        raise argument_error(TypeError, f"{name}: x", Described(x.dtype.name), "a real dtype")


def _reduced(x, places, values, reduce, is_included):
    """Return the reduced vector of a vector."""
    if reduce in ("amax", "amin"):
        return extremes_at(x, places, values, reduce == "amin", is_included)
    if reduce == "prod":
        return joined_at(fn.multiply, x, places, values, is_included)
    ones = fn.add(zeros(places.shape, int64, device=x.device), 1)
    count = index_add(zeros(x.shape, int64, device=x.device), 0, places, ones)
    start = x if is_included else fn.where(count > 0, 0, x)
    total = index_add(start, 0, places, values)
    if reduce == "sum":
        return total
    count = fn.maximum(fn.add(count, int(is_included)), 1)
    divide = fn.floor_divide if x.dtype.kind in "iu" else fn.divide
    return astype(divide(total, astype(count, x.dtype)), x.dtype, copy=False)


@spellings(dim="axis", src="source")
def scatter_reduce(x, /, axis, index, source, reduce, *, include_self=True):
    """Return `x` with elements along `axis`, selected by `index`, reduced with those of `source`.

    Parameters
    ----------
    index : Tensor
        Positions along `axis`, in the shape of `source` or smaller.
    source : Tensor
        Of the dtype of `x`.
    reduce : {"sum", "prod", "mean", "amax", "amin"}
    include_self : bool
        Whether the selected elements of `x` take part; the others always stay.

    >>> import gputensor as gt
    >>> x, index = gt.zeros(2, device="host"), gt.asarray([0, 0], device="host")
    >>> scatter_reduce(x, 0, index, gt.asarray([-1.0, -3.0], device="host"), "amin").tolist()
    [-3.0, 0.0]
    """
    name = "scatter_reduce"
    _checked(x, source, reduce, name)
    axis = axis_argument(axis, x.ndim, name)
    if tensor_argument(index, name).dtype.kind not in "iu" or index.ndim != x.ndim:
        got = Described(f"{index.dtype.name} of {index.ndim} dimensions")
        raise argument_error(TypeError, f"{name}: index", got, f"integers of {x.ndim} dimensions")
    source = source[tuple(slice(extent) for extent in index.shape)]
    if source.shape != index.shape:
        got = Described(f"shape {source.shape}")
        raise argument_error(ValueError, f"{name}: source", got, f"{index.shape} or more")
    places = flat_places(x, axis, index, name)
    values = reshape(source, -1)
    return reshape(_reduced(reshape(x, -1), places, values, reduce, include_self), x.shape)


@spellings(dim="axis")
def index_reduce(x, /, axis, index, source, reduce, *, include_self=True):
    """Return `x` with slices along `axis`, selected by `index`, reduced with those of `source`.

    `index` is a vector; other arguments are those of :func:`scatter_reduce`.

    >>> import gputensor as gt
    >>> x, index = gt.zeros(2, device="host"), gt.asarray([1, 1], device="host")
    >>> index_reduce(x, 0, index, gt.asarray([1.0, 5.0], device="host"), "mean").tolist()
    [0.0, 2.0]
    """
    axis = axis_argument(axis, tensor_argument(x, "index_reduce").ndim, "index_reduce")
    if tensor_argument(index, "index_reduce").ndim != 1:
        got = Described(f"{index.ndim} dimensions")
        raise argument_error(ValueError, "index_reduce: index", got, "1")
    index = reshape(index, [-1 if i == axis else 1 for i in range(x.ndim)])
    wanted = (*x.shape[:axis], index.size, *x.shape[axis + 1 :])
    if tensor_argument(source, "index_reduce").shape != wanted:
        got = Described(f"shape {source.shape}")
        raise argument_error(ValueError, "index_reduce: source", got, f"{wanted}")
    index = broadcast_to(index, wanted)
    return scatter_reduce(x, axis, index, source, reduce, include_self=include_self)
