"""Sorting, and functions based on it: unique elements, selection, membership.

NaN comes last in ascending order. Functions without a kernel of their own use `sort`, `argsort` and
`searchsorted`; the number of unique elements is the only value that the host reads.
"""

import math
from typing import NamedTuple

import numpy as np

from gputensor._arrays.dtypes import float32, int64, is_float8
from gputensor._arrays.promotion import result_type
from gputensor._engines import sorting as engines
from gputensor.errors import Described, argument_error, int_argument
from gputensor.tensor import functions as fn
from gputensor.tensor.core import Tensor, axis_argument, on_one_device, spellings, tensor_argument
from gputensor.tensor.engine import queue_call, queue_engine
from gputensor.tensor.interop import asarray, astype
from gputensor.tensor.interop.arrays import beside
from gputensor.tensor.manipulation import (
    arange,
    empty,
    empty_like,
    moveaxis,
    reshape,
    take,
    zeros,
)
from gputensor.tensor.manipulation.joining import concat
from gputensor.tensor.manipulation.picking import take_along_axis
from gputensor.tensor.places import chosen, firsts, integers
from gputensor.tensor.scans import cumsum

__all__ = [
    "argsort", "isin", "searchsorted", "sort", "sort_in_place", "topk", "unique", "unique_all",
    "unique_counts", "unique_inverse", "unique_values",
]  # fmt: skip


# `topk` sorts completely for a larger k, and selects few rows above LONG_SELECTION in parts.
LARGEST_K = 2048
LONG_SELECTION = 1 << 17
FEW_ROWS = 64


def _known(x):
    """Return `x` in a dtype that the kernels can order: fp8 becomes float32."""
    return astype(x, float32) if is_float8(x.dtype) else x


def _rows(x, axis):
    """Return the lines along an axis as dense rows, and the shape with that axis last."""
    moved = x if axis == x.ndim - 1 else moveaxis(x, axis, -1)
    return reshape(moved.contiguous(), (-1, x.shape[axis])), moved.shape


def _back(rows, shape, axis):
    result = reshape(rows, (*shape[:-1], rows.shape[-1]))
    return result if axis == len(shape) - 1 else moveaxis(result, -1, axis)


def _ndim(x, name):
    return tensor_argument(x, name).ndim


def _line(x, axis, name):
    if axis is None:
        return reshape(tensor_argument(x, name), -1), 0
    return x, axis_argument(axis, tensor_argument(x, name).ndim, name)


def _check_kind(kind, name):
    if kind not in (None, "quicksort", "mergesort", "heapsort", "stable"):
        raise argument_error(ValueError, f"{name}: kind", kind, "the name of a sort of NumPy")


@spellings("gputensor.tensor.numerics.torch_results.sort_with_indices", dim="axis")
def sort(x, /, axis=-1, kind=None, *, descending=False, stable=True):
    """Return a copy sorted along `axis`; None sorts the flattened tensor.

    `stable` and NumPy's `kind` have no effect: equal elements always keep their order. A bool in
    the place of `kind` is PyTorch's `descending`, and returns the positions, too.

    >>> import gputensor as gt
    >>> sort(gt.asarray([3, 1, 2], device="host"), descending=True).tolist()
    [3, 2, 1]
    """
    if isinstance(kind, (bool, np.bool_)):
        return sort(x, dim=axis, descending=kind)
    _check_kind(kind, "sort")
    x, axis = _line(x, axis, "sort")
    if x.size == 0:
        return astype(x, x.dtype)
    if x.dtype.kind == "c":
        result = queue_engine(engines.sort, (axis, bool(descending)), [_new(x)], x)
    else:
        rows, shape = _rows(_known(x), axis)
        out = empty_like(rows)
        queue_call("sort", (bool(descending),), (out,), (rows,))
        result = _back(out, shape, axis)
    return astype(result, x.dtype, copy=False)


def _new(x, dtype=None):
    """Return an empty row-major tensor with the shape of `x`."""
    return empty(x.shape, x.dtype if dtype is None else dtype, device=x.device)


@spellings("gputensor.tensor.numerics.torch_results.sort_with_indices", dim="axis",
           descending="descending", stable="stable")  # fmt: skip
def sort_in_place(x, /, axis=-1, kind=None):
    """Sort the tensor itself along `axis`: the method ``x.sort()``, as in NumPy.

    With PyTorch's keywords, or its `descending` as a bool in the place of `kind`, it changes
    nothing and returns the sorted elements and their positions.

    >>> import gputensor as gt
    >>> x = gt.asarray([3, 1, 2], device="host")
    >>> x.sort()
    >>> x.tolist()
    [1, 2, 3]
    """
    if isinstance(kind, (bool, np.bool_)):
        return sort(x, axis, kind)
    x[...] = sort(x, axis, kind)
    return None


@spellings(dim="axis")
def argsort(x, /, axis=-1, kind=None, *, descending=False, stable=True):
    """Return the int64 positions that sort `x` along `axis`; None sorts the flattened tensor.

    Equal elements keep their order, so `stable` and NumPy's `kind` have no effect. A bool in the
    place of `kind` is PyTorch's `descending`.

    >>> import gputensor as gt
    >>> argsort(gt.asarray([3, 1, 2], device="host")).tolist()
    [1, 2, 0]
    """
    if isinstance(kind, (bool, np.bool_)):
        kind, descending = None, kind
    _check_kind(kind, "argsort")
    x, axis = _line(x, None if axis in (0, -1) and not _ndim(x, "argsort") else axis, "argsort")
    if x.size == 0:
        return _new(x, int64)
    if x.dtype.kind == "c":
        return queue_engine(engines.argsort, (axis, bool(descending)), [_new(x, int64)], x)
    rows, shape = _rows(_known(x), axis)
    out = empty(rows.shape, int64, device=x.device)
    queue_call("argsort", (bool(descending),), (out,), (rows,))
    return _back(out, shape, axis)


class TopK(NamedTuple):
    """The result of :func:`topk`."""

    values: Tensor
    indices: Tensor


@spellings(dim="axis")
def topk(x, /, k, axis=-1, largest=True, sorted=True):
    """Return the `k` greatest (or least) elements along `axis`, sorted, and their positions.

    PyTorch's `sorted` has no effect.

    >>> import gputensor as gt
    >>> values, indices = topk(gt.asarray([3, 1, 2], device="host"), 2)
    >>> values.tolist(), indices.tolist()
    ([3, 2], [0, 2])
    """
    axis = axis_argument(axis, tensor_argument(x, "topk").ndim, "topk")
    k = int_argument("topk: k", k)
    if not 0 <= k <= x.shape[axis]:
        raise argument_error(ValueError, "topk: k", k, f"0 to {x.shape[axis]}, the extent")
    if x.dtype.kind == "c" or k > LARGEST_K or x.dtype != _known(x[:0]).dtype:
        order = argsort(x, axis, descending=largest)[(slice(None),) * axis + (slice(k),)]
        return TopK(take_along_axis(x, order, axis), order)
    shape = (*x.shape[:axis], k, *x.shape[axis + 1 :])
    if k == 0 or x.size == 0:
        empties = (empty(shape, dtype, device=x.device) for dtype in (x.dtype, int64))
        return TopK(*empties)
    rows, moved = _rows(x, axis)
    return TopK(*(_back(one, moved, axis) for one in _selected(rows, k, bool(largest))))


def _selected(rows, k, is_largest):
    """Return the first k of each sorted row, and their columns; few long rows are done in parts."""
    count, columns = rows.shape
    if columns >= LONG_SELECTION and count < FEW_ROWS and k <= columns >> 6:
        parts = min(1024, columns // max(1 << 14, 4 * k))
        width = columns // parts
        lines = rows[:, : parts * width].contiguous()
        values, order = _selected(reshape(lines, (count * parts, width)), k, is_largest)
        starts = arange(0, parts * width, width, device=rows.device)
        order = reshape(order, (count, parts, k)) + reshape(starts, (parts, 1))
        pieces = [(reshape(values, (count, -1)), reshape(order, (count, -1)))]
        if parts * width < columns:
            rest = rows[:, parts * width :].contiguous()
            values, order = _selected(rest, min(k, rest.shape[1]), is_largest)
            pieces.append((values, order + parts * width))
        values, order = (concat(list(one), axis=1) for one in zip(*pieces, strict=True))
        values, places = _selected(values.contiguous(), k, is_largest)
        return values, take_along_axis(order, places, 1)
    values = empty((count, k), rows.dtype, device=rows.device)
    order = empty((count, k), int64, device=rows.device)
    queue_call("topk", (is_largest,), (values, order), (rows,))
    return values, order


def searchsorted(x, values, /, side="left", sorter=None, *, right=False):
    """Return the positions at which `values` would be inserted into sorted `x` to keep it sorted.

    Parameters
    ----------
    x : Tensor or list
        In ascending order along the last axis; with `sorter` in any order. With several axes each
        line is searched for the values at the same place, as in PyTorch.
    values : Tensor, number or list
        If `x` has several axes, its other extents are those of `x`.
    side : {"left", "right"}
        The position before or after equal elements; ``right=True`` is PyTorch's ``side="right"``.
    sorter : Tensor, optional
        The positions that sort `x`.

    >>> import gputensor as gt
    >>> searchsorted(gt.asarray([1, 3, 5], device="host"), 3, side="right").item()
    2
    """
    if isinstance(x, (list, tuple)):
        x = beside(x, tensor_argument(values, "searchsorted"))
    if tensor_argument(x, "searchsorted").ndim == 0:
        got = Described("0 dimensions")
        raise argument_error(ValueError, "searchsorted: x", got, "1 or more")
    if not isinstance(side, str) or side not in ("left", "right"):
        raise argument_error(ValueError, "searchsorted: side", side, "'left' or 'right'")
    side = "right" if right else side
    if isinstance(values, (list, tuple)):
        values = beside(values, x)
    if type(values) is not Tensor:
        values = asarray(values, result_type(x, values), device=x.device)
    x, values = on_one_device("searchsorted", (x, values), None)
    if sorter is not None:
        sorter = sorter if isinstance(sorter, Tensor) else asarray(sorter, device=x.device)
        if sorter.shape != x.shape or sorter.dtype.kind not in "iu":
            got = Described(f"{sorter.dtype.name} of shape {sorter.shape}")
            raise argument_error(
                ValueError, "searchsorted: sorter", got, f"ints of shape {x.shape}"
            )
        x = take(x, sorter) if x.ndim == 1 else take_along_axis(x, sorter, -1)
    dtype = x.dtype if x.dtype == values.dtype else result_type(x, values)
    dtype = float32 if is_float8(dtype) else dtype
    x, values = (astype(one, dtype, copy=False) for one in (x, values))
    if x.ndim > 1:
        return _searched_lines(x, values, side == "right")
    out = _new(values, int64)
    if values.size and dtype.kind == "c":
        return queue_engine(engines.searchsorted, (side,), [out], x, values)
    if values.size:
        values = reshape(values.contiguous(), -1)
        queue_call("search", (side == "right",), (reshape(out, -1),), (x.contiguous(), values))
    return out


def _searched_lines(x, values, is_right):
    """Halve the part of each line in which a value belongs until no element is left."""
    if values.ndim != x.ndim or values.shape[:-1] != x.shape[:-1]:
        rule = f"{(*x.shape[:-1], -1)}, where -1 is any extent"
        raise argument_error(ValueError, "searchsorted: shape of values", values.shape, rule)
    low = zeros(values.shape, int64, device=x.device)
    if not x.shape[-1] or not values.size:
        return low
    high = fn.add(low, x.shape[-1])
    for _ in range(x.shape[-1].bit_length()):
        middle = fn.floor_divide(fn.add(low, high), 2)
        found = take_along_axis(x, fn.minimum(middle, x.shape[-1] - 1), -1)
        is_after = fn.less_equal(found, values) if is_right else fn.less(found, values)
        # NaN is sorted to the end.
        if x.dtype.kind in "fc":
            after_nan = fn.isnan(values) if is_right else fn.logical_not(fn.isnan(found))
            is_after = fn.logical_or(is_after, fn.logical_and(fn.isnan(values), after_nan))
        is_open = fn.less(low, high)
        low = fn.where(fn.logical_and(is_open, is_after), fn.add(middle, 1), low)
        high = fn.where(fn.logical_or(fn.logical_not(is_open), is_after), high, middle)
    return low


class UniqueAll(NamedTuple):
    """The result of :func:`unique_all`."""

    values: Tensor
    indices: Tensor
    inverse_indices: Tensor
    counts: Tensor


class UniqueCounts(NamedTuple):
    """The result of :func:`unique_counts`."""

    values: Tensor
    counts: Tensor


class UniqueInverse(NamedTuple):
    """The result of :func:`unique_inverse`."""

    values: Tensor
    inverse_indices: Tensor


def unique_values(x, /):
    """Return the unique elements in ascending order; each NaN is unique. Waits.

    >>> import gputensor as gt
    >>> unique_values(gt.asarray([3, 1, 3], device="host")).tolist()
    [1, 3]
    """
    return _different(tensor_argument(x, "unique_values"), False)


def _different(x, equal_nan):
    if (found := integers(x)) is not None:
        return found
    ordered = sort(x, None)
    return astype(chosen(_known(ordered), equal_nan), x.dtype, copy=False)


def _parts(x, equal_nan, name, wanted=(True, True, True)):
    """Return the unique values, their first positions, the inverse, and the counts.

    `wanted` says which of the last three the caller needs; the others may be None.
    """
    has_indices, has_inverse, has_counts = wanted
    flat = reshape(tensor_argument(x, name), -1)
    # Equal values have one position among the values, unless each NaN is a value.
    is_searched = flat.dtype.kind in "biu" or flat.dtype.kind != "c" and equal_nan
    if has_indices or has_inverse and not is_searched:
        order = argsort(flat)
        ordered = take(flat, order)
    else:
        order, ordered = None, sort(flat)
    starts = firsts(_known(ordered), equal_nan)
    values, inverse = take(ordered, starts), None
    if has_inverse and is_searched:
        inverse = searchsorted(values, flat)
    elif has_inverse:
        number = zeros(flat.size, int64, device=x.device)
        number[starts] = 1
        inverse = empty_like(order)
        inverse[order] = cumsum(number) - 1
    return (
        values,
        take(order, starts) if has_indices else None,
        reshape(inverse, x.shape) if has_inverse else None,
        _lengths(starts, flat.size) if has_counts else None,
    )


def _lengths(starts, size):
    """Return the lengths of the parts of `size` elements that begin at `starts`."""
    lengths = empty_like(starts)
    if starts.size:
        fn.subtract(starts[1:], starts[:-1], out=lengths[:-1])
        fn.subtract(size, starts[-1:], out=lengths[-1:])
    return lengths


def unique_all(x, /):
    """Return the unique elements, first positions, each element's number, and counts. Waits.

    >>> import gputensor as gt
    >>> [part.tolist() for part in unique_all(gt.asarray([3, 1, 3], device="host"))]
    [[1, 3], [1, 0], [1, 0, 1], [1, 2]]
    """
    return UniqueAll(*_parts(x, False, "unique_all"))


def unique_counts(x, /):
    """Return the unique elements and their counts. Waits.

    >>> import gputensor as gt
    >>> [part.tolist() for part in unique_counts(gt.asarray([3, 1, 3], device="host"))]
    [[1, 3], [1, 2]]
    """
    wanted = False, False, True
    values, _indices, _inverse, counts = _parts(x, False, "unique_counts", wanted)
    return UniqueCounts(values, counts)


def unique_inverse(x, /):
    """Return the unique elements, and for each element its position among them. Waits.

    >>> import gputensor as gt
    >>> [part.tolist() for part in unique_inverse(gt.asarray([3, 1, 3], device="host"))]
    [[1, 3], [1, 0, 1]]
    """
    wanted = False, True, False
    values, _indices, inverse, _counts = _parts(x, False, "unique_inverse", wanted)
    return UniqueInverse(values, inverse)


def _unique_rows(x, axis):
    """Return the unique slices along an axis in lexical order, and the others as `_parts`."""
    axis = axis_argument(axis, x.ndim, "unique")
    moved = moveaxis(x, axis, 0)
    rows = reshape(moved.contiguous(), (x.shape[axis], math.prod(moved.shape[1:])))
    order = arange(rows.shape[0], device=x.device)
    for column in reversed(range(rows.shape[1])):
        order = take(order, argsort(take(rows[:, column], order)))
    ordered = take(rows, order, 0)
    number = zeros(order.size, int64, device=x.device)
    number[1:] = cumsum(astype(fn.any(fn.not_equal(ordered[1:], ordered[:-1]), 1), int64))
    starts = firsts(number, False)
    inverse = empty_like(order)
    inverse[order] = number
    indices = take(order, starts)
    values = moveaxis(take(moved, indices, 0), 0, axis)
    return values, indices, inverse, _lengths(starts, order.size)


@spellings(dim="axis")
def unique(
    x,
    /,
    return_index=False,
    return_inverse=False,
    return_counts=False,
    axis=None,
    *,
    equal_nan=True,
):
    """Return the unique elements in ascending order, with indices and counts as in NumPy. Waits.

    With `axis`, return the unique slices along it, in lexical order; slices with NaN are unique.

    >>> import gputensor as gt
    >>> unique(gt.asarray([3, 1, 3], device="host")).tolist()
    [1, 3]
    """
    wanted = return_index, return_inverse, return_counts
    if axis is not None and tensor_argument(x, "unique").ndim == 1:
        axis_argument(axis, 1, "unique")
        axis = None
    tensor_argument(x, "unique")
    if axis is None and not any(wanted):
        return _different(x, equal_nan)
    parts = _parts(x, equal_nan, "unique", wanted) if axis is None else _unique_rows(x, axis)
    if not any(wanted):
        return parts[0]
    wanted = True, *wanted
    return tuple([part for part, is_wanted in zip(parts, wanted, strict=True) if is_wanted])


def _few(x):
    """Return how many values `isin` compares x with one by one, where that is faster than a sort.

    On a host device: as measured for few and for many elements. On a GPU: fewer launches.
    """
    return 2 if x.device.number >= 0 else 4 if x.size < 4096 else 12


def isin(x1, x2, /, assume_unique=False, invert=False):
    """Return, for each element of x1, whether it is in x2; False for NaN.

    >>> import gputensor as gt
    >>> x = gt.arange(4, device="host")
    >>> isin(x, gt.asarray([1, 3], device="host")).tolist()
    [False, True, False, True]
    """
    first = tensor_argument(x1 if type(x1) is Tensor else x2, "isin")
    if isinstance(x2, (int, float, complex)):
        found = fn.equal(x1, x2)
        return fn.logical_not(found) if invert else found
    if isinstance(x1, (int, float, complex)):
        found = fn.any(fn.equal(x2, x1))
        return fn.logical_not(found) if invert else found
    x1, x2 = beside(x1, first), beside(x2, first)
    if x2.size == 0:
        found = fn.logical_and(fn.equal(x1, x1), False)
    elif x2.size <= _few(x1):
        values = [reshape(x2, -1)[i] for i in range(x2.size)]
        found = fn.equal(x1, values[0])
        for value in values[1:]:
            found = fn.logical_or(found, fn.equal(x1, value))
    else:
        ordered = sort(x2, None)
        places = fn.minimum(searchsorted(ordered, x1), ordered.size - 1)
        found = fn.equal(take(ordered, places), x1)
    return fn.logical_not(found) if invert else found
