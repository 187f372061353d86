# Sessions: the state, arena and bindings of one caller, and the way of a call from its arguments
# to queued work.

cimport cython
from libc.stdint cimport int64_t, uint8_t, uint64_t
from libc.string cimport memcpy, memset

from gputensor._arrays cimport DT_UINT8, dtype_itemsize
from gputensor._kernels.launch cimport CallOperand, host_call, host_view
from gputensor.streams.order cimport (
    current_handle, device_text, resolve_device,
)
from gputensor.streams.queue cimport device_object
from gputensor.tensor.core cimport (
    MAX_SIZE, Tensor, copied, copy_into, empty_tensor, fill_with, view_tensor, work_begin, work_end,
)

import numpy as np

from gputensor._arrays.element_types import DTYPES
from gputensor.errors import Described, argument_error

include "operands.pxi"
include "bound.pxi"
include "session.pxi"
