"""The places of maxima that pooling found, and the way back: max_unpool, fold and unfold.

Everything is composed of operations on whole tensors, one step for each element of a window.
"""

import itertools
import math

from gputensor._arrays.dtypes import float32, int64
from gputensor.errors import Described, argument_error
from gputensor.nn.extents import Image, Window, each_axis
from gputensor.tensor import functions as fn
from gputensor.tensor.core import spellings, tensor_argument
from gputensor.tensor.interop import asarray, astype
from gputensor.tensor.manipulation import broadcast_to, reshape, take, zeros
from gputensor.tensor.manipulation.joining import stack
from gputensor.tensor.manipulation.picking import scatter
from gputensor.tensor.numerics import windows

__all__ = ["fold", "greatest", "max_unpool1d", "max_unpool2d", "max_unpool3d", "unfold"]


def _steps(places, extent):
    """Return one list of places for each element of a window.

    `places` has a range for each window. A place outside of the axis is replaced by its neighbour
    in the window, which changes no maximum.
    """
    lines = []
    for window in places:
        inside = [at for at in window if 0 <= at < extent]
        if not inside:
            return None
        line, last = [], inside[0]
        for at in window:
            last = at if 0 <= at < extent else last
            line.append(last)
        lines.append(line)
    most = max(len(line) for line in lines)
    return list(zip(*(line + line[-1:] * (most - len(line)) for line in lines), strict=True))


def greatest(name, x, places):
    """Return the greatest element of each window, and its place in the image, counted in elements.

    Parameters
    ----------
    name : str
        The name of the function, for messages.
    x : Tensor
        (batch, channels, axes).
    places : list of list of range
        For each axis, the places of each window.
    """
    extents = x.shape[2:]
    steps = [_steps(*one) for one in zip(places, extents, strict=True)]
    if None in steps:
        got = Described("windows without an element of x")
        raise argument_error(ValueError, f"{name}: padding", got, "one or more in each")
    counts = [len(one) for one in places]
    index = [[asarray(line, int64, device=x.device) for line in one] for one in steps]
    best = best_at = None
    for corner in itertools.product(*(range(len(one)) for one in steps)):
        found, at = x, 0
        for axis, step in enumerate(corner):
            line = index[axis][step]
            found = take(found, line, axis=axis + 2)
            shape = (-1,) + (1,) * (len(counts) - axis - 1)
            at = at * extents[axis] + reshape(line, shape)
        at = broadcast_to(at, found.shape)
        if best is None:
            best, best_at = found, at
            continue
        is_greater = found > best
        if x.dtype.kind not in "iub":
            is_greater = fn.logical_or(is_greater, fn.isnan(found))
        best = fn.where(is_greater, found, best)
        best_at = fn.where(is_greater, at, best_at)
    return best, best_at


def _unpooled(name, spatial, x, indices, window):
    kernel, stride, padding, output_size = window
    image, places = Image(name, x, spatial, None), Image(name, indices, spatial, None)
    if places.x.dtype.kind not in "iu" or places.x.shape != image.x.shape:
        got = Described(f"{indices.dtype} of shape {indices.shape}")
        raise argument_error(ValueError, f"{name}: indices", got, f"integers of shape {x.shape}")
    kernel = each_axis(f"{name}: kernel_size", kernel, spatial, 1)
    stride = each_axis(f"{name}: stride", kernel if stride is None else stride, spatial, 1)
    padding = each_axis(f"{name}: padding", padding, spatial, 0)
    batch, channels, *extents = image.x.shape
    if output_size is None:
        output_size = tuple((n - 1) * s - 2 * p + k for n, s, p, k in
                            zip(extents, stride, padding, kernel, strict=True))  # fmt: skip
    elif isinstance(output_size, (tuple, list)):
        output_size = output_size[-spatial:]
    output_size = each_axis(f"{name}: output_size", output_size, spatial, 1)
    flat = zeros((batch, channels, math.prod(output_size)), dtype=x.dtype, device=x.device)
    rows = (batch, channels, math.prod(extents))
    flat = scatter(flat, -1, astype(reshape(places.x, rows), int64), reshape(image.x, rows))
    return image.given_back(reshape(flat, (batch, channels, *output_size)))


def max_unpool1d(x, indices, kernel_size, stride=None, padding=0, output_size=None):
    """Return zeros, with `x` written to the places that max_pool1d returned.

    >>> x = gt.asarray([[1.0, 4.0, 3.0, 2.0]], device="host")
    >>> max_unpool1d(*gt.max_pool1d(x, 2, return_indices=True), 2).tolist()
    [[0.0, 4.0, 3.0, 0.0]]
    """
    window = (kernel_size, stride, padding, output_size)
    return _unpooled("max_unpool1d", 1, x, indices, window)


def max_unpool2d(x, indices, kernel_size, stride=None, padding=0, output_size=None):
    """Return zeros, with `x` written to the places that :func:`max_pool2d` returned.

    Parameters
    ----------
    x, indices : Tensor
        The results of a pooling function with ``return_indices=True``.
    kernel_size, stride, padding
        Those of the pooling; they determine the extents of the result,
        ``(n - 1) * stride - 2 * padding + kernel_size``.
    output_size : int or sequence of int, optional
        The extents of the result, for a pooling that dropped elements at the end.

    >>> x = gt.asarray([[[1.0, 4.0, 3.0, 2.0]]], device="host")
    >>> max_unpool2d(*gt.max_pool2d(x, (1, 2), return_indices=True), (1, 2)).tolist()
    [[[0.0, 4.0, 3.0, 0.0]]]
    """
    window = (kernel_size, stride, padding, output_size)
    return _unpooled("max_unpool2d", 2, x, indices, window)


def max_unpool3d(x, indices, kernel_size, stride=None, padding=0, output_size=None):
    """Return zeros, with `x` written to the places that max_pool3d returned.

    >>> x = gt.asarray([[[[1.0, 4.0]]]], device="host")
    >>> max_unpool3d(*gt.max_pool3d(x, (1, 1, 2), return_indices=True), (1, 1, 2)).tolist()
    [[[[0.0, 4.0]]]]
    """
    window = (kernel_size, stride, padding, output_size)
    return _unpooled("max_unpool3d", 3, x, indices, window)


def _patches(name, kernel, stride, padding, dilation):
    kernel = each_axis(f"{name}: kernel_size", kernel, 2, 1)
    padding = each_axis(f"{name}: padding", padding, 2, 0)
    return Window(name, kernel, stride, padding, dilation)


def _span(window, axis, step, count):
    """Return the slice of a padded axis that element `step` of each window covers."""
    first = step * window.dilation[axis]
    return slice(first, first + (count - 1) * window.stride[axis] + 1, window.stride[axis])


def fold(x, output_size, kernel_size, dilation=1, padding=0, stride=1):
    """Return images in which each element is the sum of the elements of columns for its place.

    The inverse of unfolding, except that places in several windows are sums.

    Parameters
    ----------
    x : Tensor
        Shape (batch, channels * the elements of a window, windows), or without the batch.
    output_size : int or (int, int)
        The height and width of the images.
    kernel_size, dilation, padding, stride : int or (int, int)

    Returns
    -------
    Tensor
        Shape (batch, channels, height, width); float16 and bfloat16 are summed in float32.

    >>> x = gt.asarray([[1.0, 2.0], [3.0, 4.0]], device="host")
    >>> fold(x, (1, 3), (1, 2)).tolist()
    [[[1.0, 5.0, 4.0]]]
    """
    x = tensor_argument(x, "fold")
    window = _patches("fold", kernel_size, stride, padding, dilation)
    extents = each_axis("fold: output_size", output_size, 2, 1)
    counts, area = window.results(extents), math.prod(window.kernel)
    is_single = x.ndim == 2
    if x.ndim not in (2, 3) or x.shape[-2] % area or x.shape[-1] != math.prod(counts):
        rule = f"(batch, a multiple of {area}, {math.prod(counts)}), or without the batch"
        raise argument_error(ValueError, "fold: shape of x", x.shape, rule)
    batch, channels = 1 if is_single else x.shape[0], x.shape[-2] // area
    wide = float32 if x.dtype.itemsize < 4 and x.dtype.kind not in "iub" else x.dtype
    parts = reshape(astype(x, wide, copy=False), (batch, channels, *window.kernel, *counts))
    padded = [n + 2 * p for n, p in zip(extents, window.before, strict=True)]
    total = zeros((batch, channels, *padded), dtype=wide, device=x.device)
    for row, column in itertools.product(*(range(n) for n in window.kernel)):
        rows, columns_ = (_span(window, axis, step, counts[axis])
                          for axis, step in enumerate((row, column)))  # fmt: skip
        total[:, :, rows, columns_] += parts[:, :, row, column]
    top, left = window.before
    total = total[:, :, top : top + extents[0], left : left + extents[1]]
    total = astype(total, x.dtype)
    return total[0] if is_single else total


@spellings(dimension="axis")
def unfold(
    x, /, axis=None, size=None, step=None, *, kernel_size=None, dilation=1, padding=0, stride=1
):
    """Return a view of windows along an axis; without `step`, the windows of images as columns.

    Parameters
    ----------
    x : Tensor
        For columns, of shape (batch, channels, height, width), or without the batch.
    axis, size, step : int
        The view has windows of `size` elements along `axis`, `step` apart, in a new last axis.
    kernel_size, dilation, padding, stride : int or (int, int)
        Those of PyTorch's function. The kernel's size may be the second argument:
        ``unfold(x, 3, padding=1)``.

    Returns
    -------
    Tensor
        For columns, of shape (batch, channels * the elements of a window, windows).

    >>> unfold(gt.arange(5, device="host"), 0, 3, 2).tolist()
    [[0, 1, 2], [2, 3, 4]]
    >>> unfold(gt.asarray([[[[1.0, 2.0, 3.0]]]], device="host"), (1, 2)).tolist()
    [[[1.0, 2.0], [2.0, 3.0]]]
    """
    if step is not None:
        return windows.unfold(x, axis, size, step)
    tensor_argument(x, "unfold")
    kernel_size = axis if kernel_size is None else kernel_size
    window = _patches("unfold", kernel_size, stride, padding, dilation if size is None else size)
    image = Image("unfold", x, 2, None)
    batch, channels, *extents = image.x.shape
    counts = window.results(extents)
    padded = [n + 2 * p for n, p in zip(extents, window.before, strict=True)]
    whole = image.x
    if any(window.before):
        top, left = window.before
        whole = zeros((batch, channels, *padded), dtype=x.dtype, device=x.device)
        whole[:, :, top : top + extents[0], left : left + extents[1]] = image.x
    parts = [
        whole[:, :, _span(window, 0, row, counts[0]), _span(window, 1, column, counts[1])]
        for row, column in itertools.product(*(range(n) for n in window.kernel))
    ]
    made = reshape(stack(parts, axis=2), (batch, channels * len(parts), math.prod(counts)))
    return made[0] if image.is_single else made
