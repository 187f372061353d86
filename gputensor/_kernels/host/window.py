"""Folds over windows on a host device: each element of a window is a view of the input."""

import itertools

import numpy as np

from gputensor._kernels.host.elementwise import cast

__all__ = ["run", "shifted"]


def shifted(tap, how, x_shape, out_shape):
    """Return the indices of the results and the elements that one tap of a kernel connects.

    Parameters
    ----------
    tap : tuple of int
        The place of the tap in the kernel.
    how : (tuple, tuple, tuple)
        Strides, padding before, dilation.
    x_shape, out_shape : tuple of int
        Extents of the axes.

    >>> shifted((0,), ((2,), (1,), (1,)), (5,), (3,))
    ((Ellipsis, slice(1, 3, None)), (Ellipsis, slice(1, 4, 2)))
    """
    results, elements = [...], [...]
    axes = zip(tap, *how, x_shape, out_shape, strict=True)
    for place, stride, padding, dilation, extent, count in axes:
        first = place * dilation - padding
        begin = max(0, -(first // stride))
        end = max(begin, min(count, (extent - 1 - first) // stride + 1))
        start = begin * stride + first
        results.append(slice(begin, end))
        elements.append(slice(start, start + max(0, end - begin - 1) * stride + 1, stride))
        if begin == end:
            elements[-1] = slice(0, 0)
    return tuple(results), tuple(elements)


def _counts(kernel, how, ends, x_shape, out_shape):
    """Yield, for each axis, the number of elements of each window that count."""
    for taps, stride, padding, dilation, end, extent, count in zip(
        kernel, *how, ends, x_shape, out_shape, strict=True
    ):
        at = np.arange(count)[:, None] * stride - padding + np.arange(taps) * dilation
        yield ((at < extent + (end or 0)) & (at >= (0 if end is None else -padding))).sum(axis=1)


def _adaptive(pooling, x, out, wide):
    """Fold windows that cut each axis into as many parts as the result has, axis by axis."""
    for axis in range(2, x.ndim):
        extent, count = x.shape[axis], out.shape[axis]
        parts = []
        for place in range(count):
            part = slice(place * extent // count, -(-(place + 1) * extent // count))
            taken = x[(slice(None),) * axis + (part,)]
            if pooling == "max":
                parts.append(taken.max(axis=axis))
            elif pooling == "sum":
                parts.append(taken.sum(axis=axis, dtype=wide))
            else:
                parts.append(taken.mean(axis=axis, dtype=wide))
        x = np.stack(parts, axis=axis)
    return x


def run(pooling, kernel, stride, padding, ends, dilation, *operands):
    """Fold the windows of an array; see the call ``window``.

    >>> x, y = np.arange(4, dtype=np.float32).reshape(1, 1, 4), np.empty((1, 1, 2), np.float32)
    >>> run("max", (2,), (2,), (0,), (0,), (1,), y, x)
    >>> y.tolist()
    [[[1.0, 3.0]]]
    """
    out, x = operands
    is_whole = x.dtype.kind in "iu"
    wide = x.dtype if is_whole or x.dtype == np.float64 else np.dtype(np.float32)
    x = cast(x, wide)
    if 0 in kernel:
        out[...] = cast(_adaptive(pooling, x, out, wide), out.dtype)
        return
    how, spatial, count = (stride, padding, dilation), x.shape[2:], out.shape[2:]
    lowest = np.iinfo(wide).min if is_whole else -np.inf
    sums = np.full(out.shape, lowest if pooling == "max" else 0, wide)
    for tap in itertools.product(*map(range, kernel)):
        results, elements = shifted(tap, how, spatial, count)
        to, taken = sums[results], x[elements]
        if pooling == "max":
            np.maximum(to, taken, out=to)
        else:
            to += taken
    if pooling in ("mean", "padded_mean"):
        counted = ends if pooling == "padded_mean" else (None,) * len(kernel)
        for axis, found in enumerate(_counts(kernel, how, counted, spatial, count)):
            shape = [1] * sums.ndim
            shape[2 + axis] = -1
            sums /= found.astype(wide).reshape(shape)
    out[...] = cast(sums, out.dtype)
