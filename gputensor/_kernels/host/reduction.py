"""Reductions on the host device: NumPy functions on views of its memory."""

import numpy as np

from gputensor._arrays.element_types import DTYPES
from gputensor._kernels.host.elementwise import cast
from gputensor._kernels.operations import REDUCTIONS

__all__ = ["run"]

_NAMES = tuple(row.name for row in REDUCTIONS)
_PLAIN = {
    "sum": np.add,
    "prod": np.multiply,
    "max": np.maximum,
    "min": np.minimum,
    "any": np.logical_or,
    "all": np.logical_and,
}


def _flattened(array, axes):
    """Move the reduced axes to the end and make them one."""
    kept = [axis for axis in range(array.ndim) if axis not in axes]
    moved = array.transpose(kept + list(axes))
    length = 1
    for axis in axes:
        length *= array.shape[axis]
    return moved.reshape([array.shape[axis] for axis in kept] + [length])


def _accumulate(name, values, axes):
    if name in ("argmax", "argmin"):
        return getattr(np, name)(_flattened(values, axes), axis=-1)
    if name == "mean":
        # One contiguous axis, so that NumPy sums in pairs whatever the strides were.
        flat = np.ascontiguousarray(_flattened(values, axes))
        return np.true_divide(flat.sum(axis=-1), np.array(flat.shape[-1], flat.real.dtype))
    function = _PLAIN[name]
    if name in ("any", "all"):
        return function.reduce(values, axis=axes, dtype=bool)
    if name in ("max", "min"):
        return function.reduce(values, axis=axes)
    flat = np.ascontiguousarray(_flattened(values, axes))
    return function.reduce(flat, axis=-1, dtype=flat.dtype)


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
    if values.dtype == bool and _NAMES[op] in ("sum", "prod"):
        name = "any" if _NAMES[op] == "sum" else "all"
    else:
        name = _NAMES[op]
    result = np.asarray(_accumulate(name, values, axes))
    if result.dtype == np.float32 and dtype.itemsize == 2:
        result = result.astype(dtype)
    out[...] = cast(result, out.dtype)
