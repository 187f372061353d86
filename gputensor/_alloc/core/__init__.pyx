# Blocks, segments, pages and pools of one device, with the locks and counts that guard them. This
# room finds and returns free memory; when to get more from the driver is decided in grow, and when
# to wait, in miss. The structs and their equations are in ../model.pxd.

from libc.stdint cimport int32_t, int64_t, uint32_t, uint64_t
from libc.stdlib cimport calloc, free, realloc
from libc.string cimport memset

from gputensor._alloc.history cimport HISTORY_SEGMENT_UNMAP, history_record, stack_of_request
from gputensor._alloc.model cimport (
    BLOCK_ALLOCATED, BLOCK_CACHED, BLOCK_FREE, BLOCK_HELD, BLOCK_UNMAPPED, CACHE_SLOTS, EVENT_RING,
    FLOWS, FLOW_BYTES, FLOW_COUNT, FLOW_REQUESTED, FLOW_SPLIT_BYTES, FLOW_SPLIT_COUNT, POOL_LARGE,
    SMALL_LIMIT, STAT_ACTIVE, STAT_ACTIVE_BYTES, STAT_ALLOCATED_BYTES, STAT_ALLOCATION,
    STAT_INACTIVE_SPLIT, STAT_INACTIVE_SPLIT_BYTES, STAT_REQUESTED_BYTES, STAT_RESERVED_BYTES,
    STAT_SEGMENT, UNIT, UNIT_SHIFT, Bins, Block, BlockPool, CacheSlot, Counters, DeviceAllocator,
    Held, Page, PrivatePool, Segment, SpinHeld, Stat, StreamBins, StreamEvent, StreamState,
    ThreadCache, chain_pop, chain_push, each, gt_add, gt_highest_bit, gt_load, gt_lowest_bit,
    gt_spin_lock, gt_spin_unlock, gt_store, link_push, link_remove, row_pop, row_push, row_remove,
)
from gputensor._driver.registry cimport Slot, device_slot, register_slot
from gputensor._driver.table cimport HOST_DEVICES, STATUS_OK, STATUS_OUT_OF_MEMORY, status_t

include "check_hook.pxi"
include "in_flight.pxi"
include "statistics.pxi"
include "progress.pxi"
include "bins.pxi"
include "block.pxi"
include "segment.pxi"
include "pool.pxi"
include "page_pool.pxi"
include "thread_cache.pxi"
include "owned_streams.pxi"
