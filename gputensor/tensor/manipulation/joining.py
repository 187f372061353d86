"""Joining, repeating and unstacking tensors along an axis.

Most functions make a new tensor and write to slices of it, one kernel for each part.
"""

import operator

import numpy as np

from gputensor._arrays.promotion import result_type
from gputensor.errors import Described, argument_error, has_elements
from gputensor.tensor.core import (
    Tensor,
    axis_argument,
    may_share,
    on_one_device,
    out_argument,
    spellings,
    tensor_argument,
)
from gputensor.tensor.interop import asarray, copy
from gputensor.tensor.interop.arrays import PLAIN, host_array, tensors
from gputensor.tensor.manipulation import broadcast_to, empty, expand_dims, permute_dims, reshape
from gputensor.tensor.manipulation.axes import atleast_1d, atleast_2d, atleast_3d

__all__ = [
    "append", "column_stack", "concat", "dstack", "hstack", "meshgrid", "repeat", "roll", "stack",
    "tile", "unstack", "vstack",
]  # fmt: skip

WEAK = {"b": False, "i": 0, "u": 0, "f": 0.0, "c": 0j, "V": 0.0}
MOST_AXES = 16


def _whole(value, name, argument):
    try:
        return operator.index(value)
    except TypeError:
        raise TypeError(
            f"{name}: {argument}: got {type(value).__name__}; expected an int"
        ) from None


def _several(value):
    """Return the values of a sequence, or a single value as a tuple."""
    return tuple(value) if has_elements(value) else (value,)


def _at(axis, key):
    """Return the index that applies `key` along `axis` >= 0."""
    return (slice(None),) * axis + (key,)


def _tensors(arrays, name):
    """Return the tensors of a sequence, which must contain at least one."""
    try:
        arrays = list(arrays)
    except TypeError:
        raise argument_error(
            TypeError, f"{name}: arrays", arrays, "a sequence of tensors"
        ) from None
    if not arrays:
        raise argument_error(ValueError, f"{name}: arrays", arrays, "at least one tensor")
    for one in arrays:
        if type(one) is not Tensor:
            break
    else:
        return arrays
    if any(isinstance(one, PLAIN) for one in arrays):
        arrays = _beside_tensors(arrays)
    return [tensor_argument(one, name) for one in arrays]


def _tensors_in(parts, depth=0):
    for one in parts:
        if isinstance(one, Tensor):
            yield one
        elif isinstance(one, (list, tuple)) and depth < MOST_AXES:
            yield from _tensors_in(one, depth + 1)


def _beside_tensors(parts):
    """Return parts with numbers and lists made tensors.

    Beside tensors numbers are weak, as in ``x + 1``; a list that contains tensors is stacked.
    """
    found = list(_tensors_in(parts))
    if not found:
        return [asarray(one) if isinstance(one, PLAIN) else one for one in parts]
    dtype, device = result_type(*found), found[0].device

    def tensor(value):
        if not isinstance(value, PLAIN):
            return value
        if isinstance(value, (list, tuple)) and next(_tensors_in(value), None) is not None:
            return stack([tensor(one) for one in value])
        kind = asarray(value, device="host").dtype.kind
        return asarray(value, result_type(dtype, WEAK[kind]), device=device)

    return [tensor(one) for one in parts]


def _joined(arrays, axis, dtype, out, name):
    first = arrays[0]
    axis = axis_argument(axis, first.ndim, name)
    before, after = first.shape[:axis], first.shape[axis + 1 :]
    count, is_one_dtype = 0, True
    for one in arrays:
        shape = one.shape
        if shape[:axis] != before or shape[axis + 1 :] != after or len(shape) != first.ndim:
            raise argument_error(
                ValueError,
                f"{name}: arrays",
                Described(f"shapes {first.shape} and {one.shape}"),
                f"extents that differ only in axis {axis}",
            )
        count += shape[axis]
        is_one_dtype = is_one_dtype and one.dtype == first.dtype
    arrays = on_one_device(name, tuple(arrays), None)
    first = arrays[0]
    shape = (*before, count, *after)
    if dtype is None:
        dtype = first.dtype if is_one_dtype else result_type(*arrays)
    if out is None:
        result = empty(shape, dtype=dtype, device=first.device)
    else:
        result = out_argument(out, first, shape, dtype, name)
        arrays = [copy(one) if may_share(result, one) else one for one in arrays]
    start = 0
    places = (slice(None),) * axis
    for one in arrays:
        end = start + one.shape[axis]
        result[places + (slice(start, end),)] = one
        start = end
    return result


@spellings(dim="axis")
def concat(arrays, /, axis=0, out=None, *, dtype=None):
    """Return tensors joined along an existing axis; None joins them flattened.

    Parameters
    ----------
    arrays : sequence of Tensor
        At least one, on one device, with equal extents except along `axis`. Lists and numbers
        beside a tensor adopt its dtype unless their kind is higher, as in ``x + 1``.
    axis : int or None

    >>> import gputensor as gt
    >>> concat([gt.zeros(1, device="host"), gt.ones(2, device="host")]).numpy()
    array([0., 1., 1.], dtype=float32)
    """
    arrays = _tensors(arrays, "concat")
    if axis is None:
        arrays, axis = [reshape(one, -1) for one in arrays], 0
    return _joined(arrays, axis, dtype, out, "concat")


@spellings(dim="axis")
def stack(arrays, /, axis=0, out=None, *, dtype=None):
    """Return tensors of one shape joined along a new axis, which is `axis` of the result.

    >>> import gputensor as gt
    >>> stack([gt.zeros(2, device="host"), gt.ones(2, device="host")], axis=1).shape
    (2, 2)
    """
    arrays = _tensors(arrays, "stack")
    if len({one.shape for one in arrays}) > 1:
        got = Described(f"shapes {', '.join(str(one.shape) for one in arrays)}")
        raise argument_error(ValueError, "stack: arrays", got, "one shape")
    axis = axis_argument(axis, arrays[0].ndim + 1, "stack")
    return _joined([expand_dims(one, axis) for one in arrays], axis, dtype, out, "stack")


def vstack(arrays, /, *, dtype=None):
    """Return tensors joined along the first axis; vectors become rows.

    >>> import gputensor as gt
    >>> vstack([gt.zeros(2, device="host"), gt.ones((3, 2), device="host")]).shape
    (4, 2)
    """
    rows = [atleast_2d(one) for one in _tensors(arrays, "vstack")]
    return _joined(rows, 0, dtype, None, "vstack")


def hstack(arrays, /, *, dtype=None):
    """Return tensors joined along the second axis, or vectors along their only axis.

    >>> import gputensor as gt
    >>> hstack([gt.zeros((3, 1), device="host"), gt.ones((3, 2), device="host")]).shape
    (3, 3)
    """
    arrays = [atleast_1d(one) for one in _tensors(arrays, "hstack")]
    return _joined(arrays, 0 if arrays[0].ndim == 1 else 1, dtype, None, "hstack")


def dstack(arrays, /, *, dtype=None):
    """Return tensors joined along the third axis; see :func:`atleast_3d` for shorter shapes.

    >>> import gputensor as gt
    >>> dstack([gt.zeros((3, 2), device="host"), gt.ones((3, 2), device="host")]).shape
    (3, 2, 2)
    """
    return _joined(
        [atleast_3d(one) for one in _tensors(arrays, "dstack")], 2, dtype, None, "dstack"
    )


def column_stack(arrays, /):
    """Return tensors joined along the second axis; vectors become columns.

    >>> import gputensor as gt
    >>> column_stack([gt.zeros(3, device="host"), gt.ones((3, 2), device="host")]).shape
    (3, 3)
    """
    arrays = [
        reshape(one, (-1, 1)) if one.ndim < 2 else one for one in _tensors(arrays, "column_stack")
    ]
    return _joined(arrays, 1, None, None, "column_stack")


def append(x, values, /, axis=None):
    """Return `x` followed by `values` along `axis` (default: both flattened).

    Numbers and lists of numbers adopt the dtype of `x`, as in ``x + 1``.

    >>> import gputensor as gt
    >>> append(gt.zeros(1, device="host"), gt.ones(2, device="host")).tolist()
    [0.0, 1.0, 1.0]
    """
    arrays = _tensors((x, values), "append")
    if axis is None:
        arrays, axis = [reshape(one, -1) for one in arrays], 0
    return _joined(arrays, axis, None, None, "append")


@spellings(dim="axis")
def unstack(x, /, axis=0):
    """Return the slices of `x` along `axis`, a tuple of views.

    >>> import gputensor as gt
    >>> [one.item() for one in unstack(gt.arange(3, device="host"))]
    [0, 1, 2]
    """
    tensor_argument(x, "unstack")
    axis = axis_argument(axis, x.ndim, "unstack")
    return tuple(x[_at(axis, i)] for i in range(x.shape[axis]))


@spellings(shifts="shift", dims="axis")
def roll(x, /, shift, axis=None):
    """Return a copy with the elements rotated by `shift` places along `axis`.

    `shift` and `axis` are ints or tuples of one length; by default the flattened tensor is rotated.

    >>> import gputensor as gt
    >>> roll(gt.arange(4, device="host"), 1).numpy()
    array([3, 0, 1, 2])
    """
    tensor_argument(x, "roll")
    if axis is None:
        return reshape(roll(reshape(x, -1), shift, axis=0), x.shape)
    axes = _several(axis)
    shifts = _several(shift) if has_elements(shift) else (shift,) * len(axes)
    if len(shifts) != len(axes):
        raise ValueError(
            f"roll: shift: got {len(shifts)} shifts for {len(axes)} axes; expected one for each "
            "axis"
        )
    if not axes:
        return copy(x)
    for one, amount in zip(axes, shifts, strict=True):
        one, amount = axis_argument(one, x.ndim, "roll"), _whole(amount, "roll", "shift")
        extent = x.shape[one]
        cut = -amount % extent if extent else 0
        x = concat([x[_at(one, slice(cut, None))], x[_at(one, slice(None, cut))]], axis=one)
    return x


def tile(x, repetitions, /):
    """Return `x` repeated `repetitions` times along each axis; missing leading axes count as 1.

    >>> import gputensor as gt
    >>> tile(gt.arange(2, device="host"), (2, 2)).numpy()
    array([[0, 1, 0, 1],
           [0, 1, 0, 1]])
    """
    tensor_argument(x, "tile")
    repetitions = [_whole(one, "tile", "repetitions") for one in _several(repetitions)]
    if any(one < 0 for one in repetitions):
        raise argument_error(ValueError, "tile: repetitions", repetitions, "0 or more")
    ndim = max(x.ndim, len(repetitions))
    shape = (1,) * (ndim - x.ndim) + x.shape
    times = (1,) * (ndim - len(repetitions)) + tuple(repetitions)
    spread = reshape(x, [extent for one in shape for extent in (1, one)])
    target = [extent for pair in zip(times, shape, strict=True) for extent in pair]
    result = [n * one for n, one in zip(times, shape, strict=True)]
    return reshape(broadcast_to(spread, target), result, copy=True)


@spellings(dim="axis")
def repeat(x, /, repeats, axis=None):
    """Return `x` with each element repeated `repeats` times along `axis` (default: flattened).

    `repeats` is an int, or a tensor, array or list with a count for each element along the axis;
    the values of a tensor determine the shape, so the call waits for them.

    >>> import gputensor as gt
    >>> repeat(gt.arange(2, device="host"), 2).numpy()
    array([0, 0, 1, 1])
    """
    x = asarray(x) if isinstance(x, PLAIN) else tensor_argument(x, "repeat")
    if axis is None or x.ndim == 0:
        x, axis = reshape(x, -1), axis or 0
    axis = axis_argument(axis, x.ndim, "repeat")
    counts = host_array("repeat: repeats", repeats)
    if counts.dtype.kind not in "iu" and counts.size:
        raise argument_error(TypeError, "repeat: repeats", Described(counts.dtype), "ints")
    if counts.size and counts.min() < 0:
        raise argument_error(ValueError, "repeat: repeats", repeats, "0 or more")
    if counts.size != 1:
        if counts.shape != (x.shape[axis],):
            rule = f"one for each of {x.shape[axis]} elements"
            got = Described(f"shape {counts.shape}")
            raise argument_error(ValueError, "repeat: repeats", got, rule)
        counts = counts.astype(np.int64)
        return x[_at(axis, np.repeat(np.arange(x.shape[axis]), counts))]
    repeats = int(counts.reshape(()))
    spread = expand_dims(x, axis=axis + 1)
    target = (*x.shape[: axis + 1], repeats, *x.shape[axis + 1 :])
    shape = (*x.shape[:axis], x.shape[axis] * repeats, *x.shape[axis + 1 :])
    return reshape(broadcast_to(spread, target), shape, copy=True)


def meshgrid(*arrays, indexing="xy", sparse=False):
    """Return the coordinates of a grid, a tuple of tensors, from the coordinates along each axis.

    Parameters
    ----------
    *arrays : Tensor or sequence
        Vectors; others are flattened, as in NumPy.
    indexing : {"xy", "ij"}
        ``"xy"`` puts the first coordinate along the second axis, as plots do.
    sparse : bool
        Return tensors of extent 1 along the axes of the others, for broadcasting.

    >>> import gputensor as gt
    >>> x, y = meshgrid(gt.arange(2, device="host"), gt.arange(3, device="host"))
    >>> x.shape
    (3, 2)
    """
    if indexing not in ("xy", "ij"):
        raise ValueError(f"meshgrid: indexing: got {indexing!r}; expected 'xy' or 'ij'")
    arrays = [reshape(tensor_argument(one, "meshgrid"), -1) for one in tensors(arrays)]
    shape = tuple(one.size for one in arrays)
    grids = []
    for i, one in enumerate(arrays):
        spread = reshape(one, (1,) * i + (-1,) + (1,) * (len(arrays) - i - 1))
        grids.append(spread if sparse else reshape(broadcast_to(spread, shape), shape, copy=True))
    if indexing == "xy" and len(arrays) > 1:
        order = (1, 0, *range(2, len(arrays)))
        grids = [permute_dims(grid, order) for grid in grids]
    return tuple(grids)
