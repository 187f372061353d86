"""ATen operators with windows and those that sample: convolution, pooling, resizing, grids."""

import itertools
import math

import numpy as np

from gputensor.importers.aten.table import aten
from gputensor.importers.onnx_convolution import Windows, col2im, deformed, max_pool_with_places
from gputensor.importers.onnx_indexing import best_boxes
from gputensor.importers.onnx_resize import pooled_regions, resampled, sampled_regions
from gputensor.importers.public_functions import gt

__all__ = []


def _sizes(value):
    """Return one number for all axes, or a tuple with one for each."""
    if isinstance(value, (list, tuple)):
        return value[0] if len(value) == 1 else tuple(value)
    return value


def _each(value, ndim):
    """Return a list with one number for each axis."""
    value = list(value) if isinstance(value, (list, tuple)) else [value]
    return value * ndim if len(value) == 1 else value


def _batched(x, ndim, function):
    """Call a function that needs a batch axis, which PyTorch does not."""
    if x.ndim == ndim + 2:
        return function(x)
    return gt.squeeze(function(gt.expand_dims(x, 0)), 0)


@aten("conv1d conv2d conv3d")
def conv(x, weight, bias=None, stride=1, padding=0, dilation=1, groups=1):
    ndim = weight.ndim - 2
    if padding == "same":
        # Of an odd total PyTorch puts the larger part at the end.
        reaches = [
            d * (k - 1) for d, k in zip(_each(dilation, ndim), weight.shape[2:], strict=True)
        ]
        padding = tuple((reach // 2, reach - reach // 2) for reach in reaches)
    elif padding == "valid":
        padding = 0
    else:
        padding = _sizes(padding)
    how = _sizes(stride), padding, _sizes(dilation), groups
    function = getattr(gt, f"conv{ndim}d")
    return _batched(x, ndim, lambda x: function(x, weight, bias, *how))


@aten("conv_transpose1d conv_transpose2d conv_transpose3d")
def conv_transpose(x, weight, bias=None, stride=1, padding=0, output_padding=0, *others):
    groups, dilation = list(others) + [1, 1][len(others) :]
    ndim = weight.ndim - 2
    function = getattr(gt, f"conv_transpose{ndim}d")
    sizes = [_sizes(one) for one in (stride, padding, output_padding)]
    how = {"dilation": _sizes(dilation)}
    return _batched(x, ndim, lambda x: function(x, weight, bias, *sizes, groups, **how))


@aten("convolution")
def convolution(x, weight, bias, stride, padding, dilation, *others):
    transposed, output_padding, groups = others
    if transposed:
        return conv_transpose(x, weight, bias, stride, padding, output_padding, groups, dilation)
    return conv(x, weight, bias, stride, padding, dilation, groups)


# ---- pooling


def _pool(ndim):
    def max_pool(x, kernel, stride=None, padding=0, dilation=1, ceil_mode=False):
        sizes = [_sizes(one) for one in (kernel, stride or kernel, padding, dilation)]
        function = getattr(gt, f"max_pool{ndim}d")
        return _batched(x, ndim, lambda x: function(x, *sizes, ceil_mode))

    def max_pool_with_indices(x, kernel, stride=None, padding=0, dilation=1, ceil_mode=False):
        pads = _each(padding, ndim) * 2
        how = _each(dilation, ndim), pads, _each(stride or kernel, ndim)
        wide = x if x.ndim == ndim + 2 else gt.expand_dims(x, 0)
        windows = Windows(wide, _each(kernel, ndim), "NOTSET", *how)
        values, at = max_pool_with_places(wide, windows, ceil_mode)
        whole = math.prod(wide.shape[2:])
        at = gt.remainder(at, whole)  # PyTorch counts within a channel
        return (values, at) if wide is x else (gt.squeeze(values, 0), gt.squeeze(at, 0))

    def avg_pool(x, kernel, stride=None, padding=0, *others):
        sizes = [_sizes(one) for one in (kernel, stride or kernel, padding)]
        function = getattr(gt, f"avg_pool{ndim}d")
        return _batched(x, ndim, lambda x: function(x, *sizes, *others))

    def adaptive_avg_pool(x, sizes):
        if set(sizes) == {1}:
            return gt.mean(x, axis=tuple(range(-ndim, 0)), keepdims=True)
        sizes = tuple(_extents(x, sizes))
        function = getattr(gt, f"adaptive_avg_pool{ndim}d")
        return _batched(x, ndim, lambda x: function(x, sizes))

    def adaptive_max_pool(x, sizes):
        wide = x if x.ndim == ndim + 2 else gt.expand_dims(x, 0)
        found = _adaptive_max(wide, _extents(x, sizes))
        return found if wide is x else tuple(gt.squeeze(one, 0) for one in found)

    aten(f"max_pool{ndim}d")(max_pool)
    aten(f"max_pool{ndim}d_with_indices")(max_pool_with_indices)
    aten(f"avg_pool{ndim}d")(avg_pool)
    aten(f"adaptive_avg_pool{ndim}d _adaptive_avg_pool{ndim}d")(adaptive_avg_pool)
    aten(f"adaptive_max_pool{ndim}d")(adaptive_max_pool)


for _count in (1, 2, 3):
    _pool(_count)


def _extents(x, sizes):
    """Return the extents of a result, where None keeps that of x."""
    ends = x.shape[-len(sizes) :]
    return [extent if size is None else size for extent, size in zip(ends, sizes, strict=True)]


def _adaptive_max(x, sizes):
    """Return the maxima of `sizes` windows along each axis, and their places in a channel."""
    extents = x.shape[2:]
    flat = gt.reshape(x, (*x.shape[:2], -1))
    starts = [
        [(i * n // size, -(-(i + 1) * n // size)) for i in range(size)]
        for n, size in zip(extents, sizes, strict=True)
    ]
    values, places = [], []
    for window in itertools.product(*starts):
        axes = [np.arange(first, last) for first, last in window]
        at = np.ravel_multi_index(np.meshgrid(*axes, indexing="ij"), extents).reshape(-1)
        at = gt.asarray(at, device=x.device)
        taken = gt.take(flat, at, 2)
        best = gt.argmax(taken, axis=2)
        values.append(gt.max(taken, axis=2))
        places.append(gt.take(at, best, 0))
    shape = (*x.shape[:2], *sizes)
    return tuple(gt.reshape(gt.stack(one, -1), shape) for one in (values, places))


@aten("max_unpool2d max_unpool3d")
def max_unpool(x, places, sizes, *_windows):
    lead = x.shape[: x.ndim - len(sizes)]
    rows = gt.reshape(places, (*lead, -1))
    empty = gt.zeros((*lead, math.prod(sizes)), dtype=x.dtype, device=x.device)
    found = gt.scatter(empty, -1, rows, gt.reshape(x, (*lead, -1)))
    return gt.reshape(found, (*lead, *sizes))


@aten("im2col")
def im2col(x, kernel, dilation, padding, stride):
    return _batched(x, 2, lambda x: _columns(x, kernel, dilation, padding, stride))


def _columns(x, kernel, dilation, padding, stride):
    padding = _each(padding, 2)
    x = gt.pad(x, [(0, 0), (0, 0), *((one, one) for one in padding)]) if any(padding) else x
    dilation, stride = _each(dilation, 2), _each(stride, 2)
    counts = [
        (n - (k - 1) * d - 1) // s + 1
        for n, k, d, s in zip(x.shape[2:], kernel, dilation, stride, strict=True)
    ]
    taps = []
    for place in np.ndindex(*kernel):
        key = [slice(None), slice(None)]
        for at, d, s, count in zip(place, dilation, stride, counts, strict=True):
            key.append(slice(at * d, at * d + (count - 1) * s + 1, s))
        taps.append(gt.reshape(x[tuple(key)], (*x.shape[:2], -1)))
    found = gt.stack(taps, 2)
    return gt.reshape(found, (x.shape[0], x.shape[1] * len(taps), -1))


@aten("col2im")
def fold(x, sizes, kernel, dilation, padding, stride):
    def run(x):
        how = {"dilations": _each(dilation, 2), "strides": _each(stride, 2)}
        pads = _each(padding, 2) * 2
        return col2im(x, np.array(sizes), np.array(kernel), pads=pads, **how)

    return run(x) if x.ndim == 3 else gt.squeeze(run(gt.expand_dims(x, 0)), 0)


# ---- resizing


def _resize(mode, has_corners, antialias=False):
    """A row for one mode; its arguments are those of the forms with sizes and with factors."""

    def run(x, sizes, *others):
        corners = others[0] if has_corners and others else False
        factors = list(others[1 if has_corners else 0 :])
        if len(factors) == 1 and isinstance(factors[0], (list, tuple)):
            factors = list(factors[0])
        given = [one for one in factors if one is not None]
        extents = x.shape[2:]
        if sizes is None:
            sizes = [math.floor(n * s) for n, s in zip(extents, factors, strict=True)]
        if len(given) != len(extents):
            given = [size / n for size, n in zip(sizes, extents, strict=True)]
        return resampled(x, sizes, given, (mode, corners, antialias))

    return run


_CORNERS = {
    "upsample_linear1d": "linear", "upsample_bilinear2d": "linear",
    "upsample_trilinear3d": "linear", "upsample_bicubic2d": "cubic",
}  # fmt: skip
for _name, _mode in _CORNERS.items():
    aten(_name)(_resize(_mode, True))
    aten(f"_{_name}_aa")(_resize(_mode, True, True))
for _count in (1, 2, 3):
    aten(f"upsample_nearest{_count}d")(_resize("nearest", False))
    aten(f"_upsample_nearest_exact{_count}d")(_resize("nearest-exact", False))


# ---- grids

_MODES = "bilinear", "nearest", "bicubic"
_PADDING = "zeros", "border", "reflection"


@aten("grid_sampler grid_sampler_2d grid_sampler_3d")
def grid_sampler(x, grid, mode, padding, align_corners):
    return gt.grid_sample(x, grid, _MODES[mode], _PADDING[padding], align_corners)


@aten("affine_grid_generator")
def affine_grid(theta, sizes, align_corners=False):
    """Return the places, in -1 to 1, that an affine map gives to the elements of an image."""
    axes = []
    for extent in sizes[2:]:
        at = np.linspace(-1, 1, extent) if extent > 1 else np.zeros(1)
        axes.append(at if align_corners else at * (extent - 1) / extent)
    places = np.meshgrid(*axes, indexing="ij")[::-1]
    places = np.stack([*places, np.ones(sizes[2:])], -1).reshape(-1, len(axes) + 1)
    places = gt.asarray(places.astype(theta.dtype), device=theta.device)
    found = gt.matmul(places, gt.swapaxes(theta, -1, -2))
    return gt.reshape(found, (theta.shape[0], *sizes[2:], len(axes)))


@aten("torchvision.roi_align")
def roi_align(x, boxes, scale, height, width, *others):
    """Each of `height` x `width` cells is the mean of a grid of linear samples."""
    count, aligned = others
    how = scale, 0.5 if aligned else 0.0, count, False
    return sampled_regions(x, boxes[:, 1:], boxes[:, 0], (height, width), how)


@aten("torchvision.roi_pool")
def roi_pool(x, boxes, scale, height, width):
    """The second result, the place of each maximum, serves training only."""
    return pooled_regions(x, boxes, (height, width), scale), None


@aten("torchvision.nms")
def nms(boxes, scores, most_overlap):
    """The number of boxes that remain depends on values, so a program refuses this."""
    found = best_boxes(boxes.numpy(), scores.numpy(), most_overlap)
    return gt.asarray(np.array(found, np.int64), device=boxes.device)


@aten("torchvision.deform_conv2d")
def deform_conv2d(x, weight, offset, mask, bias, *others):
    *numbers, groups, offset_groups, has_mask = others
    how = *(numbers[i : i + 2] for i in (0, 2, 4)), groups
    y = deformed(x, weight, offset, mask if has_mask else None, how, offset_groups)
    return y + gt.reshape(bias, (-1, 1, 1))
