# Calls of engines, and of the registry by name, with tensors. They are ordered and queued on the
# current stream of their device.

from libc.stdint cimport uint64_t

from gputensor._arrays cimport Operand
from gputensor._driver.registry cimport DEVICE_HOST, device_facts, device_kind
from gputensor._kernels.launch cimport (
    CallOperand, Kernel, Launch, call_argument, call_operand, host_call, host_view, is_recorded,
    kernel_allow, launch_init, launch_kernel, recorder_of,
)
from gputensor.streams.order cimport current_handle
from gputensor.tensor.core cimport Tensor, on_one_device, work_begin, work_end

from gputensor._engines import cupy_calls, solvers, transforms
from gputensor._kernels.calls import CALLS, bind, bound_row
from gputensor.errors import Described, argument_error

include "queue.pxi"
include "queue_call.pxi"
include "queue_kernel.pxi"
include "doors.pxi"
