"""ONNX operators that sample between elements: Resize, Upsample, GridSample, regions of images."""

import itertools

import numpy as np

from gputensor.errors import Described, argument_error
from gputensor.importers.onnx_registry import operator
from gputensor.importers.onnx_values import Missing, ints
from gputensor.importers.public_functions import gt
from gputensor.nn.interpolation import tap_weights

__all__ = ["pooled_regions", "resampled", "sampled_regions"]

#: The position of each element along an axis is computed on the host.
MOST_PLACES = 1 << 24


def _places(n_in, n_out, scale, mode, roi):
    """Return the positions in the input of the elements along an axis of the output."""
    if n_out > MOST_PLACES:
        rule = f"at most {MOST_PLACES} elements along an axis that is resized"
        raise argument_error(ValueError, "sizes", n_out, rule)
    x = np.arange(n_out, dtype=np.float64)
    if mode == "align_corners":
        length = scale * n_in  # of the output, before rounding
        return np.zeros(n_out) if length == 1 else x * (n_in - 1) / (length - 1)
    if mode == "asymmetric":
        return x / scale
    if mode == "tf_crop_and_resize":
        first, last = roi
        if n_out == 1:
            return np.array([0.5 * (first + last) * (n_in - 1)])
        return first * (n_in - 1) + x * (last - first) * (n_in - 1) / (n_out - 1)
    if mode == "pytorch_half_pixel" and n_out == 1:
        return np.zeros(1)
    if mode == "half_pixel_symmetric":
        adjusted = n_out / (scale * n_in)
        return n_in / 2 * (1 - adjusted) + (x + 0.5) / scale - 0.5
    if mode in ("half_pixel", "pytorch_half_pixel"):
        return (x + 0.5) / scale - 0.5
    rule = "a mode of operator set 19"
    raise argument_error(Missing, "coordinate_transformation_mode", mode, rule)


def _nearest(places, n_in, mode):
    rounded = {
        "round_prefer_floor": lambda x: np.ceil(x - 0.5),
        "round_prefer_ceil": lambda x: np.floor(x + 0.5),
        "floor": np.floor,
        "ceil": np.ceil,
    }[mode](places)
    return np.clip(rounded, 0, n_in - 1).astype(np.int64)


@operator("Resize", 10, known=(1,))
@operator("Upsample", 9, known=(1,))
def upsample(x, scales, *, mode):
    return _resized(x, scales, None, None, {"mode": mode})


@operator("Resize", 11, known=(1, 2, 3))
def resize(
    x,
    roi=None,
    scales=None,
    sizes=None,
    *,
    antialias=0,
    axes=None,
    coordinate_transformation_mode,
    cubic_coeff_a,
    exclude_outside,
    extrapolation_value,
    keep_aspect_ratio_policy="stretch",
    mode,
    nearest_mode,
):
    options = {
        "mode": mode, "nearest": nearest_mode, "places": coordinate_transformation_mode,
        "cubic": cubic_coeff_a, "antialias": antialias, "exclude": exclude_outside,
        "fill": extrapolation_value, "policy": keep_aspect_ratio_policy, "axes": axes, "roi": roi,
    }  # fmt: skip
    return _resized(x, scales, sizes, axes, options)


def _extents(x, scales, sizes, axes, policy):
    """Return a list of (axis, extent, scale) of the output."""
    axes = range(x.ndim) if axes is None else [axis % x.ndim for axis in axes]
    if sizes is None or not np.size(sizes):
        scales = [float(one) for one in np.asarray(scales).reshape(-1)]
        return [
            (axis, int(np.floor(x.shape[axis] * scale)), scale)
            for axis, scale in zip(axes, scales, strict=True)
        ]
    sizes = ints(sizes)
    ratios = [size / x.shape[axis] for axis, size in zip(axes, sizes, strict=True)]
    if policy == "stretch":
        return list(zip(axes, sizes, ratios, strict=True))
    ratio = min(ratios) if policy == "not_larger" else max(ratios)
    return [(axis, int(np.floor(ratio * x.shape[axis] + 0.5)), ratio) for axis in axes]


def _resized(x, scales, sizes, axes, options):
    extents = _extents(x, scales, sizes, axes, options.get("policy", "stretch"))
    mode, places_mode = options["mode"], options.get("places", "asymmetric")
    dtype, outside = x.dtype, []
    wide = x if mode == "nearest" or dtype.kind == "f" and dtype.itemsize > 2 else None
    x = x.astype("float32") if wide is None else x
    roi = options.get("roi")
    corners = (
        np.asarray(roi, np.float64).reshape(2, -1) if roi is not None and np.size(roi) else None
    )
    for i, (axis, extent, scale) in enumerate(extents):
        n_in = x.shape[axis]
        pair = (0.0, 1.0) if corners is None else tuple(corners[:, i])
        places = _places(n_in, extent, scale, places_mode, pair)
        if places_mode == "tf_crop_and_resize":
            outside.append((axis, (places < 0) | (places > n_in - 1)))
        elif extent == n_in and scale == 1:
            continue
        x = _along(x, axis, places, scale, options)
    for axis, is_outside in outside:
        if is_outside.any():
            shape = [-1 if i == axis else 1 for i in range(x.ndim)]
            mask = gt.asarray(is_outside.reshape(shape), device=x.device)
            x = gt.where(mask, options["fill"], x)
    return x.astype(dtype, copy=False)


def _along(x, axis, places, scale, options):
    """Sample one axis at fractional positions."""
    n_in, mode = x.shape[axis], options["mode"]
    if mode == "nearest":
        rule = options.get("nearest", "floor")
        return gt.take(x, gt.asarray(_nearest(places, n_in, rule), device=x.device), axis)
    if mode not in ("linear", "cubic"):
        raise argument_error(Missing, "mode", mode, "nearest, linear or cubic")
    kind = (
        mode == "cubic", options.get("cubic", -0.75), options.get("antialias", 0),
        options.get("exclude", 0),
    )  # fmt: skip
    matrix = tap_weights(places, n_in, scale, kind)
    matrix = gt.asarray(matrix.astype(x.dtype), device=x.device)
    return gt.moveaxis(gt.matmul(gt.moveaxis(x, axis, -1), matrix.T), -1, axis)


def resampled(x, sizes, scales, how):
    """Return x with other extents behind (batch, channels), by PyTorch's rules.

    `how` is (mode, whether the corners are aligned, whether antialiased).
    """
    mode, corners, antialias = how
    extents = x.shape[2:]
    is_exact = all(
        abs(scale - size / n) < 1e-9 for size, n, scale in zip(sizes, extents, scales, strict=True)
    )
    if mode != "cubic" and not antialias and (is_exact or corners):
        return gt.interpolate(x, tuple(sizes), mode=mode, align_corners=bool(corners))
    dtype = x.dtype
    if mode in ("linear", "cubic") and dtype.itemsize < 4:
        x = x.astype("float32")
    options = {
        "mode": "nearest" if mode.startswith("nearest") else mode, "exclude": antialias,
        "antialias": antialias, "cubic": -0.5 if antialias else -0.75,
    }  # fmt: skip
    for axis, (size, n, scale) in enumerate(zip(sizes, extents, scales, strict=True), 2):
        at, step = np.arange(size, dtype=np.float64), 1 / scale
        if corners and not antialias:
            places = at * (n - 1) / max(size - 1, 1)
        elif mode == "nearest":
            places = (at.astype(np.float32) * np.float32(step)).astype(np.float64)
        elif mode == "nearest-exact":
            places = ((at + 0.5).astype(np.float32) * np.float32(step)).astype(np.float64)
        else:
            if corners:
                step = (n - 1) / max(size - 1, 1)
            places = (at + 0.5) * step - 0.5
        x = _along(x, axis, places, 1 / step, options)
    return x.astype(dtype, copy=False)


@operator("GridSample")
def grid_sample(x, grid, *, align_corners, mode, padding_mode):
    if mode in ("cubic", "bicubic") and x.ndim != 4:
        got = Described(f"cubic in {x.ndim - 2} dimensions")
        raise argument_error(Missing, "GridSample", got, "2 dimensions")
    mode = {"linear": "bilinear", "cubic": "bicubic"}.get(mode, mode)
    return gt.grid_sample(x, grid, mode, padding_mode, bool(align_corners))


#: More samples result from boxes that are no regions of an image.
MOST_SAMPLES = 1024

# ---- regions of interest: boxes (left, top, right, bottom), each divided into rows of cells


@operator("RoiAlign", 10)
def roi_align(
    x, boxes, batch, *, coordinate_transformation_mode="output_half_pixel", mode, output_height,
    output_width, sampling_ratio, spatial_scale,
):  # fmt: skip
    shift = 0.5 if coordinate_transformation_mode.lower() == "half_pixel" else 0.0
    how = spatial_scale, shift, sampling_ratio, mode.lower() == "max"
    return sampled_regions(x, boxes, batch, (output_height, output_width), how)


def sampled_regions(x, boxes, batch, cells, how):
    """Return for each cell the mean, or the maximum, of linear samples of an image.

    `how` has the factor and the shift of boxes, the samples of a cell along an axis, and whether
    the maximum is wanted: that of the four weighted elements around each sample, as the standard
    defines it. With 0 samples, their number follows from the boxes, whose values are read then.
    """
    scale, shift, count, is_max = how
    kind = "float64" if x.dtype == np.float64 else "float32"
    boxes = boxes.astype(kind, copy=False) * scale - shift
    sides = boxes[:, 2:] - boxes[:, :2]
    sides = sides if shift else gt.maximum(sides, 1)  # boxes without a shift are never empty
    axes = [
        _samples_of_axis(
            boxes[:, i : i + 1], sides[:, i : i + 1], cells[1 - i], x.shape[3 - i], count
        )
        for i in (1, 0)
    ]
    image = gt.reshape(gt.moveaxis(x, 1, -1), (-1, x.shape[1]))
    firsts = gt.reshape(batch.astype("int64", copy=False) * (x.shape[2] * x.shape[3]), (-1, 1, 1))
    shape = boxes.shape[0], *cells, x.shape[1]
    total = gt.full(shape, -np.inf if is_max else 0, kind, device=x.device)
    for (lives, down), (also, right) in itertools.product(*axes):
        found = None
        for (y, above), (z, beside) in itertools.product(down, right):
            index = firsts + gt.expand_dims(y, 2) * x.shape[3] + gt.expand_dims(z, 1)
            share = gt.expand_dims(above, 2) * gt.expand_dims(beside, 1)
            part = gt.take(image, index, 0) * gt.expand_dims(share, -1)
            join = gt.maximum if is_max else gt.add
            found = part if found is None else join(found, part)
        if count <= 0:
            is_sample = gt.reshape(gt.logical_and(lives, also), (-1, 1, 1, 1))
            found = gt.where(is_sample, found, -np.inf if is_max else 0)
        total = gt.maximum(total, found) if is_max else total + found
    if is_max:
        total = gt.where(total == -np.inf, 0, total)  # a cell without samples
    elif count > 0:
        total = total / count**2
    else:
        numbers = [gt.maximum(gt.ceil(sides[:, i] / cells[1 - i]), 0) for i in (1, 0)]
        total = total / gt.reshape(gt.maximum(numbers[0] * numbers[1], 1), (-1, 1, 1, 1))
    return gt.moveaxis(total, -1, 1).astype(x.dtype, copy=False)


def _samples_of_axis(first, side, cells, extent, count):
    """Return for each sample of the cells along an axis: whether regions have it, and its taps.

    A tap is an index and a weight, each (regions, cells). Samples more than one element outside the
    image have weight 0, others are moved to its border.
    """
    size = side / cells
    counts = gt.ceil(size) if count <= 0 else None
    if count <= 0:
        count = max(int(gt.max(counts)), 0) if first.shape[0] else 0
    if count > MOST_SAMPLES:
        rule = f"at most {MOST_SAMPLES} samples of a cell along an axis"
        raise argument_error(ValueError, "regions", Described(f"{count} samples"), rule)
    steps, found = gt.arange(cells, dtype=first.dtype, device=first.device), []
    for i in range(count):
        share = (i + 0.5) / (count if counts is None else gt.maximum(counts, 1))
        at = first + (steps + share) * size
        inside = gt.logical_and(at >= -1, at <= extent)
        near = gt.clip(at, 0, extent - 1)
        low = gt.floor(near)
        taps = [
            (place.astype("int64"), gt.where(inside, weight, 0))
            for place, weight in (
                (low, 1 - (near - low)),
                (gt.minimum(low + 1, extent - 1), near - low),
            )
        ]
        found.append((True if counts is None else counts > i, taps))
    return found


@operator("MaxRoiPool")
def max_roi_pool(x, boxes, *, pooled_shape, spatial_scale):
    return pooled_regions(x, boxes, tuple(pooled_shape), spatial_scale)


def pooled_regions(x, boxes, cells, scale):
    """Return the maximum of each cell; boxes (batch, left, top, right, bottom) are rounded."""
    kind = "float64" if x.dtype == np.float64 else "float32"
    boxes = boxes.astype(kind, copy=False)
    found = gt.take(x, boxes[:, 0].astype("int64"), 0)
    ends = boxes[:, 1:] * scale
    ends = gt.sign(ends) * gt.floor(gt.abs(ends) + 0.5)
    for axis in (0, 1):  # rows of the image, then its columns
        extent = x.shape[2 + axis]
        first, last = ends[:, 1 - axis : 2 - axis], ends[:, 3 - axis : 4 - axis]
        size = gt.maximum(last - first + 1, 1) / cells[axis]
        at = gt.arange(extent, dtype=kind, device=x.device)
        parts = []
        for cell in range(cells[axis]):
            begin = gt.clip(gt.floor(cell * size) + first, 0, extent)
            end = gt.clip(gt.ceil((cell + 1) * size) + first, 0, extent)
            here = gt.logical_and(at >= begin, at < end)
            here = gt.reshape(here, (-1, 1, extent, 1) if axis == 0 else (-1, 1, 1, extent))
            parts.append(gt.max(gt.where(here, found, -np.inf), axis=2 + axis))
        found = gt.stack(parts, 2 + axis)
    return gt.where(found == -np.inf, 0, found).astype(x.dtype, copy=False)
