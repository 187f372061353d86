# The checker: derives every invariant of ../model.pxd again. It shares no code with the allocator
# and changes nothing, so a check cannot hide the fault it looks for.

from libc.stdint cimport int64_t, uint64_t
from libc.string cimport memset
from libcpp.memory cimport make_unique, unique_ptr

import os

from gputensor._alloc.allocator cimport allocator_find
from gputensor._alloc.core cimport (
    GT_IS_CHECKED, block_is_mapped, caches_resume, caches_stop, check_install, device_lock,
    device_unlock,
)
from gputensor._alloc.model cimport (
    BIN_COLUMNS, BIN_ROWS, BLOCK_ALLOCATED, BLOCK_CACHED, BLOCK_FREE, BLOCK_PENDING, BLOCK_UNMAPPED,
    CACHE_SLOTS, FLOWS, FLOW_BYTES, FLOW_COUNT, POOL_LARGE,
    STAT_ACTIVE, STAT_ACTIVE_BYTES, STAT_ALLOCATED_BYTES, STAT_ALLOCATION, STAT_INACTIVE_SPLIT,
    STAT_INACTIVE_SPLIT_BYTES, STAT_REQUESTED_BYTES, STAT_RESERVED_BYTES, STAT_SEGMENT, STAT_TYPES,
    UNIT, Block, BlockPool, Counters, DeviceAllocator, Page, PendingQueue, PoolScope,
    PrivatePool, Segment, StreamBins, StreamUse, ThreadCache, View, each, gt_highest_bit, linked,
)
from gputensor._alloc.pinned cimport pinned_pool_peek

from gputensor._alloc.observe.statistics_names import TYPES

include "tiles.pxi"
include "counts.pxi"
include "views.pxi"
include "checker.pxi"
