# The current stream of a thread, events that order work, captures in flight, and the order between
# uses of one piece of memory.

from cpython.object cimport PyObject
from cpython.ref cimport Py_INCREF, Py_XDECREF, Py_XINCREF
from libc.stdint cimport uint64_t
from libc.stdlib cimport calloc, free, malloc, realloc
from libcpp.vector cimport vector

import os
import sys
import threading

from gputensor._alloc.allocator cimport (
    allocator_record_stream, pool_begin, pool_end, pool_release_capture,
)
from gputensor._alloc.core cimport Block
from gputensor._alloc.model cimport PoolHold
from gputensor._driver.host cimport section_pay
from gputensor._driver.registry cimport (
    Slot, device_slot, driver_get, driver_open, open_devices, register_slot,
)
from gputensor._driver.table cimport (
    HOST_DEVICE, HOST_DEVICES, MAX_DEVICES, STATUS_NOT_READY, STATUS_OK, STATUS_OUT_OF_MEMORY,
    Driver, status_t,
)

from gputensor._driver.registry import cuda_device_count
from gputensor.errors import DeviceError, UnorderedAccessError, argument_error, raise_for_status

include "current.pxi"
include "traces.pxi"
include "event_pool.pxi"
include "marks.pxi"
include "graph_streams.pxi"
include "waited.pxi"
include "capture.pxi"
include "graph_memory.pxi"
include "check.pxi"
include "ordering.pxi"
include "slot.pxi"
