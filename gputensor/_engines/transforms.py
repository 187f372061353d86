"""Discrete Fourier transforms: pocketfft by NumPy, cuFFT by CuPy."""

from gputensor._engines.engine import Engine

__all__ = ["fft"]


@Engine
def fft(module, name, lengths, axes, norm, out, x):
    """`name` is a function of the module's ``fft``, `lengths` and `axes` its second arguments."""
    out[...] = getattr(module.fft, name)(x, lengths, axes, norm)
