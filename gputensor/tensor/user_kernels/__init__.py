"""Kernels of the user's program, with CuPy's arguments.

The source is CUDA C++. NVRTC compiles it at its first launch on a device, and the library's disk
cache keeps it. A launch is on the current stream, after the earlier uses of its operands. The
library launches kernels with one struct of parameters, so a small generated kernel unpacks it and
calls the user's function; arguments are converted as in a C++ call. On host devices a launch
raises, because they cannot run CUDA C++.
"""

from gputensor.tensor.user_kernels.elementwise import ElementwiseKernel
from gputensor.tensor.user_kernels.raw import RawKernel, RawModule
from gputensor.tensor.user_kernels.reduction import ReductionKernel

__all__ = ["ElementwiseKernel", "RawKernel", "RawModule", "ReductionKernel"]
