"""Kernels that programs bring along, with CuPy's arguments.

The text is CUDA C++. It is compiled by NVRTC at its first launch on a device, kept in the library's
cache on disk, and launched on the current stream, behind the earlier uses of its operands. The
library launches kernels with one struct of parameters, so a small kernel around the program's
function unpacks it: arguments are converted as C++ converts them in a call. Host devices cannot run
CUDA C++ and say so.
"""

from gputensor.tensor.user_kernels.elementwise import ElementwiseKernel
from gputensor.tensor.user_kernels.raw import RawKernel, RawModule
from gputensor.tensor.user_kernels.reduction import ReductionKernel

__all__ = ["ElementwiseKernel", "RawKernel", "RawModule", "ReductionKernel"]
