"""Window functions of signal processing: vectors that fall off towards both ends."""

import math
import operator

from gputensor._arrays.dtypes import float32, float64
from gputensor.errors import float_argument, int_argument
from gputensor.tensor import functions as fn
from gputensor.tensor.interop import astype
from gputensor.tensor.manipulation import arange, ones

__all__ = [
    "bartlett", "bartlett_window", "blackman", "blackman_window", "hamming", "hamming_window",
    "hann_window", "hanning", "kaiser", "kaiser_window",
]  # fmt: skip


def _places(M, device):
    """Return `M` numbers from 0 to 1 in float64, or None if there are fewer than two."""
    count = int_argument("window: number of points", M)
    if count < 2:
        return None
    return fn.divide(arange(count, dtype=float64, device=device), count - 1)


def _made(M, values, dtype, device):
    dtype = float32 if dtype is None else dtype
    if values is None:
        return ones(max(operator.index(M), 0), dtype, device=device)
    return astype(values, dtype, copy=False)


def _cosines(M, factors, dtype, device):
    """Return the sum of cosines with 0, 1, ... periods, each times its factor."""
    at = _places(M, device)
    if at is None:
        return _made(M, None, dtype, device)
    total = fn.add(fn.multiply(at, 0), factors[0])
    for turns, factor in enumerate(factors[1:], 1):
        wave = fn.cos(fn.multiply(at, 2 * math.pi * turns))
        total = fn.add(total, fn.multiply(wave, factor))
    return _made(M, total, dtype, device)


def hanning(M, /, *, dtype=None, device=None):
    """Return the Hann window of `M` points: ``0.5 - 0.5 cos``.

    >>> hanning(3, device="host").tolist()
    [0.0, 1.0, 0.0]
    """
    return _cosines(M, (0.5, -0.5), dtype, device)


def hamming(M, /, *, dtype=None, device=None):
    """Return the Hamming window of `M` points: ``0.54 - 0.46 cos``.

    >>> hamming(3, dtype="float64", device="host").round(2).tolist()
    [0.08, 1.0, 0.08]
    """
    return _cosines(M, (0.54, -0.46), dtype, device)


def blackman(M, /, *, dtype=None, device=None):
    """Return the Blackman window of `M` points: 0.42, minus and plus cosines of 1 and 2 periods.

    >>> (blackman(3, device="host").round(3) + 0.0).tolist()
    [0.0, 1.0, 0.0]
    """
    return _cosines(M, (0.42, -0.5, 0.08), dtype, device)


def bartlett(M, /, *, dtype=None, device=None):
    """Return the Bartlett window of `M` points: a triangle, 0 at both ends.

    >>> bartlett(5, device="host").tolist()
    [0.0, 0.5, 1.0, 0.5, 0.0]
    """
    at = _places(M, device)
    if at is not None:
        at = fn.subtract(1, fn.abs(fn.subtract(fn.multiply(at, 2), 1)))
    return _made(M, at, dtype, device)


def kaiser(M, beta, /, *, dtype=None, device=None):
    """Return the Kaiser window of `M` points, made with Bessel functions; `beta` is its steepness.

    >>> kaiser(3, 0.0, device="host").tolist()
    [1.0, 1.0, 1.0]
    """
    at = _places(M, device)
    if at is not None:
        at = fn.subtract(fn.multiply(at, 2), 1)
        inside = fn.sqrt(fn.maximum(fn.subtract(1, fn.square(at)), 0))
        beta = float_argument("kaiser: beta", beta)
        total = fn.i0(fn.multiply(ones((), float64, device=device), beta))
        at = fn.divide(fn.i0(fn.multiply(inside, beta)), total)
    return _made(M, at, dtype, device)


def _window(name, function, title):
    def window(window_length, periodic=True, *, dtype=None, device=None):
        count = int_argument(f"{name}: window_length", window_length)
        if not periodic or count < 2:
            return function(count, dtype=dtype, device=device)
        return function(count + 1, dtype=dtype, device=device)[:-1]

    window.__name__ = window.__qualname__ = name
    window.__doc__ = f"""Return the {title} window of some points, as PyTorch: one period.

    Without `periodic` it ends as it begins, as that of :func:`{function.__name__}`.

    >>> bool((gt.{name}(4, device="host") == gt.{function.__name__}(5, device="host")[:4]).all())
    True
    """
    return window


bartlett_window = _window("bartlett_window", bartlett, "Bartlett")
blackman_window = _window("blackman_window", blackman, "Blackman")
hamming_window = _window("hamming_window", hamming, "Hamming")
hann_window = _window("hann_window", hanning, "Hann")


def kaiser_window(window_length, periodic=True, beta=12.0, *, dtype=None, device=None):
    """Return the Kaiser window of some points, as PyTorch: one period; see :func:`kaiser`.

    >>> kaiser_window(2, beta=0.0, device="host").tolist()
    [1.0, 1.0]
    """
    count = int_argument("kaiser_window: window_length", window_length)
    if not periodic or count < 2:
        return kaiser(count, beta, dtype=dtype, device=device)
    return kaiser(count + 1, beta, dtype=dtype, device=device)[:-1]
