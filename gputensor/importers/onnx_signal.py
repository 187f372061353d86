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


def _angles(n, rows, columns):
    """Return 2 pi j k / n, with j k reduced modulo n first so that large products stay exact."""
    return 2 * np.pi * (np.outer(np.arange(rows), np.arange(columns)) % n) / n


def _matrices(n_in, n, is_onesided, dtype, device):
    """Return the cosines and sines (inputs, outputs) of a transform of length n."""
    angles = _angles(n, n_in, n // 2 + 1 if is_onesided else n)
    return (gt.asarray(f(angles).astype(dtype), device=device) for f in (np.cos, np.sin))


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
    return y / n if inverse else y


def _real_inverse(x, n):
    """Return the real numbers whose transform begins with x, its first half."""
    x = x[..., : n // 2 + 1, :]
    real, imaginary = _parts(x)
    count = x.shape[-2]
    weights = np.full((count, 1), 2.0)
    weights[0] = 1
    if n % 2 == 0 and count == n // 2 + 1:
        weights[-1] = 1
    angles = _angles(n, count, n)
    cosines, sines = (
        gt.asarray((weights * f(angles) / n).astype(x.dtype), device=x.device)
        for f in (np.cos, np.sin)
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
    places = np.arange(count)[:, None] * step + np.arange(n)
    frames = gt.take(x, gt.asarray(places, device=x.device), 1)
    if window is not None:
        frames = frames * gt.reshape(window, (-1, 1))
    is_onesided = bool(onesided) and x.shape[-1] == 1
    return transform(frames, n, is_onesided, False)
