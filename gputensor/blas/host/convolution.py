"""Convolution on a host device: patches of the input as a matrix, and NumPy's product."""

import itertools

import numpy as np

from gputensor._kernels.host import elementwise
from gputensor._kernels.host.elementwise import cast
from gputensor._kernels.host.window import shifted
from gputensor._kernels.loops import HostLoop

__all__ = ["run"]

#: Bytes of patches held at a time, at most.
MOST_NBYTES = 64 << 20
_FINISHES = {
    "relu": elementwise.relu,
    "gelu_tanh": HostLoop("gelu_tanh"),
    "gelu": HostLoop("gelu"),
    "silu": HostLoop("silu"),
    "relu6": lambda x: elementwise.clip(x, *np.array([0, 6], x.dtype)),
    "hardswish": lambda x: x * np.minimum(np.maximum(x + 3, 0), 6) / x.dtype.type(6),
}


def _patches(x, taps, how, count):
    """Return the elements under each tap, (images, channels, taps, results)."""
    columns = np.zeros((len(taps), *x.shape[:2], *count), x.dtype)
    for number, tap in enumerate(taps):
        results, elements = shifted(tap, how, x.shape[2:], count)
        columns[number][results] = x[elements]
    return np.moveaxis(columns, 0, 2)


def _by_channel(x, weight, taps, how, count):
    """Convolve each channel by itself."""
    each = weight.shape[0] // x.shape[1]
    x = np.repeat(x, each, axis=1) if each > 1 else x
    sums = np.zeros((*x.shape[:2], *count), x.dtype)
    for tap in taps:
        results, elements = shifted(tap, how, x.shape[2:], count)
        factor = weight[(slice(None), 0) + tap].reshape(-1, *(1,) * len(count))
        sums[results] += x[elements] * factor
    return sums


def _block(x, weight, groups, how, count):
    """Convolve some images: return the sums of `count` results along each axis."""
    taps = list(itertools.product(*map(range, weight.shape[2:])))
    if groups > 1 and groups == x.shape[1]:
        return _by_channel(x, weight, taps, how, count)
    images, channels = x.shape[0], x.shape[1] // groups
    is_plain = len(taps) == 1 and count == x.shape[2:] and not any(how[1]) and set(how[0]) == {1}
    columns = x if is_plain else _patches(x, taps, how, count)
    columns = columns.reshape(images, groups, channels * len(taps), -1)
    factors = weight.reshape(groups, weight.shape[0] // groups, -1)
    return np.matmul(factors, columns).reshape(images, weight.shape[0], *count)


def run(stride, padding, dilation, groups, activation, _precision, *operands):
    """Convolve an array; see the call ``convolution``.

    >>> x = np.arange(4, dtype=np.float32).reshape(1, 1, 4)
    >>> y, w = np.empty((1, 1, 3), np.float32), np.ones((1, 1, 2), np.float32)
    >>> run((1,), (0,), (1,), 1, None, 0, y, x, w, None, None)
    >>> y.tolist()
    [[[1.0, 3.0, 5.0]]]
    """
    out, x, weight, bias, addend = operands
    wide = np.dtype(np.float64 if out.dtype == np.float64 else np.float32)
    x, weight = (np.ascontiguousarray(cast(one, wide)) for one in (x, weight))
    patch = int(np.prod(weight.shape[2:])) * x.shape[1] * wide.itemsize
    rows, inner = out.shape[2], int(np.prod(out.shape[3:]))
    step = max(1, min(rows, MOST_NBYTES // (patch * inner)))
    images = max(1, MOST_NBYTES // (patch * rows * inner))
    for first, row in itertools.product(range(0, len(x), images), range(0, rows, step)):
        some, part = slice(first, first + images), slice(row, min(rows, row + step))
        before = (padding[0] - row * stride[0], *padding[1:])
        count = (part.stop - row, *out.shape[3:])
        sums = _block(x[some], weight, groups, (stride, before, dilation), count)
        if bias is not None:
            sums += cast(bias, wide).reshape(-1, *(1,) * len(count))
        if addend is not None:
            sums += cast(addend[some, :, part], wide)
        if activation is not None:
            sums = _FINISHES[activation](sums)
        out[some, :, part] = cast(sums, out.dtype)
