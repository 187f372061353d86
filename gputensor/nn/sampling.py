"""Sampling of images at positions that are tensors: grids of places, and elements found there."""

import itertools

from gputensor._arrays.dtypes import float32, int64, isdtype
from gputensor.errors import Described, argument_error
from gputensor.tensor import functions as fn
from gputensor.tensor.core import tensor_argument
from gputensor.tensor.interop import astype
from gputensor.tensor.manipulation import (
    arange,
    expand_dims,
    matrix_transpose,
    moveaxis,
    ones,
    reshape,
)
from gputensor.tensor.manipulation.joining import meshgrid, stack
from gputensor.tensor.products import matmul

__all__ = ["affine_grid", "grid_sample"]

# Mode -> the offsets of the neighbours along each axis, from the place rounded down.
TAPS = {"nearest": None, "bilinear": (0, 1), "bicubic": (-1, 0, 1, 2)}
PADDING_MODES = ("zeros", "border", "reflection")


def _one_of(name, value, allowed):
    if not isinstance(value, str) or value not in allowed:
        raise argument_error(ValueError, name, value, f"one of {', '.join(allowed)}")


def _real(name, x):
    if not isdtype(tensor_argument(x, name).dtype, "real floating"):
        raise argument_error(TypeError, name, Described(x.dtype.name), "a floating-point dtype")
    return astype(x, float32) if x.dtype.itemsize < 4 else x


def grid_sample(x, grid, mode="bilinear", padding_mode="zeros", align_corners=False):
    """Return the values of images at the places of a grid.

    Parameters
    ----------
    x : Tensor
        Shape (batch, channels, height, width), or with a depth before the height.
    grid : Tensor
        Shape (batch, ..., 2), or (batch, ..., 3) with a depth: places (x, y) or (x, y, z), which
        are -1 and 1 at the edges of an image. One axis of places for each axis of an image.
    mode : {"bilinear", "nearest", "bicubic"}
        Interpolation; "bicubic" for images without a depth.
    padding_mode : {"zeros", "border", "reflection"}
        Values outside of an image: 0, those at the nearest edge, or mirrored ones.
    align_corners : bool
        True: -1 and 1 are the centres of the first and last elements of an axis; false: their
        outer edges, also for reflection.

    Returns
    -------
    Tensor
        Shape (batch, channels, ...), of the dtype of x; computed in float32 if it is narrower.

    Raises
    ------
    TypeError
        If a dtype is not floating-point.
    ValueError
        For other arguments that do not fit.

    >>> import gputensor as gt
    >>> x = gt.asarray([[[[1.0, 3.0]]]], device="host")
    >>> grid_sample(x, gt.asarray([[[[0.0, 0.0]]]], device="host")).tolist()
    [[[[2.0]]]]
    """
    name = "grid_sample"
    _one_of(f"{name}: mode", mode, TAPS)
    _one_of(f"{name}: padding_mode", padding_mode, PADDING_MODES)
    grid = _real(f"{name}: grid", grid)
    _real(f"{name}: x", x)
    ndim = x.ndim - 2
    if ndim not in ((2,) if mode == "bicubic" else (1, 2, 3)) or 0 in x.shape[2:]:
        rule = f"(batch, channels, height, width), with elements, for mode {mode!r}"
        raise argument_error(ValueError, f"{name}: shape of x", x.shape, rule)
    if grid.ndim != x.ndim or grid.shape[0] != x.shape[0] or grid.shape[-1] != ndim:
        rule = f"{x.shape[0]}, {ndim} extents of the result, {ndim}"
        raise argument_error(ValueError, f"{name}: shape of grid", grid.shape, rule)
    places = []
    for axis, extent in enumerate(x.shape[2:]):
        at = grid[..., ndim - 1 - axis] + 1
        places.append(at * ((extent - 1) / 2) if align_corners else at * (extent / 2) - 0.5)
    images = moveaxis(x, 1, -1)
    if mode == "nearest":
        return moveaxis(_picked(images, places, padding_mode, align_corners, True), -1, 1)
    if mode == "bilinear" and padding_mode != "zeros":
        places = [_inside(at, n, padding_mode, align_corners)
                  for at, n in zip(places, x.shape[2:], strict=True)]  # fmt: skip
    floors = [fn.floor(at) for at in places]
    weights = [[_weight(at - low - step, mode) for step in TAPS[mode]]
               for at, low in zip(places, floors, strict=True)]  # fmt: skip
    total = 0
    for corner in itertools.product(range(len(TAPS[mode])), repeat=ndim):
        at = [low + TAPS[mode][i] for low, i in zip(floors, corner, strict=True)]
        weight = weights[0][corner[0]]
        for axis in range(1, ndim):
            weight = weight * weights[axis][corner[axis]]
        found = _picked(images, at, padding_mode, align_corners)
        total = total + found * expand_dims(weight, axis=-1)
    return moveaxis(astype(total, x.dtype, copy=False), -1, 1)


def _weight(distance, mode):
    """Return the share of a neighbour at some distance; cubic by Keys, 1981, with a of -0.75."""
    d = fn.abs(distance)
    if mode == "bilinear":
        return fn.maximum(1 - d, 0)
    a = -0.75
    near = ((a + 2) * d - (a + 3)) * d * d + 1
    far = ((a * d - 5 * a) * d + 8 * a) * d - 4 * a
    return fn.where(d <= 1, near, fn.where(d < 2, far, 0))


def _inside(at, extent, mode, align_corners):
    """Return positions moved into an axis by clipping or reflection; 0 for NaN."""
    if mode == "reflection":
        low, high = (0, extent - 1) if align_corners else (-0.5, extent - 0.5)
        span = high - low
        if span <= 0:
            return at * 0
        away = fn.remainder(fn.abs(at - low), 2 * span)
        at = fn.where(away <= span, away + low, 2 * span + low - away)
    return fn.where(at > 0, fn.minimum(at, extent - 1), 0)


def _picked(images, places, mode, align_corners, is_rounded=False):
    """Return the elements of images (batch, ..., channels) at the places; "zeros": 0 outside."""
    valid = None
    batch = arange(images.shape[0], dtype=int64, device=images.device)
    key = [reshape(batch, (-1,) + (1,) * len(places))]
    for at, extent in zip(places, images.shape[1:-1], strict=True):
        if mode == "zeros":
            at = fn.round(at) if is_rounded else at
            here = fn.logical_and(at >= 0, at <= extent - 1)
            valid = here if valid is None else fn.logical_and(valid, here)
            at = fn.where(here, at, 0)
        else:
            at = _inside(at, extent, mode, align_corners)
            at = fn.round(at) if is_rounded else at
        key.append(astype(at, int64))
    found = images[tuple(key)]
    return found if valid is None else fn.where(expand_dims(valid, axis=-1), found, 0)


def affine_grid(theta, size, align_corners=False):
    """Return the grid of places for :func:`grid_sample` that applies affine maps to images.

    Parameters
    ----------
    theta : Tensor
        Shape (batch, 2, 3), or (batch, 3, 4) for images with a depth: one map for each image.
    size : tuple of int
        The shape of the images to be sampled: batch, channels and their extents.
    align_corners : bool
        As in :func:`grid_sample`.

    Returns
    -------
    Tensor
        Shape (batch, ..., 2) or (batch, ..., 3).

    Raises
    ------
    TypeError
        If theta does not have a floating-point dtype.
    ValueError
        For other arguments that do not fit.

    >>> import gputensor as gt
    >>> theta = gt.asarray([[[1.0, 0.0, 0.0], [0.0, 1.0, 0.5]]], device="host")
    >>> affine_grid(theta, (1, 1, 1, 2)).tolist()
    [[[[-0.5, 0.5], [0.5, 0.5]]]]
    """
    theta = _real("affine_grid: theta", theta)
    if not isinstance(size, (tuple, list)) or len(size) not in (4, 5):
        raise argument_error(ValueError, "affine_grid: size", size, "4 or 5 ints")
    batch, _channels, *extents = size
    ndim = len(extents)
    if ndim not in (2, 3) or theta.shape != (batch, ndim, ndim + 1):
        rule = "(batch, 2, 3), or (batch, 3, 4), for a size of 4 or 5 extents"
        raise argument_error(ValueError, "affine_grid: shape of theta", theta.shape, rule)
    lines = []
    for extent in extents[::-1]:
        count = extent - 1 if align_corners else extent
        line = 2 * arange(extent, dtype=theta.dtype, device=theta.device) - (extent - 1)
        lines.append(line / max(count, 1))
    axes = meshgrid(*lines[::-1], indexing="ij")[::-1]
    axes = [*axes, ones(tuple(extents), dtype=theta.dtype, device=theta.device)]
    flat = reshape(stack(axes, axis=-1), (-1, ndim + 1))
    return reshape(matmul(flat, matrix_transpose(theta)), (batch, *extents, ndim))
