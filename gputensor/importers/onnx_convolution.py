"""ONNX operators with windows: convolution, pooling and unpooling."""

import itertools
import math

import numpy as np

from gputensor.errors import Described, argument_error
from gputensor.importers.onnx_quantized import requantized
from gputensor.importers.onnx_registry import EXPANDED, operator
from gputensor.importers.onnx_values import Missing, ints
from gputensor.importers.public_functions import gt

__all__ = ["Windows", "col2im", "deformed", "max_pool_with_places"]

EXPANDED.add(("", "CausalConvWithState"))


def _named(name, ndim):
    if not 1 <= ndim <= 3:
        got = Described(f"windows with {ndim} axes")
        raise argument_error(Missing, name, got, "1, 2 or 3 axes")
    return getattr(gt, f"{name}{ndim}d")


class Windows:
    """The windows of a node: kernel, stride, dilation and padding of each axis."""

    def __init__(self, x, kernel_shape, auto_pad, dilations, pads, strides):
        self.kernel = tuple(kernel_shape)
        ndim = len(self.kernel)
        self.stride = tuple(strides or [1] * ndim)
        self.dilation = tuple(dilations or [1] * ndim)
        pads = pads or [0] * (2 * ndim)
        self.before, self.after = list(pads[:ndim]), list(pads[ndim:])
        if auto_pad in ("SAME_UPPER", "SAME_LOWER"):
            self._same(x.shape[2:], auto_pad == "SAME_LOWER")

    def _same(self, extents, is_lower):
        for i, extent in enumerate(extents):
            count = -(-extent // self.stride[i])
            reach = (self.kernel[i] - 1) * self.dilation[i] + 1
            total = max((count - 1) * self.stride[i] + reach - extent, 0)
            less = total // 2
            self.before[i] = total - less if is_lower else less
            self.after[i] = total - self.before[i]

    @property
    def padding(self):
        """A pair (before, after) for each axis."""
        return tuple(zip(self.before, self.after, strict=True))

    @property
    def is_plain(self):
        """Whether padding is at most half a window; beyond that a window may be all padding."""
        reaches = [(k - 1) * d + 1 for k, d in zip(self.kernel, self.dilation, strict=True)]
        return all(2 * max(pair) <= k for pair, k in zip(self.padding, reaches, strict=True))

    def counts(self, extents, ceil_mode):
        """Return the number of windows along each axis."""
        found = []
        for i, extent in enumerate(extents):
            room = extent + self.before[i] + self.after[i]
            room -= (self.kernel[i] - 1) * self.dilation[i] + 1
            count = (-(-room // self.stride[i]) if ceil_mode else room // self.stride[i]) + 1
            if ceil_mode and (count - 1) * self.stride[i] >= extent + self.before[i]:
                count -= 1
            found.append(count)
        return found


@operator("Conv")
def conv(x, w, b=None, *, auto_pad, dilations, group, kernel_shape, pads, strides):
    windows = Windows(x, w.shape[2:], auto_pad, dilations, pads, strides)
    function = _named("conv", x.ndim - 2)
    return function(x, w, b, windows.stride, windows.padding, windows.dilation, group)


@operator("ConvTranspose")
def conv_transpose(
    x, w, b=None, *, auto_pad, dilations, group, kernel_shape, output_padding, output_shape, pads,
    strides,
):  # fmt: skip
    windows = Windows(x, w.shape[2:], "NOTSET", dilations, pads, strides)
    ndim = x.ndim - 2
    more = list(output_padding or [0] * ndim)
    whole = [
        (x.shape[2 + i] - 1) * windows.stride[i] + (windows.kernel[i] - 1) * windows.dilation[i] + 1
        for i in range(ndim)
    ]
    if auto_pad in ("SAME_UPPER", "SAME_LOWER") and not output_shape:
        output_shape = [x.shape[2 + i] * windows.stride[i] for i in range(ndim)]
    if not output_shape and min(windows.before + windows.after) >= 0:
        function = _named("conv_transpose", ndim)
        how = {"dilation": windows.dilation}
        return function(x, w, b, windows.stride, windows.padding, tuple(more), group, **how)
    if output_shape:
        for i, wanted in enumerate(list(output_shape)[-ndim:]):
            total = whole[i] + more[i] - wanted
            less = total // 2
            windows.before[i] = less if auto_pad == "SAME_UPPER" else total - less
            windows.after[i] = total - windows.before[i]
    # The whole result is computed, then cut to size; places beyond it are the bias alone.
    function = _named("conv_transpose", ndim)
    y = function(x, w, None, windows.stride, 0, 0, group, dilation=windows.dilation)
    key, grown = [slice(None), slice(None)], [(0, 0), (0, 0)]
    for i in range(ndim):
        last = whole[i] + more[i] - windows.after[i]
        key.append(slice(max(windows.before[i], 0), min(last, whole[i])))
        grown.append((max(-windows.before[i], 0), max(last - whole[i], 0)))
    y = y[tuple(key)]
    y = gt.pad(y, grown) if any(map(any, grown)) else y
    return y if b is None else y + gt.reshape(b, (-1,) + (1,) * ndim)


# ---- pooling


@operator("GlobalAveragePool")
def global_average_pool(x):
    axes = tuple(range(2, x.ndim))
    return gt.mean(x, axis=axes, keepdims=True).astype(x.dtype, copy=False)


@operator("GlobalMaxPool")
def global_max_pool(x):
    return gt.max(x, axis=tuple(range(2, x.ndim)), keepdims=True)


@operator("GlobalLpPool")
def global_lp_pool(x, *, p):
    return _root(gt.sum(_power(x, p), axis=tuple(range(2, x.ndim)), keepdims=True), p)


def _power(x, p):
    return gt.square(x) if p == 2 else gt.pow(gt.abs(x), p)


def _root(x, p):
    return gt.sqrt(x) if p == 2 else gt.pow(x, 1 / p)


def _taps(x, windows, ceil_mode, fill):
    """Return one tensor of elements for each place in a window, and the numbers of windows."""
    extents = x.shape[2:]
    counts = windows.counts(extents, ceil_mode)
    widths = [(0, 0), (0, 0)]
    for i, extent in enumerate(extents):
        reach = (counts[i] - 1) * windows.stride[i] + (windows.kernel[i] - 1) * windows.dilation[i]
        after = max(reach + 1 - extent - windows.before[i], 0)
        widths.append((windows.before[i], after))
    if any(map(any, widths)):
        x = gt.pad(x, widths, constant_values=fill)
    found = []
    for place in itertools.product(*map(range, windows.kernel)):
        key = [slice(None), slice(None)]
        for i, at in enumerate(place):
            first = at * windows.dilation[i]
            key.append(slice(first, first + (counts[i] - 1) * windows.stride[i] + 1,
                             windows.stride[i]))  # fmt: skip
        found.append(x[tuple(key)])
    return found, counts


@operator("AveragePool")
def average_pool(
    x, *, auto_pad, ceil_mode=0, count_include_pad, dilations=None, kernel_shape, pads, strides
):
    windows = Windows(x, kernel_shape, auto_pad, dilations, pads, strides)
    if set(windows.dilation) == {1} and windows.is_plain:
        function = _named("avg_pool", len(windows.kernel))
        include = bool(count_include_pad)
        how = windows.kernel, windows.stride, windows.padding, bool(ceil_mode), include
        return function(x, *how)
    taps, counts = _taps(x, windows, ceil_mode, 0)
    total = taps[0]
    for tap in taps[1:]:
        total = total + tap
    sizes = np.ones(())
    for i, extent in enumerate(x.shape[2:]):
        first = np.arange(counts[i])[:, None] * windows.stride[i] - windows.before[i]
        at = first + np.arange(windows.kernel[i]) * windows.dilation[i]
        low = -windows.before[i] if count_include_pad else 0
        high = extent + (windows.after[i] if count_include_pad else 0)
        sizes = np.multiply.outer(sizes, ((at >= low) & (at < high)).sum(-1))
    return total / gt.asarray(sizes.astype(x.dtype), device=x.device)


@operator("MaxPool")
def max_pool(
    x, *, auto_pad, ceil_mode=0, dilations=None, kernel_shape, pads, storage_order=0, strides,
    context,
):  # fmt: skip
    windows = Windows(x, kernel_shape, auto_pad, dilations, pads, strides)
    if context.n_outputs == 1 and windows.is_plain:
        function = _named("max_pool", len(windows.kernel))
        how = windows.kernel, windows.stride, windows.padding, windows.dilation
        return function(x, *how, bool(ceil_mode))
    if context.n_outputs > 1:
        return max_pool_with_places(x, windows, ceil_mode, storage_order)
    taps, _counts = _taps(x, windows, ceil_mode, _lowest(x))
    best = taps[0]
    for tap in taps[1:]:
        best = gt.maximum(best, tap)
    return best


def _lowest(x):
    return -math.inf if x.dtype.kind not in "iu" else np.iinfo(x.dtype).min


def max_pool_with_places(x, windows, ceil_mode, by_columns=False):
    """Return the maxima of windows and their positions in the flattened input."""
    taps, counts = _taps(x, windows, ceil_mode, _lowest(x))
    rows = gt.stack(taps, 0)
    first = gt.argmax(rows, axis=0)
    return gt.max(rows, axis=0), _flat_places(x, first, windows, counts, by_columns)


def _flat_places(x, first, windows, counts, by_columns):
    """Return the positions of the maxima in the flattened input."""
    extents = x.shape[2:]
    ndim = len(extents)
    kernel = np.array(list(itertools.product(*map(range, windows.kernel))), np.int64)
    strides = np.cumprod([1, *(extents if by_columns else extents[::-1])])[:ndim]
    strides = strides if by_columns else strides[::-1]
    whole = math.prod(extents)
    images = np.arange(x.shape[0] * x.shape[1]).reshape(*x.shape[:2], *[1] * ndim) * whole
    starts = images
    for i in range(ndim):
        at = np.arange(counts[i]) * windows.stride[i] - windows.before[i]
        starts = (
            starts + at.reshape([-1 if j == i + 2 else 1 for j in range(ndim + 2)]) * strides[i]
        )
    offsets = (kernel * np.array(windows.dilation) * strides).sum(-1)
    offsets = gt.asarray(offsets.astype(np.int64), device=x.device)
    return gt.take(offsets, first, 0) + gt.asarray(starts.astype(np.int64), device=x.device)


@operator("LpPool")
def lp_pool(x, *, auto_pad, ceil_mode=0, dilations=None, kernel_shape, p, pads, strides):
    windows = Windows(x, kernel_shape, auto_pad, dilations, pads, strides)
    taps, _counts = _taps(_power(x, p), windows, ceil_mode, 0)
    total = taps[0]
    for tap in taps[1:]:
        total = total + tap
    return _root(total, p)


@operator("MaxUnpool", known=(2,))
def max_unpool(x, places, shape=None, *, kernel_shape, pads, strides):
    windows = Windows(x, kernel_shape, "NOTSET", None, pads, strides)
    plain = [
        (extent - 1) * windows.stride[i] - windows.before[i] - windows.after[i] + windows.kernel[i]
        for i, extent in enumerate(x.shape[2:])
    ]
    plain = [*x.shape[:2], *plain]
    extents = plain if shape is None else ints(shape)
    y = gt.zeros((math.prod(plain),), dtype=x.dtype, device=x.device)
    y[gt.reshape(places, -1)] = gt.reshape(x, -1)
    y = gt.reshape(y, plain)
    widths = [(0, wanted - extent) for wanted, extent in zip(extents, plain, strict=True)]
    return gt.pad(y, widths) if any(map(any, widths)) else y


# ---- integers


@operator("ConvInteger")
def conv_integer(
    x, w, x_zero=None, w_zero=None, *, auto_pad, dilations, group, kernel_shape, pads, strides
):
    windows = Windows(x, w.shape[2:], auto_pad, dilations, pads, strides)
    return _integer_conv(x, w, x_zero, w_zero, (windows, group)).astype("int32")


def _integer_conv(x, w, x_zero, w_zero, how):
    """Return a convolution of integers, computed in float64, which represents the sums exactly."""
    windows, group = how
    x, w = x.astype("float64"), w.astype("float64")
    if x_zero is not None:
        x = x - x_zero.astype("float64")
    if w_zero is not None:
        zero = w_zero.astype("float64")
        w = w - (gt.reshape(zero, (-1,) + (1,) * (w.ndim - 1)) if zero.ndim else zero)
    function = _named("conv", x.ndim - 2)
    return function(x, w, None, windows.stride, windows.padding, windows.dilation, group)


@operator("QLinearConv")
def q_linear_conv(
    x, x_scale, x_zero, *others, auto_pad, dilations, group, kernel_shape, pads, strides
):
    w, w_scale, w_zero, y_scale, y_zero, b = (*others, None)[:6]
    windows = Windows(x, w.shape[2:], auto_pad, dilations, pads, strides)
    y = _integer_conv(x, w, x_zero, w_zero, (windows, group))
    beside = (-1,) + (1,) * (x.ndim - 2)
    y = (y if b is None else y + gt.reshape(b.astype("float64"), beside)).astype("float32")
    w_scale = gt.reshape(w_scale, beside) if w_scale.size > 1 else w_scale
    return requantized(y, x_scale * w_scale / y_scale, y_zero)


@operator("Col2Im", known=(1, 2))
def col2im(x, image_shape, block_shape, *, dilations, pads, strides):
    extents, block = ints(image_shape), ints(block_shape)
    windows = Windows(x, block, "NOTSET", dilations, pads, strides)
    counts = windows.counts(extents, False)
    batch, rows, _columns = x.shape
    channels = rows // math.prod(block)
    parts = gt.reshape(x, (batch, channels, math.prod(block), *counts))
    whole = [n + a + b for n, a, b in zip(extents, windows.before, windows.after, strict=True)]
    y = gt.zeros((batch, channels, *whole), dtype=x.dtype, device=x.device)
    for k, place in enumerate(itertools.product(*map(range, block))):
        key = [slice(None), slice(None)]
        for i, at in enumerate(place):
            first = at * windows.dilation[i]
            key.append(slice(first, first + (counts[i] - 1) * windows.stride[i] + 1,
                             windows.stride[i]))  # fmt: skip
        y[tuple(key)] += parts[:, :, k]
    ends = [slice(a, a + n) for a, n in zip(windows.before, extents, strict=True)]
    return y[tuple([slice(None)] * 2 + ends)]


# ---- deformed windows


@operator("DeformConv", 19)
def deform_conv(
    x, weight, offset, bias=None, mask=None, *, dilations, group, kernel_shape, offset_group, pads,
    strides,
):  # fmt: skip
    if weight.ndim != 4:
        got = Described(f"{weight.ndim - 2} spatial axes")
        raise argument_error(Missing, "DeformConv", got, "two")
    how = strides or (1, 1), (pads or (0, 0))[:2], dilations or (1, 1), group
    y = deformed(x, weight, offset, mask, how, offset_group)
    return y if bias is None else y + gt.reshape(bias, (-1, 1, 1))


def deformed(x, weight, offset, mask, how, offset_group):
    """Return a convolution whose terms are linear samples at shifted places of an image.

    `offset` (batch, offset_group * taps * 2, rows, columns) has the shifts, down and to the right,
    and `mask` the factors of the samples. `how` has strides, padding, dilations and groups. Outside
    the image there are zeros.
    """
    strides, pads, dilations, groups = how
    batch, channels, height, width = x.shape
    taps, ends = math.prod(weight.shape[2:]), offset.shape[2:]
    shifts = gt.reshape(offset, (batch, offset_group, taps, 2, *ends))
    kind = "float64" if x.dtype == np.float64 else "float32"
    shifts = shifts.astype(kind, copy=False)
    places = []
    for axis, (extent, at) in enumerate(zip(ends, np.indices(weight.shape[2:]), strict=True)):
        steps = gt.arange(extent, dtype=kind, device=x.device) * strides[axis] - pads[axis]
        shape = [1, 1, 1]
        shape[1 + axis] = -1
        firsts = (at.reshape(-1, 1, 1) * dilations[axis]).astype(kind)
        starts = gt.asarray(firsts, device=x.device) + gt.reshape(steps, shape)
        places.append(shifts[:, :, :, axis] + starts)
    image = gt.reshape(x, (batch * offset_group, channels // offset_group, height * width))
    image = gt.reshape(gt.moveaxis(image, 1, 2), (-1, channels // offset_group))
    firsts = gt.arange(batch * offset_group, dtype="int64", device=x.device) * (height * width)
    firsts = gt.reshape(firsts, (batch, offset_group, 1, 1, 1))
    found = _samples(image, firsts, places, (height, width))
    if mask is not None:
        found = found * gt.reshape(mask, (batch, offset_group, taps, *ends, 1))
    rows = gt.moveaxis(found.astype(x.dtype, copy=False), -1, 2)
    rows = gt.reshape(rows, (batch, groups, channels // groups * taps, -1))
    y = gt.matmul(gt.reshape(weight, (groups, weight.shape[0] // groups, -1)), rows)
    return gt.reshape(y, (batch, weight.shape[0], *ends))


def _samples(image, firsts, places, extents):
    """Return linear samples of an image (rows of channels), with an axis of channels added."""
    corners = [gt.floor(at) for at in places]
    total = None
    for moves in itertools.product((0, 1), repeat=2):
        index, factor = None, None
        for corner, move, at, extent in zip(corners, moves, places, extents, strict=True):
            near = corner + move
            inside = gt.logical_and(near >= 0, near <= extent - 1)
            share = gt.where(inside, 1 - gt.abs(at - near), 0)
            whole = gt.clip(near, 0, extent - 1).astype("int64")
            index = whole if index is None else index * extent + whole
            factor = share if factor is None else factor * share
        part = gt.take(image, firsts + index, 0) * gt.expand_dims(factor, -1)
        total = part if total is None else total + part
    return total
