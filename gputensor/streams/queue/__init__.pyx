# cython: auto_pickle=False
# The objects of users: devices, streams, events, and records of uses of memory.

cimport cython
from cpython.object cimport PyObject
from cpython.ref cimport Py_CLEAR, Py_INCREF
from libc.stdint cimport uint64_t

import time
from ctypes import c_void_p

from gputensor._alloc.allocator cimport allocator_synchronize
from gputensor._alloc.core cimport stream_own
from gputensor._driver.host cimport section_begin, section_end
from gputensor._driver.registry cimport (
    Slot, device_generation, device_slot, driver_get, register_slot, slots_synchronize,
    stream_captures,
)
from gputensor._driver.table cimport (
    EVENT_INTERPROCESS, EVENT_TIMING, HOST_DEVICE, HOST_DEVICES, IPC_HANDLE_NBYTES, MAX_DEVICES,
    STATUS_NOT_READY, STATUS_OK, Driver, status_t,
)
from gputensor.streams.order cimport (
    NO_DEVICE, Mark, UseLog, capture_joined, capture_joining, captures_active, current_device,
    current_handle, current_stream_object, current_tracer, device_text, enter_device, enter_stream,
    event_return, event_take, graph_stream_made, graph_stream_open, is_tracing, leave,
    make_device_current, make_stream_current, order_check_host, order_check_host_all,
    order_check_host_event, order_check_recorded, order_check_waits, order_is_checked, order_read,
    order_write, parse_device, raise_closed, raise_for_order, resolve_device, stream_wait_stream,
    use_log_drop, use_log_init, wait_begun, wait_succeeded, wait_succeeded_for_all,
)

from gputensor.errors import Described, DeviceError, argument_error, raise_for_status

include "device_number.pxi"
include "device.pxi"
include "handles.pxi"
include "null_stream.pxi"
include "stream.pxi"
include "event.pxi"
include "uses.pxi"
include "slot.pxi"
