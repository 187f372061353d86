"""ONNX operators that move elements or make tensors: shapes, concatenation, padding, filling."""

import math

import numpy as np

from gputensor.errors import Described, argument_error
from gputensor.importers.onnx_registry import operator
from gputensor.importers.onnx_values import (
    Missing,
    ints,
    is_known,
    namespace,
    number,
    numpy_dtype,
    tensor,
)
from gputensor.importers.public_functions import gt

__all__ = []


@operator("Constant")
def constant(
    *,
    value,
    value_float,
    value_floats,
    value_int,
    value_ints,
    value_string,
    value_strings,
    sparse_value,
):
    if value is None:
        value = sparse_value
    if value is not None:
        return value
    for given, dtype in (
        (value_float, np.float32), (value_floats, np.float32), (value_int, np.int64),
        (value_ints, np.int64), (value_string, object), (value_strings, object),
    ):  # fmt: skip
        if given is not None:
            return np.array(given, dtype)
    raise argument_error(Missing, "Constant", Described("no value"), "a value attribute")


@operator("Identity", folds=True)
def identity(x):
    return x


@operator("Shape", folds=True)
def shape(x, *, start=0, end=None):
    return np.array(x.shape[slice(start or 0, end)], np.int64)


@operator("Size", folds=True)
def size(x):
    return np.array(math.prod(x.shape), np.int64)


def _like(x):
    """Return a value for functions of `namespace(x)`: a tensor for an array that is not folded."""
    return x if namespace(x) is np else tensor(x)


@operator("Reshape", folds=True, known=(1,))
def reshape(x, shape, *, allowzero=0):
    extents = ints(shape)
    if not allowzero:
        extents = [x.shape[i] if extent == 0 else extent for i, extent in enumerate(extents)]
    x = _like(x)
    if -1 in extents:
        rest = -math.prod(extents)
        extents[extents.index(-1)] = math.prod(x.shape) // rest if rest else 0
    return namespace(x).reshape(x, tuple(extents))


@operator("Flatten", folds=True)
def flatten(x, *, axis):
    x, axis = _like(x), axis + x.ndim if axis < 0 else axis
    rows = math.prod(x.shape[:axis])
    return namespace(x).reshape(x, (rows, math.prod(x.shape[axis:])))


@operator("Squeeze", folds=True)
def squeeze_attribute(x, *, axes):
    x = _like(x)
    return namespace(x).squeeze(x, None if axes is None else tuple(axes))


@operator("Squeeze", 13, folds=True, known=(1,))
def squeeze(x, axes=None):
    return squeeze_attribute(x, axes=None if axes is None else ints(axes))


@operator("Unsqueeze", folds=True)
def unsqueeze_attribute(x, *, axes):
    x, ndim = _like(x), x.ndim + len(axes)
    key = [slice(None)] * ndim
    for axis in axes:
        key[axis] = None
    extents = iter(x.shape)
    return namespace(x).reshape(x, tuple(1 if one is None else next(extents) for one in key))


@operator("Unsqueeze", 13, folds=True, known=(1,))
def unsqueeze(x, axes):
    return unsqueeze_attribute(x, axes=ints(axes))


@operator("Transpose", folds=True)
def transpose(x, *, perm):
    x, order = _like(x), range(x.ndim)[::-1] if perm is None else perm
    return namespace(x).transpose(x, tuple(order))


@operator("Concat", folds=True)
def concat(*values, axis):
    return _joined(values, axis)


def _joined(values, axis):
    if namespace(*values) is np:
        return np.concatenate(values, axis)
    return gt.concat(_tensors(values), axis=axis)


def _tensors(values):
    device = next((one.device for one in values if not is_known(one)), None)
    return [tensor(one, device) for one in values]


@operator("Split", folds=True)
def split_attribute(x, *, axis, split, context):
    return _parts(_like(x), axis, split or _even(x.shape[axis], context.n_outputs))


@operator("Split", 13, folds=True, known=(1,))
def split(x, split=None, *, axis, num_outputs=None, context):
    sizes = _even(x.shape[axis], num_outputs or context.n_outputs) if split is None else ints(split)
    return _parts(_like(x), axis, sizes)


def _even(extent, count):
    """Return the sizes of equal parts, of which the last may be smaller."""
    step = -(-extent // count)
    sizes = [min(step, max(extent - i * step, 0)) for i in range(count)]
    return sizes


def _parts(x, axis, sizes):
    if sum(sizes) != x.shape[axis]:
        rule = f"sizes with the sum {x.shape[axis]}"
        raise argument_error(ValueError, "split", sizes, rule)
    ends = np.cumsum(sizes)
    axis = axis % x.ndim
    return tuple(
        x[(slice(None),) * axis + (slice(int(end) - part, int(end)),)]
        for end, part in zip(ends, sizes, strict=True)
    )


@operator("Slice", folds=True)
def slice_attribute(x, *, starts, ends, axes):
    return _sliced(_like(x), starts, ends, axes, None)


@operator("Slice", 10, folds=True, known=(1, 2, 3, 4))
def slice_(x, starts, ends, axes=None, steps=None):
    axes, steps = (None if one is None else ints(one) for one in (axes, steps))
    return _sliced(_like(x), ints(starts), ints(ends), axes, steps)


def _sliced(x, starts, ends, axes, steps):
    key = [slice(None)] * x.ndim
    axes = range(len(starts)) if axes is None else axes
    for i, axis in enumerate(axes):
        extent, step = x.shape[axis], 1 if steps is None else steps[i]
        first, last = starts[i], ends[i]
        first = first + extent if first < 0 else first
        last = last + extent if last < 0 else last
        if step > 0:
            key[axis] = slice(min(max(first, 0), extent), min(max(last, 0), extent), step)
        else:
            first, last = min(max(first, 0), extent - 1), min(max(last, -1), extent - 1)
            key[axis] = slice(first, None if last < 0 else last, step)
    return x[tuple(key)]


@operator("Expand", folds=True, known=(1,))
def expand(x, shape, *, context):
    extents = np.broadcast_shapes(x.shape, tuple(ints(shape)))
    x = tensor(x, context.device) if context.makes_tensors else _like(x)
    return namespace(x).broadcast_to(x, extents)


@operator("Tile", 6, folds=True, known=(1,))
def tile(x, repeats, *, context):
    x = tensor(x, context.device) if context.makes_tensors else _like(x)
    return namespace(x).tile(x, tuple(ints(repeats)))


@operator("ConstantOfShape", known=(0,))
def constant_of_shape(shape, *, value, context):
    value = np.zeros(1, np.float32) if value is None else np.asarray(value)
    extents = tuple(ints(shape))
    if any(extent < 0 for extent in extents) or math.prod(extents) > 1 << 40:
        rule = "extents of at least 0, and at most 2**40 elements"
        raise argument_error(ValueError, "shape", extents, rule)
    found = np.broadcast_to(value.reshape(()), extents)
    return tensor(found, context.device) if context.makes_tensors else found


@operator("Range", folds=True, known=(0, 1, 2))
def range_(start, limit, delta, *, context):
    count = max(math.ceil((number(limit) - number(start)) / number(delta)), 0)
    if count > 1 << 30:
        raise argument_error(ValueError, "Range", Described(f"{count} elements"), "at most 2**30")
    if context.makes_tensors:
        steps = gt.arange(count, dtype=start.dtype, device=context.device)
        return steps * number(delta) + number(start)
    return (np.arange(count) * number(delta) + number(start)).astype(start.dtype)


@operator("EyeLike")
def eye_like(x, *, dtype, k):
    kind = x.dtype if dtype is None else numpy_dtype(dtype)
    return gt.eye(*x.shape, k=k, dtype=kind, device=x.device)


@operator("Trilu", folds=True, known=(1,))
def trilu(x, k=None, *, upper):
    x, offset = _like(x), 0 if k is None else number(k)
    return (namespace(x).triu if upper else namespace(x).tril)(x, k=offset)


# ---- padding


@operator("Pad")
def pad_attribute(x, *, mode, pads, value):
    return _padded(x, pads, None, mode, value)


@operator("Pad", 11, known=(1, 2, 3), folds=True)
def pad(x, pads, value=None, axes=None, *, mode):
    fill = 0 if value is None or not np.asarray(value).size else number(value)
    return _padded(tensor(x), ints(pads), None if axes is None else ints(axes), mode, fill)


def _padded(x, pads, axes, mode, value):
    axes = range(x.ndim) if axes is None else axes
    widths = [(0, 0)] * x.ndim
    for i, axis in enumerate(axes):
        widths[axis] = (pads[i], pads[i + len(axes)])
    # Negative widths remove elements.
    x = x[
        tuple(
            slice(max(-low, 0), extent - max(-high, 0))
            for (low, high), extent in zip(widths, x.shape, strict=True)
        )
    ]
    widths = [(max(low, 0), max(high, 0)) for low, high in widths]
    if mode == "constant":
        return gt.pad(x, widths, constant_values=value)
    return gt.pad(x, widths, {"edge": "edge", "reflect": "reflect", "wrap": "wrap"}[mode])


# ---- blocks


@operator("DepthToSpace")
def depth_to_space(x, *, blocksize, mode="DCR"):
    n, c, h, w = x.shape
    b, depth = blocksize, c // blocksize**2
    if mode == "DCR":
        parts = gt.permute_dims(gt.reshape(x, (n, b, b, depth, h, w)), (0, 3, 4, 1, 5, 2))
    else:
        parts = gt.permute_dims(gt.reshape(x, (n, depth, b, b, h, w)), (0, 1, 4, 2, 5, 3))
    return gt.reshape(parts, (n, depth, h * b, w * b))


@operator("SpaceToDepth")
def space_to_depth(x, *, blocksize, mode="DCR"):
    n, c, h, w = x.shape
    b = blocksize
    parts = gt.reshape(x, (n, c, h // b, b, w // b, b))
    order = (0, 3, 5, 1, 2, 4) if mode == "DCR" else (0, 1, 3, 5, 2, 4)
    return gt.reshape(gt.permute_dims(parts, order), (n, c * b * b, h // b, w // b))


@operator("CenterCropPad", known=(1,))
def center_crop_pad(x, shape, *, axes):
    axes = range(x.ndim) if axes is None else axes
    for axis, wanted in zip(axes, ints(shape), strict=True):
        extent = x.shape[axis]
        if wanted < extent:
            first = (extent - wanted) // 2
            key = [slice(None)] * x.ndim
            key[axis] = slice(first, first + wanted)
            x = x[tuple(key)]
        elif wanted > extent:
            widths = [(0, 0)] * x.ndim
            low = (wanted - extent) // 2
            widths[axis] = (low, wanted - extent - low)
            x = gt.pad(x, widths)
    return x


@operator("ReverseSequence", known=(1,))
def reverse_sequence(x, lengths, *, batch_axis, time_axis):
    extents = x.shape
    places = np.broadcast_to(np.arange(extents[time_axis]), (len(lengths), extents[time_axis]))
    lengths = lengths.reshape(-1, 1)
    places = np.where(places < lengths, lengths - 1 - places, places)
    moved = gt.moveaxis(x, (batch_axis, time_axis), (0, 1))
    rows = gt.asarray(np.arange(len(lengths)).reshape(-1, 1), device=x.device)
    picked = moved[rows, gt.asarray(places.astype(np.int64), device=x.device)]
    return gt.moveaxis(picked, (0, 1), (batch_axis, time_axis))
