# cython: auto_pickle=False
# Captures, and the graphs that they become.

cimport cython
from cpython.object cimport PyObject
from cpython.ref cimport Py_CLEAR, Py_INCREF
from libc.stdint cimport uint64_t
from libcpp.vector cimport vector

import os
import warnings

from gputensor._alloc.allocator cimport (
    allocator_free, allocator_malloc, allocator_open, allocator_settle, pool_begin, pool_end,
    pool_forget_holds, pool_new_id, pool_release_capture, pool_release_holds, pool_thread,
    pool_use_count,
)
from gputensor._alloc.core cimport Block
from gputensor._driver.host cimport section_begin, section_end
from gputensor._driver.registry cimport (
    Slot, device_generation, device_slot, driver_get, register_slot, slots_release,
)
from gputensor._driver.table cimport (
    STATUS_CAPTURE_UNSUPPORTED, STATUS_CAPTURE_WRONG_THREAD, STATUS_OK, Driver, status_t,
)
from gputensor.streams.order cimport (
    GraphStream, Mark, capture_add_condition, capture_add_inner, capture_body_began,
    capture_body_ended, capture_finished, capture_pool, capture_released, capture_started,
    captured_replay_queued, captured_replay_waits, captures_active, current_device, current_handle,
    current_tracer, device_text, enter_stream, graph_peers, graph_peers_done, graph_peers_follow,
    graph_peers_wait, graph_stream_give, graph_stream_open, graph_stream_release,
    graph_stream_retain, is_tracing, leave, mark_before, mark_drop, mark_forget, mark_replay,
    order_check_host, order_check_host_all, order_check_replayed, order_is_checked,
    ordering_is_manual, pool_of_name, raise_closed, raise_for_order, wait_begun, wait_for_held,
    wait_succeeded, wait_succeeded_for_all,
)
from gputensor.streams.queue cimport Stream, after_synchronize, any_stream, stream_argument

from gputensor._alloc.history.pool_names import note_user_pool, pool_pair
from gputensor._alloc.pinned import capture_done
from gputensor.errors import Described, DeviceError, argument_error, raise_for_status
from gputensor.streams.queue import stream_for_captures

include "graph_pools.pxi"
include "graph.pxi"
include "graph_inputs.pxi"
include "graph_context.pxi"
include "conditions.pxi"
