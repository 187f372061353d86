# Folds over windows: pooling, and depthwise convolution for blas.

from libc.stdint cimport int32_t, int64_t, uint32_t, uint64_t
from libc.string cimport memset

from gputensor._arrays cimport Operand, dtype_itemsize
from gputensor._driver.registry cimport DEVICE_HOST, device_kind
from gputensor._kernels.launch cimport (
    CallOperand, KernelTable, Launch, call_argument, host_call, kernel_of, launch_init,
    launch_kernel,
)

from gputensor._kernels import programs
from gputensor._kernels.calls import CALLS, POOLINGS, bind
from gputensor._kernels.host import window as host_window

include "window.pxi"
