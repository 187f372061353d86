# What users read of the allocator: statistics, snapshots and summaries. Nothing here changes
# memory.

from cpython.object cimport PyObject
from cpython.ref cimport Py_CLEAR, Py_INCREF, Py_XDECREF
from libc.stdint cimport SIZE_MAX, int32_t, int64_t, uint32_t, uint64_t, uintptr_t
from libc.stdlib cimport free, malloc
from libc.string cimport memset

import gc
import pickle

import numpy as np

from gputensor._alloc.allocator cimport allocator_find, round_size, scope_pools
from gputensor._alloc.config cimport BACKEND_NATIVE
from gputensor._alloc.core cimport (
    bins_below, bins_largest, block_is_mapped, caches_drain, caches_resume, caches_stop,
    check_after, device_lock, device_unlock, progress_is_done, stat_read, stats_allocated,
    stats_settle,
)
from gputensor._alloc.grow cimport growth_need
from gputensor._alloc.history cimport (
    HISTORY_SNAPSHOT, HISTORY_STACK_ALLOC, StackFormatter, history_entries, history_record,
    stack_capture_if, stack_capture_if_enabled,
)
from gputensor._alloc.miss cimport (
    miss_refuses, release_all, retired_pools_settle, synchronize_all, uncached_release,
)
from gputensor._alloc.model cimport (
    BLOCK_ALLOCATED, BLOCK_FREE, BLOCK_PENDING, POOL_LARGE, POOL_SMALL, SMALL_LIMIT,
    STAT_ALLOCATED_BYTES, STAT_REQUESTED_BYTES, STAT_RESERVED_BYTES, STAT_TYPES, Block, BlockPool,
    DeviceAllocator, PrivatePool, Segment, Stat, StreamBins, View, gt_load_int, gt_spin_lock,
    gt_spin_unlock,
)
from gputensor._alloc.order cimport pending_poll
from gputensor._alloc.pinned cimport PinnedPool, PinnedSegment, pinned_pool_peek
from gputensor._driver.registry cimport Slot, device_slot, register_slot
from gputensor._driver.table cimport HOST_DEVICES, MAX_DEVICES

from gputensor._alloc.config import settings as _settings
from gputensor._alloc.history.pool_names import pool_pair
from gputensor._alloc.observe.statistics_names import OVERSIZE_FIRST, SCALAR_FIRST, STATISTICS_KEYS
from gputensor.atomic_file import write_whole

include "snapshot.pxi"
include "report.pxi"
include "pinned_report.pxi"
include "failure_facts.pxi"
include "slot.pxi"
