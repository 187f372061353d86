"""Reductions on the host device: NumPy functions on views of its memory."""

import math

import numpy as np

from gputensor._kernels.host.elementwise import WIDE, cast, host_function, rounded
from gputensor._kernels.operations import REDUCTIONS

__all__ = ["run"]

FEW = 1 << 12  # elements; up to this number faces/host_fold.h may reduce instead
BLOCK = 128  # rows; up to this length NumPy itself adds one after the other

_FUNCTIONS = tuple(host_function(row) for row in REDUCTIONS)
_ROWS = {row.name: row for row in REDUCTIONS}


def _flattened(array, axes):
    """Move the reduced axes to the end and merge them into one."""
    first = array.ndim - len(axes)
    if array.flags.c_contiguous and min(axes, default=first) == first:  # they are the last ones
        return array.reshape(*array.shape[:first], math.prod(array.shape[first:]))
    kept = [axis for axis in range(array.ndim) if axis not in axes]
    moved = array.transpose(kept + list(axes))
    length = 1
    for axis in axes:
        length *= array.shape[axis]
    return moved.reshape([array.shape[axis] for axis in kept] + [length])


def _is_innermost(array, axes):
    """Whether neighbours in memory are reduced together, or the layout does not matter."""
    if array.flags.c_contiguous and array.ndim and array.shape[-1] > 1:
        return not axes or array.ndim - 1 in axes or array.size == 0
    long = [axis for axis in range(array.ndim) if array.shape[axis] > 1]
    if array.size == 0 or not long or not axes:
        return True
    return min(long, key=lambda axis: (abs(array.strides[axis]), -axis)) in axes


def _in_blocks(function, array, axes):
    """Reduce whole rows at a time without moving axes: blocks of the longest axis, then the blocks.

    NumPy adds such rows one after the other; with blocks the error grows with the block size only.
    """
    longest = max(axes, key=lambda axis: array.shape[axis])
    extent = array.shape[longest]
    count = extent // BLOCK
    if count < 2:
        return function.reduce(array, axis=axes, dtype=array.dtype)
    before = (slice(None),) * longest
    whole = array[before + (slice(count * BLOCK),)]
    shape = (*array.shape[:longest], count, BLOCK, *array.shape[longest + 1 :])
    parts = whole.reshape(shape)
    inner = tuple(axis + (axis >= longest) for axis in axes)
    parts = function.reduce(parts, axis=inner, dtype=array.dtype)
    place = longest - sum(axis < longest for axis in axes)
    result = function.reduce(parts, axis=place, dtype=array.dtype)
    if count * BLOCK < extent:
        rest = function.reduce(array[before + (slice(count * BLOCK, None),)], axis=axes,
                               dtype=array.dtype)  # fmt: skip
        result = function(result, rest)
    return result


def _with_signs(name, result, values, axes):
    """Let +0 be greater than -0, as host_fold.h does: NumPy returns one of the two."""
    if (result != 0).all():
        return result
    is_wanted = np.signbit(values) if name == "min" else ~np.signbit(values)
    has_wanted = np.any((values == 0) & is_wanted, axis=axes)
    zero = np.array([0.0, -0.0], result.dtype)[(has_wanted == (name == "min")).astype(int)]
    return np.where(result == 0, zero, result)


def _accumulate(row, values, axes):
    if row.name == "var":
        mean = np.expand_dims(_accumulate(_ROWS["mean"], values, axes), tuple(axes))
        away = np.asarray(values - mean)
        return _accumulate(_ROWS["mean"], np.multiply(away, away, out=away), axes)
    if row.rule == "index":
        return _FUNCTIONS[row.code](_flattened(values, axes), axis=-1)
    if row.rule in ("truth", "same"):
        result = _FUNCTIONS[row.code].reduce(values, axis=axes)
        is_short = values.dtype.kind == "f" and 1 < values.size <= FEW and row.rule == "same"
        return _with_signs(row.name, np.asarray(result), values, axes) if is_short else result
    if values.dtype != bool and not _is_innermost(values, axes):
        result = _in_blocks(_FUNCTIONS[row.code], values, axes)
        length = math.prod(values.shape[axis] for axis in axes)
        if row.rule == "mean":
            return np.true_divide(result, np.array(length, result.real.dtype))
        return result
    # One contiguous axis, so that NumPy sums pairwise for any strides of the input.
    flat = np.ascontiguousarray(_flattened(values, axes))
    if values.dtype == bool:
        return flat.any(axis=-1) if row.host == "np.add" else flat.all(axis=-1)
    result = _FUNCTIONS[row.code].reduce(flat, axis=-1, dtype=flat.dtype)
    if row.rule == "mean":
        return np.true_divide(result, np.array(flat.shape[-1], flat.real.dtype))
    return result


def run(op, compute, axes, out, array):
    """Reduce `array` over `axes` into `out`, computing in the dtype `compute`.

    >>> import numpy as np
    >>> out = np.empty((), np.int64)
    >>> run("argmax", "float32", (0,), out, np.array([1.0, 3.0, 3.0], np.float32))
    >>> int(out)
    1
    """
    if op == "sum" and array.dtype == bool and compute != "bool":
        out[...] = np.count_nonzero(array, axis=tuple(axes) if len(axes) < array.ndim else None)
        return
    dtype, wide = WIDE[compute]
    values = cast(cast(array, dtype), wide)
    result = np.asarray(_accumulate(_ROWS[op], values, axes))
    out[...] = cast(rounded(result, dtype), out.dtype)
