# The functions of _alloc/grow for other rooms. Called with the device lock, which all but the first
# three drop for calls of the driver; uncached_malloc and uncached_free take it themselves.

from libc.stdint cimport uint64_t

from gputensor._alloc.model cimport Block, BlockPool, DeviceAllocator, PrivatePool
from gputensor._driver.table cimport status_t

# A request that its pool could not serve, on its way through the steps of a miss.
cdef struct Request:
    BlockPool* pool
    uint64_t stream
    size_t nbytes               # a multiple of UNIT
    bint alone                  # its block joins no neighbour
    status_t status             # of the last step that requested memory
    # The place where the pool grows for it, once it was found; steps that drop the lock or take
    # tiles of the pool forget it. `lead` is the free block before the hole, or NULL.
    bint is_placed
    Block* hole
    Block* lead
    size_t need                 # bytes to map, a multiple of the granularity

cdef Request request_for(BlockPool* pool, uint64_t stream, size_t nbytes) noexcept nogil
# The least that a request would add to the reserved bytes if no pages moved.
cdef size_t growth_need(DeviceAllocator* a, Request* request) noexcept nogil
# throw_on_cudamalloc_oom: whether growth for the request would exceed the limit of reserved bytes.
cdef bint miss_refuses(DeviceAllocator* a, Request* request) noexcept nogil
# A HELD block for `nbytes` (rounded), or NULL and the status of the last step.
cdef Block* miss_serve(DeviceAllocator* a, BlockPool* pool, uint64_t stream, size_t nbytes,
                       status_t* status) noexcept nogil
# Releases everything that is free and done: pages, plain segments, empty address space.
cdef size_t release_all(DeviceAllocator* a) noexcept nogil
# Called before a capture, after a wait for the device, while no other capture is under way.
cdef void collect_for_capture(DeviceAllocator* a) noexcept nogil
# Waits for all streams of the device, so that every free block is done.
cdef void synchronize_all(DeviceAllocator* a) noexcept nogil

# Requests that bypass the pools: caching turned off, or backend:cudaMallocAsync.
cdef Block* uncached_malloc(DeviceAllocator* a, size_t nbytes, size_t rounded, uint64_t stream,
                            status_t* status) noexcept nogil
# Returns memory to the driver that it refused before, or that a capture deferred.
cdef void uncached_release(DeviceAllocator* a) noexcept nogil
cdef void uncached_free(DeviceAllocator* a, Block* block) noexcept nogil

# Whether a private pool has neither a holder nor a scope.
cdef bint pool_is_retired(PrivatePool* pool) noexcept nogil
# Frees the record of a retired pool that has no memory and no address space left. No driver call.
cdef void retired_pool_drop(DeviceAllocator* a, PrivatePool* pool) noexcept nogil
# Completed memory goes from all retired pools to the page pool, plain segments to the
# default pool, and address space to the driver. Not for use during a capture.
cdef void retired_pools_settle(DeviceAllocator* a) noexcept nogil
