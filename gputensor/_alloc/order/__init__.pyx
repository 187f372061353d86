# Freed blocks that other streams still use, or that a capture frees: when they may be used again.

from libc.stdint cimport uint64_t, uint8_t
from libc.stdlib cimport calloc, free, malloc, realloc

from gputensor._alloc.core cimport (
    account_pending, device_lock, device_unlock, event_give, event_take, in_flight_begin,
    in_flight_end, pool_give, pool_insert,
)
from gputensor._alloc.grow cimport view_close, view_show
from gputensor._alloc.history cimport block_event_completed
from gputensor._alloc.model cimport (
    BLOCK_HELD, BLOCK_PENDING, Block, BlockPool, CaptureReuse, DeviceAllocator, PendingQueue,
    PoolScope, PrivatePool, StreamUse, chain_pop, chain_push, each, queue_append, row_pop, row_push,
)
from gputensor._driver.table cimport STATUS_OK, STATUS_OUT_OF_MEMORY, Driver, status_t

include "capture_reuse.pxi"
include "deferred_free.pxi"
