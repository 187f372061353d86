"""Reductions on the host device: NumPy functions on views of its memory."""

import numpy as np

from gputensor._kernels.host.elementwise import WIDE, cast, host_function, rounded
from gputensor._kernels.operations import REDUCTIONS

__all__ = ["run"]

_FUNCTIONS = tuple(host_function(row) for row in REDUCTIONS)
_ROWS = {row.name: row for row in REDUCTIONS}


def _flattened(array, axes):
    """Move the reduced axes to the end and make them one."""
    kept = [axis for axis in range(array.ndim) if axis not in axes]
    moved = array.transpose(kept + list(axes))
    length = 1
    for axis in axes:
        length *= array.shape[axis]
    return moved.reshape([array.shape[axis] for axis in kept] + [length])


def _accumulate(row, values, axes):
    if row.rule == "index":
        return _FUNCTIONS[row.code](_flattened(values, axes), axis=-1)
    if row.rule in ("truth", "same"):
        return _FUNCTIONS[row.code].reduce(values, axis=axes)
    # One contiguous axis, so that NumPy sums in pairs whatever the strides were.
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
    dtype, wide = WIDE[compute]
    values = cast(cast(array, dtype), wide)
    result = np.asarray(_accumulate(_ROWS[op], values, axes))
    out[...] = cast(rounded(result, dtype), out.dtype)
