"""Gather, scatter and progressions on the host device."""

import numpy as np

from gputensor._kernels.host.elementwise import cast

__all__ = ["run_arange", "run_check", "run_gather", "run_scatter"]


def run_arange(start, step, out):
    """Write ``start + i * step``; integers wrap, floats are computed in float64.

    >>> import numpy as np
    >>> out = np.empty(3, np.float32)
    >>> run_arange(1.0, 0.5, out)
    >>> out
    array([1. , 1.5, 2. ], dtype=float32)
    >>> out = np.empty(3, np.int8)
    >>> run_arange(5, 2**64 - 1, out)
    >>> out
    array([5, 4, 3], dtype=int8)
    """
    if isinstance(start, int):
        start, step = (np.int64((value + 2**63) % 2**64 - 2**63) for value in (start, step))
        values = np.arange(out.shape[0], dtype=np.int64)
    else:
        values = np.arange(out.shape[0], dtype=np.float64)
    values = start + (values if step == 1 else values * step)
    out[...] = cast(values, out.dtype)


def run_check(extents, *indices):
    """Raise IndexError for an index out of range; read and write no elements.

    >>> import numpy as np
    >>> run_check((3,), np.array([2, -4]))
    Traceback (most recent call last):
        ...
    IndexError: index -4 is out of bounds for axis 0 with size 3
    """
    for axis, (extent, index) in enumerate(zip(extents, indices, strict=True)):
        for one in (index.min(), index.max()):
            if not -extent <= int(one) < extent:
                raise IndexError(f"index {one} is out of bounds for axis {axis} with size {extent}")


def selection(first_axis, whole, indices):
    """The key of index arrays along the axes of `whole` from `first_axis` on."""
    for axis, index in enumerate(indices, first_axis):
        if index.dtype == np.uint64 and index.size and index.max() >= whole.shape[axis]:
            got, extent = index.max(), whole.shape[axis]
            raise IndexError(f"index {got} is out of bounds for axis {axis} with size {extent}")
    return (slice(None),) * first_axis + tuple(index.astype(np.int64) for index in indices)


def run_gather(first_axis, out, source, *indices):
    """Write ``source[:, ..., indices...]`` into `out`.

    >>> import numpy as np
    >>> out = np.empty(2)
    >>> run_gather(0, out, np.array([5.0, 6.0, 7.0]), np.array([2, -3]))
    >>> out
    array([7., 5.])
    """
    out[...] = source[selection(first_axis, source, indices)].reshape(out.shape)


def run_scatter(first_axis, target, values, *indices):
    """Write `values` to ``target[:, ..., indices...]``; the last of equal indices wins.

    >>> import numpy as np
    >>> target = np.zeros(3)
    >>> run_scatter(0, target, np.array([4.0, 5.0]), np.array([1, 1]))
    >>> target
    array([0., 5., 0.])
    """
    target[selection(first_axis, target, indices)] = values
