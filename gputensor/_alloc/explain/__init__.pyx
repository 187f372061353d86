# Why a request failed: facts under the lock, advice by replay, the text of the error.

from libc.stdint cimport SIZE_MAX, uint64_t
from libc.string cimport memset

from gputensor._alloc.allocator cimport allocator_find, round_size, scope_pools
from gputensor._alloc.config cimport BACKEND_NATIVE
from gputensor._alloc.core cimport (
    bins_below, bins_largest, caches_resume, caches_stop, device_lock, device_unlock,
    progress_is_done, stats_settle,
)
from gputensor._alloc.grow cimport growth_need
from gputensor._alloc.miss cimport miss_refuses
from gputensor._alloc.model cimport (
    POOL_LARGE, POOL_SMALL, SMALL_LIMIT, STAT_ALLOCATED_BYTES, STAT_RESERVED_BYTES, Block,
    BlockPool, DeviceAllocator, PrivatePool, Segment, StreamBins,
)

include "facts.pxi"
