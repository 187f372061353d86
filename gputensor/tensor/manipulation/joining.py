"""Tensors put together, repeated and taken apart along an axis.

Everything is made of a new tensor and writes to slices of it, one kernel for each part.
"""

import operator

from gputensor._arrays.promotion import result_type
from gputensor.tensor.core import axis_argument, tensor_argument
from gputensor.tensor.interop import copy
from gputensor.tensor.manipulation import broadcast_to, empty, expand_dims, permute_dims, reshape

__all__ = ["concat", "meshgrid", "repeat", "roll", "stack", "tile", "unstack"]


def _whole(value, name, argument):
    try:
        return operator.index(value)
    except TypeError:
        raise TypeError(
            f"{name}: {argument} is a {type(value).__name__}; an int is needed"
        ) from None


def _several(value):
    """The values of a tuple or a list; one value otherwise."""
    return tuple(value) if isinstance(value, (tuple, list)) else (value,)


def _at(axis, key):
    """The index that applies `key` along `axis` >= 0."""
    return (slice(None),) * axis + (key,)


def concat(arrays, /, *, axis=0):
    """Return the tensors joined along an axis that they have; None joins them flattened.

    Parameters
    ----------
    arrays : sequence of Tensor
        At least one; equal shapes but for `axis`, one device. The dtype is their common one.
    axis : int or None

    >>> import gputensor as gt
    >>> concat([gt.zeros(1, device="host"), gt.ones(2, device="host")]).numpy()
    array([0., 1., 1.], dtype=float32)
    """
    arrays = list(arrays)
    if not arrays:
        raise ValueError("concat: no tensors came; at least one is needed")
    for one in arrays:
        tensor_argument(one, "concat")
    if axis is None:
        arrays, axis = [reshape(one, -1) for one in arrays], 0
    first = arrays[0]
    axis = axis_argument(axis, first.ndim, "concat")
    for one in arrays:
        if one.ndim != first.ndim or any(
            a != b for i, (a, b) in enumerate(zip(one.shape, first.shape, strict=True)) if i != axis
        ):
            raise ValueError(
                f"concat: shapes {first.shape} and {one.shape} differ elsewhere than in axis {axis}"
            )
    shape = list(first.shape)
    shape[axis] = sum(one.shape[axis] for one in arrays)
    result = empty(shape, dtype=result_type(*arrays), device=first.device)
    start = 0
    for one in arrays:
        result[_at(axis, slice(start, start + one.shape[axis]))] = one
        start += one.shape[axis]
    return result


def stack(arrays, /, *, axis=0):
    """Return tensors of one shape joined along a new axis at `axis` of the result.

    >>> import gputensor as gt
    >>> stack([gt.zeros(2, device="host"), gt.ones(2, device="host")], axis=1).shape
    (2, 2)
    """
    arrays = list(arrays)
    for one in arrays:
        tensor_argument(one, "stack")
    if len({one.shape for one in arrays}) > 1:
        shapes = ", ".join(str(one.shape) for one in arrays)
        raise ValueError(f"stack: the shapes differ: {shapes}")
    return concat([expand_dims(one, axis=axis) for one in arrays], axis=axis)


def unstack(x, /, *, axis=0):
    """Return the slices of `x` along `axis`, as a tuple of views.

    >>> import gputensor as gt
    >>> [one.item() for one in unstack(gt.arange(3, device="host"))]
    [0, 1, 2]
    """
    tensor_argument(x, "unstack")
    axis = axis_argument(axis, x.ndim, "unstack")
    return tuple(x[_at(axis, i)] for i in range(x.shape[axis]))


def roll(x, /, shift, *, axis=None):
    """Return a copy with the elements moved by `shift` places, round the end, along `axis`.

    `shift` and `axis` are ints or tuples of one length; axis None rolls the flattened tensor.

    >>> import gputensor as gt
    >>> roll(gt.arange(4, device="host"), 1).numpy()
    array([3, 0, 1, 2])
    """
    tensor_argument(x, "roll")
    if axis is None:
        return reshape(roll(reshape(x, -1), shift, axis=0), x.shape)
    axes = _several(axis)
    shifts = _several(shift) if isinstance(shift, (tuple, list)) else (shift,) * len(axes)
    if len(shifts) != len(axes):
        raise ValueError(f"roll: {len(shifts)} shifts and {len(axes)} axes came; as many of each")
    if not axes:
        return copy(x)
    for one, amount in zip(axes, shifts, strict=True):
        one, amount = axis_argument(one, x.ndim, "roll"), _whole(amount, "roll", "shift")
        extent = x.shape[one]
        cut = -amount % extent if extent else 0
        x = concat([x[_at(one, slice(cut, None))], x[_at(one, slice(None, cut))]], axis=one)
    return x


def tile(x, repetitions, /):
    """Return `x` repeated `repetitions` times along each axis; missing axes count as 1 in front.

    >>> import gputensor as gt
    >>> tile(gt.arange(2, device="host"), (2, 2)).numpy()
    array([[0, 1, 0, 1],
           [0, 1, 0, 1]])
    """
    tensor_argument(x, "tile")
    repetitions = [_whole(one, "tile", "a repetition") for one in _several(repetitions)]
    ndim = max(x.ndim, len(repetitions))
    shape = (1,) * (ndim - x.ndim) + x.shape
    times = (1,) * (ndim - len(repetitions)) + tuple(repetitions)
    spread = reshape(x, [extent for one in shape for extent in (1, one)])
    target = [extent for pair in zip(times, shape, strict=True) for extent in pair]
    result = [n * one for n, one in zip(times, shape, strict=True)]
    return reshape(broadcast_to(spread, target), result, copy=True)


def repeat(x, repeats, /, *, axis=None):
    """Return `x` with each element repeated `repeats` times along `axis` (None: flattened).

    >>> import gputensor as gt
    >>> repeat(gt.arange(2, device="host"), 2).numpy()
    array([0, 0, 1, 1])
    """
    tensor_argument(x, "repeat")
    repeats = _whole(repeats, "repeat", "repeats")
    if repeats < 0:
        raise ValueError(f"repeat: repeats is {repeats}; 0 or more is needed")
    if axis is None:
        x, axis = reshape(x, -1), 0
    axis = axis_argument(axis, x.ndim, "repeat")
    spread = expand_dims(x, axis=axis + 1)
    target = (*x.shape[: axis + 1], repeats, *x.shape[axis + 1 :])
    shape = (*x.shape[:axis], x.shape[axis] * repeats, *x.shape[axis + 1 :])
    return reshape(broadcast_to(spread, target), shape, copy=True)


def meshgrid(*arrays, indexing="xy"):
    """Return the coordinates of a grid from one-dimensional coordinates, as a list of tensors.

    Parameters
    ----------
    indexing : {"xy", "ij"}
        ``"xy"`` puts the first coordinate along the second axis, as plots do.

    >>> import gputensor as gt
    >>> x, y = meshgrid(gt.arange(2, device="host"), gt.arange(3, device="host"))
    >>> x.shape
    (3, 2)
    """
    if indexing not in ("xy", "ij"):
        raise ValueError(f"meshgrid: indexing is {indexing!r}; 'xy' or 'ij' is allowed")
    for one in arrays:
        tensor_argument(one, "meshgrid")
    if any(one.ndim != 1 for one in arrays):
        raise ValueError("meshgrid: every argument must have 1 dimension")
    shape = tuple(one.size for one in arrays)
    grids = []
    for i, one in enumerate(arrays):
        spread = reshape(one, (1,) * i + (-1,) + (1,) * (len(arrays) - i - 1))
        grids.append(reshape(broadcast_to(spread, shape), shape, copy=True))
    if indexing == "xy" and len(arrays) > 1:
        order = (1, 0, *range(2, len(arrays)))
        grids = [permute_dims(grid, order) for grid in grids]
    return grids
