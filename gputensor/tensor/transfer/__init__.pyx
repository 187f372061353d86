# Copies between devices and the host, in stream order.

from libc.stdint cimport int64_t, uint64_t
from libc.stdlib cimport calloc, free
from libc.string cimport memcpy

import sys
import warnings

import numpy as np

from gputensor._alloc.core cimport Block
from gputensor._alloc.pinned cimport (
    pinned_free, pinned_holds, pinned_malloc, pinned_use, raise_for_pinned,
)
from gputensor._arrays cimport Operand
from gputensor._driver.registry cimport device_kind, driver_get, stream_captures
from gputensor._driver.table cimport (
    HOST_DEVICE, STATUS_CAPTURE_UNSUPPORTED, STATUS_NOT_READY, STATUS_OK, Driver, status_t,
)
from gputensor._kernels.launch cimport (
    CallOperand, call_operand, is_recorded, raise_pending, recorder_of,
)
from gputensor.streams.order cimport (
    UseLog, current_handle, current_tracer, device_text, event_return, event_take, is_tracing,
    order_check_host, order_is_checked, resolve_device,
    stream_wait_peer, use_log_hold, use_log_release,
)
from gputensor.streams.queue cimport resolve_stream
from gputensor.tensor.core cimport (
    Tensor, contiguous, empty_tensor, storage_check_open, work_begin, work_end,
)

from gputensor._arrays.element_types import DTYPES
from gputensor.errors import argument_error, raise_for_status

include "waits.pxi"
include "peer.pxi"
include "bounce.pxi"
include "host.pxi"
