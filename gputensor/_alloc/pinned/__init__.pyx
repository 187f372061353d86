# Pinned host memory: pools of blocks that a GPU reads and writes directly, reused in stream order.

from cpython.buffer cimport (
    PyBUF_WRITABLE, PyBuffer_FillInfo, PyBuffer_Release, PyObject_GetBuffer,
)
from libc.stdint cimport int64_t, uint64_t, uintptr_t
from libc.stdlib cimport calloc, free

from gputensor._alloc.allocator cimport allocator_find
from gputensor._alloc.config cimport AllocatorConfig, settings_to_struct
from gputensor._alloc.core cimport *
from gputensor._alloc.history cimport (
    HISTORY_SEGMENT_ALLOC, HISTORY_SEGMENT_FREE, HISTORY_STACK_ALLOC, HISTORY_STACK_FREE,
    block_event_alloc, block_event_free, history_enabled, history_segment, stack_capture_if,
    stack_for_request, stack_of_request,
)
from gputensor._alloc.model cimport *
from gputensor._alloc.order cimport pending_begin, pending_poll, pending_wait_one, use_add
from gputensor._driver.registry cimport (
    Slot, device_generation, device_slot, driver_get, driver_open, register_slot,
)
from gputensor._driver.table cimport (
    HOST_DEVICES, MAX_DEVICES, STATUS_INVALID_DEVICE, STATUS_INVALID_VALUE, STATUS_OK,
    STATUS_OUT_OF_MEMORY, Driver, status_t,
)

from gputensor._alloc.config import settings as _settings
from gputensor.errors import OutOfMemoryError, amount, raise_for_status

include "pool.pxi"
include "allocator.pxi"
include "memory.pxi"
