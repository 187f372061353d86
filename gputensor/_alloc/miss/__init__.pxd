# The functions of _alloc/miss for other rooms; each section is named after its part.

from libc.stdint cimport uint64_t

from gputensor._alloc.grow cimport Request
from gputensor._alloc.model cimport Block, BlockPool, DeviceAllocator, PrivatePool
from gputensor._driver.table cimport status_t

# ---- release

# Giving memory back to the driver. Called with the device lock held; dropped for driver calls.

# Releases everything that is free and done: pages, plain segments, empty address space.
cdef size_t release_all(DeviceAllocator* a) noexcept nogil
# Called before a capture, after a wait for the device, while no other capture is under way.
cdef void collect_for_capture(DeviceAllocator* a) noexcept nogil
# Waits for all streams of the device, so that every free block is done.
cdef void synchronize_all(DeviceAllocator* a) noexcept nogil


# ---- uncached

# Requests that bypass the pools: caching turned off, or backend:cudaMallocAsync.

cdef Block* uncached_malloc(DeviceAllocator* a, size_t nbytes, size_t rounded, uint64_t stream,
                            status_t* status) noexcept nogil
# Needs the device lock, which it drops: returns memory to the driver that it refused before, or
# that a capture deferred.
cdef void uncached_release(DeviceAllocator* a) noexcept nogil
cdef void uncached_free(DeviceAllocator* a, Block* block) noexcept nogil


# ---- retired_pool

# Private pools without a holder: their remaining memory goes to other pools or the driver.
# Called with the device lock.

# Whether a pool has neither a holder nor a scope.
cdef bint pool_is_retired(PrivatePool* pool) noexcept nogil
# Frees the record of a retired pool that has no memory and no address space left. No driver call.
cdef void retired_pool_drop(DeviceAllocator* a, PrivatePool* pool) noexcept nogil
# Completed memory goes from all retired pools to the page pool, plain segments to the
# default pool, and address space to the driver. Drops the lock. Not for use during a capture.
cdef void retired_pools_settle(DeviceAllocator* a) noexcept nogil


# ---- miss

# The steps of a miss. Called with the device lock, which steps may drop.

# A HELD block for `nbytes` (rounded), or NULL and the status of the last step.
cdef Block* miss_serve(DeviceAllocator* a, BlockPool* pool, uint64_t stream, size_t nbytes,
                       status_t* status) noexcept nogil
# throw_on_cudamalloc_oom: whether growth for the request would exceed the limit of reserved bytes.
cdef bint miss_refuses(DeviceAllocator* a, Request* request) noexcept nogil
