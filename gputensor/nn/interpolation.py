"""Interpolation: x resampled at evenly spaced places; and channels moved to places and back."""

import math

import numpy as np

from gputensor._arrays.dtypes import isdtype
from gputensor.errors import argument_error, plain_int
from gputensor.nn import activated
from gputensor.nn.pooling import adaptive_avg_pool1d, adaptive_avg_pool2d, adaptive_avg_pool3d
from gputensor.tensor.core import tensor_argument
from gputensor.tensor.interop import asarray, astype, copy
from gputensor.tensor.manipulation import broadcast_to, empty, moveaxis, reshape, take
from gputensor.tensor.products import matmul

__all__ = [
    "channel_shuffle", "interpolate", "pixel_shuffle", "pixel_unshuffle", "tap_weights",
    "with_computed_size",
]  # fmt: skip

MODES = ("nearest", "nearest-exact", "linear", "bilinear", "trilinear", "bicubic", "area")


def _sizes(extents, size, scale_factor):
    """Return the extents of the result, and the length of one of its steps in elements of x."""
    name = "size" if size is not None else "scale_factor"
    given = size if size is not None else scale_factor
    kinds = int if size is not None else (int, float)
    values = given if isinstance(given, (tuple, list)) else (given,) * len(extents)
    values = [float(one) if isinstance(one, np.floating) else plain_int(one) for one in values]
    if (size is None) == (scale_factor is None) or len(values) != len(extents):
        rule = f"one of the two, a number or one for each of {len(extents)} axes"
        given = (size, scale_factor)
        raise argument_error(ValueError, "interpolate: size, scale_factor", given, rule)
    for one in values:
        if isinstance(one, bool) or not isinstance(one, kinds) or not one > 0:
            raise argument_error(ValueError, f"interpolate: {name}", given, "numbers above 0")
    if size is not None:
        return tuple(values), [n / m for n, m in zip(extents, values, strict=True)]
    counts = tuple(math.floor(n * f) for n, f in zip(extents, values, strict=True))
    if 0 in counts:
        rule = "factors that leave an element along each axis"
        raise argument_error(ValueError, "interpolate: scale_factor", given, rule)
    return counts, [1 / f for f in values]


def _nearest(x, counts, steps, is_exact):
    """Return the nearest elements: one gather, or a broadcast copy for integer factors."""
    spatial = len(counts)
    extents = x.shape[2:]
    if all(m % n == 0 and math.isclose(step, n / m)
           for n, m, step in zip(extents, counts, steps, strict=True)):  # fmt: skip
        # Integer factors repeat each element as a block: one copy of a broadcast view.
        inner = [i for n in extents for i in (n, 1)]
        outer = [i for n, m in zip(extents, counts, strict=True) for i in (n, m // n)]
        blocks = broadcast_to(reshape(x, (*x.shape[:2], *inner)), (*x.shape[:2], *outer))
        return reshape(copy(blocks), (*x.shape[:2], *counts))
    places = []
    for axis, (n, m, step) in enumerate(zip(extents, counts, steps, strict=True)):
        place = np.floor((np.arange(m) + (0.5 if is_exact else 0)) * step + 1e-9)
        place = np.minimum(place, n - 1).astype(np.int64)
        places.append(place.reshape([-1 if i == axis else 1 for i in range(spatial)]))
    return x[(slice(None), slice(None)) + tuple(places)]


def _linear(x, counts, steps, align_corners):
    """Interpolate axis by axis; 16-bit floats stay float32 between the axes."""
    dtype = x.dtype
    for axis, (m, step) in enumerate(zip(counts, steps, strict=True), 2):
        n = x.shape[axis]
        if n == m and (align_corners or math.isclose(step, 1)):
            continue
        if align_corners:
            at = np.arange(m) * ((n - 1) / (m - 1) if m > 1 else 0.0)
        else:
            at = np.maximum((np.arange(m) + 0.5) * step - 0.5, 0)
        low = np.minimum(np.floor(at + 1e-9), n - 1).astype(np.int64)
        high = np.minimum(low + 1, n - 1)
        share = np.clip(at - low, 0, 1).reshape(-1, *(1,) * (x.ndim - 1 - axis))
        share = share.astype(np.float64 if x.dtype.itemsize == 8 else np.float32)
        indices = [asarray(index, device=x.device) for index in (low, high)]
        first, second = (take(x, index, axis=axis) for index in indices)
        first = first if x.dtype.itemsize > 2 else astype(first, np.float32)
        away = ("sub", ("load", 1), ("load", 0))
        tree = ("add", ("load", 0), ("mul", ("load", 2), away))
        x = activated("interpolate", (tree,), (first, second, asarray(share, device=x.device)))
    return x if x.dtype == dtype else astype(x, dtype)


def _cubic(distance, a):
    d = np.abs(distance)
    near = (a + 2) * d**3 - (a + 3) * d**2 + 1
    far = a * d**3 - 5 * a * d**2 + 8 * a * d - 4 * a
    return np.where(d <= 1, near, np.where(d < 2, far, 0))


def tap_weights(places, extent, scale, how):
    """Return the matrix (places, extent) of the weights of an axis's elements at some places.

    `scale` is the ratio of the extents, of the result to x. `how` is (whether cubic, by Keys, 1981,
    or linear; the cubic's coefficient a; whether the kernel is stretched to cover all elements of a
    larger x; whether elements outside do not count, or those at the edges stand for them).

    >>> tap_weights(np.array([0.25]), 2, 1.0, (False, 0.0, False, False)).tolist()
    [[0.75, 0.25]]
    """
    is_cubic, coefficient, is_stretched, excludes = how
    stretch = min(scale, 1.0) if is_stretched else 1.0
    reach = int(np.ceil((2 if is_cubic else 1) / stretch))
    taps = np.floor(places).astype(np.int64)[:, None] + np.arange(1 - reach, reach + 1)
    distance = (places[:, None] - taps) * stretch
    weights = _cubic(distance, coefficient) if is_cubic else np.maximum(1 - np.abs(distance), 0)
    if excludes:
        weights = np.where((taps >= 0) & (taps < extent), weights, 0)
    if is_stretched or excludes:
        weights = weights / weights.sum(-1, keepdims=True)
    matrix = np.zeros((len(places), extent))
    np.add.at(matrix, (np.arange(len(places))[:, None], np.clip(taps, 0, extent - 1)), weights)
    return matrix


def _by_taps(x, counts, steps, align_corners, how):
    """Interpolate axis by axis with a matrix of weights; 16-bit floats stay float32 between."""
    dtype = x.dtype
    x = astype(x, np.float32) if dtype.itemsize < 4 else x
    for axis, (m, step) in enumerate(zip(counts, steps, strict=True), 2):
        n = x.shape[axis]
        if align_corners:
            step = (n - 1) / (m - 1) if m > 1 else 0.0
        is_stretched = how[2]
        half = 0.0 if align_corners and not is_stretched else 0.5
        places = (np.arange(m) + half) * step - half
        matrix = tap_weights(places, n, 1 / step if step else math.inf, how).astype(x.dtype)
        x = moveaxis(matmul(moveaxis(x, axis, -1), asarray(matrix.T, device=x.device)), -1, axis)
    return astype(x, dtype, copy=False)


def interpolate(
    x,
    size=None,
    scale_factor=None,
    mode="nearest",
    align_corners=False,
    *,
    antialias=False,
    data_format=None,
):
    """Return x resampled to other extents, at evenly spaced places.

    Parameters
    ----------
    x : Tensor
        Shape (batch, channels, ...), with one to three further axes.
    size : int or tuple of int, optional
        Extents of the result.
    scale_factor : float or tuple of float, optional
        Instead of `size`: the result's extents are those of x times this, rounded down.
    mode : {"nearest", "nearest-exact", "linear", "bilinear", "trilinear", "bicubic", "area"}
        "nearest" takes the element at floor(i * step), "nearest-exact" at floor((i + 0.5) * step).
        The next three are equal: linear between the two neighbours along each axis. "bicubic" uses
        four neighbours, "area" is the mean of each place's elements. All but the first two are for
        floating-point dtypes only.
    align_corners : bool
        For linear and cubic modes: if true, the centres of the first and last elements of x and of
        the result coincide; if false, their outer edges do. PyTorch's None is false.
    antialias : bool
        For linear and cubic modes: whether a smaller result averages over all elements.
    data_format : str, optional
        A layout that ends with "C" if channels are the last axis.

    Returns
    -------
    Tensor
        Of the dtype of x.

    Raises
    ------
    TypeError
        For a linear mode with a dtype that is not floating-point.
    ValueError
        For other arguments that do not fit.

    >>> x = gt.asarray([[[1.0, 3.0]]], device="host")
    >>> interpolate(x, 4).tolist(), interpolate(x, 3, mode="linear", align_corners=True).tolist()
    ([[[1.0, 1.0, 3.0, 3.0]]], [[[1.0, 2.0, 3.0]]])
    """
    x = tensor_argument(x, "interpolate")
    if not isinstance(mode, str) or mode not in MODES:
        raise argument_error(ValueError, "interpolate: mode", mode, f"one of {', '.join(MODES)}")
    if not 3 <= x.ndim <= 5 or 0 in x.shape[1:]:
        rule = "3 to 5 axes, all but the first with elements"
        raise argument_error(ValueError, "interpolate: shape of x", x.shape, rule)
    is_nearest = mode in ("nearest", "nearest-exact")
    if antialias and (is_nearest or mode == "area"):
        rule = "false for a mode that is not linear or cubic"
        raise argument_error(ValueError, "interpolate: antialias", antialias, rule)
    is_last = data_format is not None and str(data_format).endswith("C")
    x = moveaxis(x, -1, 1) if is_last else x
    counts, steps = _sizes(x.shape[2:], size, scale_factor)
    if not is_nearest and not isdtype(x.dtype, "real floating"):
        rule = "a floating-point dtype"
        raise argument_error(TypeError, "interpolate: dtype of x", x.dtype, rule)
    if not x.shape[0]:
        result = empty((*x.shape[:2], *counts), dtype=x.dtype, device=x.device)
    elif is_nearest:
        result = _nearest(x, counts, steps, mode == "nearest-exact")
    elif mode == "area":
        pools = adaptive_avg_pool1d, adaptive_avg_pool2d, adaptive_avg_pool3d
        result = pools[len(counts) - 1](x, counts)
    elif mode == "bicubic" or antialias:
        how = (mode == "bicubic", -0.5 if antialias else -0.75, antialias, antialias)
        result = _by_taps(x, counts, steps, align_corners, how)
    else:
        result = _linear(x, counts, steps, align_corners)
    return moveaxis(result, 1, -1) if is_last else result


def with_computed_size(is_computed, function, /, x, size=None, scale_factor=None, *rest, **options):
    """``recompute_scale_factor=`` of `interpolate`: steps follow from the extents of the result.

    Otherwise they are 1 / scale_factor, also where extents are rounded down.

    >>> import gputensor as gt
    >>> x = gt.asarray([[[1.0, 2.0, 4.0]]], device="host")
    >>> gt.interpolate(x, scale_factor=0.8, mode="linear", recompute_scale_factor=True).tolist()
    [[[1.25, 3.5]]]
    """
    if is_computed and size is not None:
        rule = "false with a size"
        raise argument_error(ValueError, "interpolate: recompute_scale_factor", is_computed, rule)
    if is_computed and scale_factor is not None:
        is_last = str(options.get("data_format")).endswith("C")
        shape = tensor_argument(x, "interpolate").shape
        size, _ = _sizes(shape[1:-1] if is_last else shape[2:], None, scale_factor)
        scale_factor = None
    return function(x, size, scale_factor, *rest, **options)


def _whole_factor(x, factor, name):
    factor = plain_int(factor)
    if not isinstance(factor, int) or factor < 1 or tensor_argument(x, name).ndim < 3:
        rule = "a positive int, and a tensor of 3 or more axes"
        raise argument_error(ValueError, f"{name}: factor", factor, rule)
    return factor


def channel_shuffle(x, groups):
    """Return x (batch, channels, ...) with the channels of its groups in turn.

    >>> import gputensor as gt
    >>> channel_shuffle(gt.reshape(gt.arange(4, device="host"), (1, 4, 1)), 2).tolist()
    [[[0], [2], [1], [3]]]
    """
    groups = _whole_factor(x, groups, "channel_shuffle")
    batch, channels, *extents = x.shape
    if channels % groups:
        rule = f"a multiple of {groups}"
        raise argument_error(ValueError, "channel_shuffle: channels", channels, rule)
    parts = moveaxis(reshape(x, (batch, groups, channels // groups, *extents)), 1, 2)
    return reshape(parts, x.shape)


def pixel_shuffle(x, upscale_factor):
    """Return images of factor times the height and width, from groups of factor**2 channels.

    >>> import gputensor as gt
    >>> pixel_shuffle(gt.reshape(gt.arange(4, device="host"), (4, 1, 1)), 2).tolist()
    [[[0, 1], [2, 3]]]
    """
    name, factor = "pixel_shuffle", upscale_factor
    factor = _whole_factor(x, factor, name)
    *stack, channels, height, width = x.shape
    if channels % factor**2:
        rule = f"a multiple of {factor**2}"
        raise argument_error(ValueError, f"{name}: channels", channels, rule)
    parts = reshape(x, (*stack, channels // factor**2, factor, factor, height, width))
    parts = moveaxis(parts, (-4, -3), (-3, -1))
    return reshape(parts, (*stack, -1, height * factor, width * factor))


def pixel_unshuffle(x, downscale_factor):
    """Return images of 1 / factor of the height and width: :func:`pixel_shuffle` undone.

    >>> import gputensor as gt
    >>> x = gt.reshape(gt.arange(4, device="host"), (1, 2, 2))
    >>> pixel_unshuffle(x, 2).shape
    (4, 1, 1)
    """
    name, factor = "pixel_unshuffle", downscale_factor
    factor = _whole_factor(x, factor, name)
    *stack, channels, height, width = x.shape
    if height % factor or width % factor:
        rule = f"multiples of {factor}"
        raise argument_error(ValueError, f"{name}: height, width", (height, width), rule)
    split = (*stack, channels, height // factor, factor, width // factor, factor)
    parts = moveaxis(reshape(x, split), (-3, -1), (-4, -3))
    return reshape(parts, (*stack, -1, height // factor, width // factor))
