# Pinned host memory: pools of blocks that a GPU reads and writes directly, reused in stream order.

from cpython.buffer cimport (
    PyBUF_SIMPLE, PyBuffer_FillInfo, PyBuffer_Release, PyObject_GetBuffer,
)
from libc.stdint cimport int32_t, int64_t, uint32_t, uint64_t, uintptr_t
from libc.stdlib cimport calloc, free, malloc
from libc.string cimport memset

from posix.unistd cimport usleep

from gputensor._alloc.allocator cimport allocator_find
from gputensor._alloc.config cimport AllocatorConfig, config_current, settings_to_struct
from gputensor._alloc.core cimport (
    Block, bins_below, bins_best_fit, bins_insert, bins_largest, bins_remove, block_drop,
    block_join_next, block_new, block_split, stat_change,
)
from gputensor._alloc.history cimport (
    HISTORY_ALLOC, HISTORY_FREE_COMPLETED, HISTORY_FREE_REQUESTED, HISTORY_SEGMENT_ALLOC,
    HISTORY_SEGMENT_FREE, HISTORY_STACK_ALLOC, HISTORY_STACK_FREE, history_record_pinned,
    stack_capture_if,
)
from gputensor._alloc.model cimport (
    BLOCK_ALLOCATED, BLOCK_FREE, BLOCK_PENDING, UNIT, Block, BlockPool, Segment, SpinHeld,
    StreamUse, chain_pop, chain_push, each, gt_load, gt_spin_lock, gt_spin_unlock, gt_store, linked,
    queue_append, queue_push, row_pop, row_push, row_remove,
)
from gputensor._driver.registry cimport (
    Slot, device_generation, device_slot, driver_get, driver_open, register_slot,
)
from gputensor._driver.table cimport (
    HOST_DEVICES, MAX_DEVICES, STATUS_INVALID_DEVICE, STATUS_INVALID_VALUE, STATUS_OK,
    STATUS_OUT_OF_MEMORY, Driver, status_t,
)

from gputensor._alloc.config import settings as _settings
from gputensor.errors import OutOfMemoryError, raise_for_status

include "ranges.pxi"
include "pool.pxi"
include "wait.pxi"
include "allocator.pxi"
include "memory.pxi"
