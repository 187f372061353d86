# How pools get more memory: new pages and segments, pages that move between pools, and views that
# map free pages of several places side by side.

from libc.stdint cimport INT64_MAX, SIZE_MAX, int64_t, uint64_t
from libc.stdlib cimport calloc, free, malloc, realloc

from gputensor._alloc.core cimport (
    account_pool_reserved, account_reserved_moved, account_segment, bins_below, bins_largest,
    block_drop, block_join_next, block_new, block_split, device_lock, device_unlock, hole_insert,
    in_flight_begin, in_flight_end, in_flight_lock, in_flight_unlock, limit_claim, limit_settle,
    page_make, page_pool_take, pages_detach, pages_take, pool_bins, pool_cut, pool_insert,
    pool_insert_all, pool_remove, pool_trim, progress_is_done, segment_is_done, segment_move,
    segment_new, segment_put_page, stat_change,
)
from gputensor._alloc.history cimport (
    HISTORY_SEGMENT_ALLOC, HISTORY_SEGMENT_MAP, history_enabled, history_record, stack_of_request,
    view_event_close, view_event_open,
)
from gputensor._alloc.model cimport (
    BLOCK_ALLOCATED, BLOCK_FREE, BLOCK_HELD, BLOCK_MOVING, MIN_LARGE, POOL_LARGE, POOL_SMALL,
    ROUND_LARGE, SMALL_SEGMENT, STAT_RESERVED_BYTES, Block, BlockPool, DeviceAllocator,
    MemorySource, Page, PrivatePool, Segment, StreamBins, StreamState, View, chain_push, each,
    gt_load, link_remove, linked, queue_append, row_pop, row_push, row_remove,
)
from gputensor._driver.table cimport STATUS_OK, STATUS_OUT_OF_MEMORY, Driver, status_t

include "plain_growth.pxi"
include "growth.pxi"
include "page_moves.pxi"
include "view_plan.pxi"
include "view.pxi"
