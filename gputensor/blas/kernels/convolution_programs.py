"""The programs of convolutions: what is defined in front of each ``.cuh`` file, by variant."""

from gputensor._arrays.element_types import DTYPES
from gputensor._kernels.programs import FINISHES
from gputensor.blas.kernels.programs import program_of

__all__ = ["plain"]


def _types(dtype, activation):
    element = DTYPES[dtype]
    return {
        "ELEMENT": element.cuda,
        "ARITHMETIC": element.compute,
        "ACTIVATION": FINISHES[activation],
    }


def plain(dtype, activation, columns, along_pixels):
    """Return the program of convolution in plain arithmetic.

    `dtype` is a code, `activation` a number; a thread has `columns` outputs of four pixels.

    >>> ("TN", 4) in plain(11, 0, 4, False).defines
    True
    """
    defines = _types(dtype, activation) | {"TN": columns, "ALONG_PIXELS": int(along_pixels)}
    return program_of("convolution/plain.cuh", defines)
