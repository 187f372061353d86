"""Reductions on the host device: NumPy functions on views of its memory."""

import numpy as np

from gputensor._arrays.element_types import DTYPES
from gputensor._kernels.host.elementwise import cast, host_function
from gputensor._kernels.operations import REDUCTIONS

__all__ = ["run"]

_FUNCTIONS = tuple(host_function(row) for row in REDUCTIONS)


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


def run(op, compute, out, array, axes):
    """Reduce `array` over `axes` into `out`, computing as the dtype of code `compute`.

    >>> import numpy as np
    >>> out = np.empty((), np.int64)
    >>> run(4, 11, out, np.array([1.0, 3.0, 3.0], np.float32), (0,))
    >>> int(out)
    1
    """
    dtype = DTYPES[compute].numpy
    wide = np.dtype(np.float32) if DTYPES[compute].compute == "float" else dtype
    values = cast(cast(array, dtype), wide)
    result = np.asarray(_accumulate(REDUCTIONS[op], values, axes))
    if result.dtype == np.float32 and dtype.itemsize == 2:
        result = result.astype(dtype)
    out[...] = cast(result, out.dtype)
