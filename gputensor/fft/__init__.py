"""Discrete Fourier transforms: the functions of the array API standard and of NumPy.

pocketfft computes on the host device, and cuFFT, through CuPy, on CUDA devices. Tensors of single
precision are transformed in single precision; bool, integers and 16-bit floats become float32.

>>> import gputensor as gt
>>> fft(gt.asarray([1.0, 0.0], device="host")).tolist()
[(1+0j), (1+0j)]
"""

import sys

from gputensor.fft.frequencies import fftfreq, fftshift, ifftshift, rfftfreq
from gputensor.fft.transforms import (
    fft,
    fft2,
    fftn,
    hfft,
    hfft2,
    hfftn,
    ifft,
    ifft2,
    ifftn,
    ihfft,
    ihfft2,
    ihfftn,
    irfft,
    irfft2,
    irfftn,
    rfft,
    rfft2,
    rfftn,
)
from gputensor.tensor.parameter_names import TRANSFORM_OPTIONS, TRANSFORMS, given_names

__all__ = [
    "fft", "fft2", "fftfreq", "fftn", "fftshift", "hfft", "hfft2", "hfftn", "ifft", "ifft2",
    "ifftn", "ifftshift", "ihfft", "ihfft2", "ihfftn", "irfft", "irfft2", "irfftn", "rfft",
    "rfft2", "rfftfreq", "rfftn",
]  # fmt: skip

given_names(sys.modules[__name__], TRANSFORMS, TRANSFORM_OPTIONS)


def __dir__():
    return sorted(__all__)
