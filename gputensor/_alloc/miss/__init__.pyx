# A request that no pool can serve: the steps that free or make memory, in order of their cost, and
# the ways memory goes back to the driver.

from libc.stdint cimport SIZE_MAX, int64_t, uint64_t
from libc.stdlib cimport free

from gputensor._alloc.config cimport BACKEND_ASYNC
from gputensor._alloc.core cimport (
    ATTEMPTS, account_give, account_pool_reserved, account_reserved, account_segment, account_take,
    block_drop, block_map_insert, block_map_remove, block_new, caches_drain, device_lock,
    device_unlock, in_flight_lock, in_flight_others, in_flight_unlock, in_flight_wait, limit_claim,
    limit_settle, page_unmake, pool_clear, pool_gather, pool_insert, pool_remove, pool_take,
    progress_advance, progress_synchronize, segment_drop, segment_is_done, segment_is_free,
    segment_move, segment_new, stat_change,
)
from gputensor._alloc.grow cimport (
    MAP_US, VIEW_AND_GROW, VIEW_IF_WORTH, VIEW_OF_FREE, Request, growth_need, pages_bring,
    pages_collect, plain_give_back, pool_grow, request_for, view_open,
    views_drop_idle,
)
from gputensor._alloc.history cimport (
    HISTORY_SEGMENT_ALLOC, HISTORY_SEGMENT_FREE, history_record, stack_of_request,
)
from gputensor._alloc.model cimport (
    BLOCK_ALLOCATED, BLOCK_FREE, BLOCK_HELD, POOL_LARGE, POOL_SMALL, SMALL_LIMIT,
    STAT_RESERVED_BYTES, Block, BlockPool, DeviceAllocator, Held, Page, PrivatePool, Segment,
    chain_pop, chain_push, each, row_pop, row_push, row_remove,
)
from gputensor._alloc.order cimport capture_reuse_collect, pending_poll, pending_wait_one
from gputensor._driver.table cimport STATUS_OK, STATUS_OUT_OF_MEMORY, Driver, status_t

include "release.pxi"
include "uncached.pxi"
include "retired_pool.pxi"
include "miss.pxi"
