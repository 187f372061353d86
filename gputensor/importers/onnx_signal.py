"""ONNX's Fourier transforms, DFT and STFT, as products with matrices of sines and cosines.

Thus a program can contain them, for any length, at the cost of a matrix product. Complex numbers
are pairs along the last axis.
"""

import numpy as np

from gputensor.errors import ModelError, argument_error
from gputensor.importers.onnx_registry import operator
from gputensor.importers.onnx_values import number
from gputensor.importers.public_functions import gt

__all__ = []


def _angles(n, rows, columns, device):
    """Return 2 pi j k / n in float64, with j k reduced modulo n first so that it stays exact.

    Tensors compute it, because constants would have one size in a program with free extents.
    """
    j, k, n = _indices(rows, device), _indices(columns, device), _length(n, device)
    return gt.expand_dims(j, 1) * k % n * (2 * np.pi) / n


def _indices(n, device):
    return gt.arange(n, dtype="int64", device=device)


def _length(n, device):
    """Return an extent as a tensor of one float64."""
    return _indices(n + 1, device)[-1:].astype("float64")


def _matrices(n_in, n, is_onesided, dtype, device):
    """Return the cosines and sines (inputs, outputs) of a transform of length n."""
    angles = _angles(n, n_in, n // 2 + 1 if is_onesided else n, device)
    return (f(angles).astype(dtype) for f in (gt.cos, gt.sin))


def _parts(x):
    """Return the real and imaginary parts; the latter is None for real numbers."""
    return x[..., 0], x[..., 1] if x.shape[-1] == 2 else None


def transform(x, n, is_onesided, inverse):
    """Return the transform along the last axis but one, of an input cut or padded to n elements."""
    x = x[..., :n, :]
    if inverse and is_onesided:
        return _real_inverse(x, n)
    real, imaginary = _parts(x)
    cosines, sines = _matrices(x.shape[-2], n, is_onesided, x.dtype, x.device)
    sines = -sines if inverse else sines
    a, b = gt.matmul(real, cosines), -gt.matmul(real, sines)
    if imaginary is not None:
        a, b = a + gt.matmul(imaginary, sines), b + gt.matmul(imaginary, cosines)
    y = gt.stack([a, b], -1)
    return y / _length(n, x.device).astype(x.dtype) if inverse else y


def _real_inverse(x, n):
    """Return the real numbers whose transform begins with x, its first half."""
    x = x[..., : n // 2 + 1, :]
    real, imaginary = _parts(x)
    count = x.shape[-2]
    j, length = _indices(count, x.device), _length(n, x.device)
    # All but the first and the middle one stand for two terms.
    weights = (2.0 - (j == 0).astype("float64") - (2 * j == length).astype("float64")) / length
    angles = _angles(n, count, n, x.device)
    cosines, sines = (
        (gt.expand_dims(weights, 1) * f(angles)).astype(x.dtype) for f in (gt.cos, gt.sin)
    )
    y = gt.matmul(real, cosines)
    y = y if imaginary is None else y - gt.matmul(imaginary, sines)
    return gt.expand_dims(y, -1)


def _along(x, axis, n, onesided, inverse):
    axis = axis % x.ndim
    moved = gt.moveaxis(x, axis, -2)
    if n is None:
        n = moved.shape[-2]
        n = 2 * (n - 1) if onesided and inverse else n
    return gt.moveaxis(transform(moved, n, bool(onesided), bool(inverse)), -2, axis)


@operator("DFT", 17, known=(1,))
def dft_attribute(x, length=None, *, axis, inverse, onesided):
    return _along(x, axis, None if length is None else number(length), onesided, inverse)


@operator("DFT", 20, known=(1, 2))
def dft(x, length=None, axis=None, *, inverse, onesided):
    n = None if length is None else number(length)
    return _along(x, -2 if axis is None else number(axis), n, onesided, inverse)


@operator("STFT", 17, known=(1, 3))
def stft(x, step, window=None, length=None, *, onesided):
    if window is None and length is None:
        raise argument_error(ModelError, "STFT", None, "a window or frame_length")
    step = number(step)
    n = number(length) if length is not None else window.shape[0]
    count = (x.shape[1] - n) // step + 1
    places = gt.expand_dims(_indices(count, x.device), 1) * step + _indices(n, x.device)
    frames = gt.take(x, places, 1)
    if window is not None:
        frames = frames * gt.reshape(window, (-1, 1))
    is_onesided = bool(onesided) and x.shape[-1] == 1
    return transform(frames, n, is_onesided, False)
