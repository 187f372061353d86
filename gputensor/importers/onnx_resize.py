"""ONNX operators that sample between elements: Resize, Upsample, GridSample."""

import numpy as np

from gputensor.errors import Described, argument_error
from gputensor.importers.onnx_registry import operator
from gputensor.importers.onnx_values import Missing, ints
from gputensor.importers.public_functions import gt
from gputensor.nn.interpolation import tap_weights

__all__ = ["resampled"]


def _places(n_in, n_out, scale, mode, roi):
    """Return the positions in the input of the elements along an axis of the output."""
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
        return np.full(1, -0.5)
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
