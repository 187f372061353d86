# Sessions: the state, arena and bindings of one caller; they turn the arguments of a call into
# queued work.

cimport cython
from libc.stdint cimport int64_t, uint8_t, uint64_t
from libc.string cimport memcmp
from libcpp.vector cimport vector

from gputensor._arrays cimport DT_UINT8
from gputensor._driver.registry cimport device_generation, driver_get
from gputensor._driver.table cimport (
    STATUS_GRAPH_UPDATE_FAILED, STATUS_INVALID_VALUE, STATUS_NOT_SUPPORTED, STATUS_OK, Driver,
    status_t,
)
from gputensor._kernels.launch cimport CallOperand, host_call, host_view, raise_pending
from gputensor.streams.capture cimport CUDAGraph, NodePatches, Span, capture_state
from gputensor.streams.order cimport (
    captures_active, current_handle, current_tracer, device_text, enter_stream, is_tracing, leave,
    mark_replay, resolve_device, use_log_hold, use_log_release,
)
from gputensor.streams.queue cimport Stream, stream_argument
from gputensor.tensor.core cimport Tensor, copied, empty_tensor, work_begin, work_end

import numpy as np

from gputensor._arrays.element_types import DTYPES
from gputensor.errors import (
    Described, DriverError, OutOfMemoryError, argument_error, raise_for_status,
)
from gputensor.streams.capture import Conditions
from gputensor.streams.queue import stream_for_captures

include "operands.pxi"
include "graph.pxi"
include "launches.pxi"
include "bound.pxi"
include "session.pxi"
include "caller.pxi"
