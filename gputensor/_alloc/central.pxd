# Allocation under the device lock: what thread caches fall back to.

from libc.stdint cimport uint64_t

from gputensor._alloc.model cimport Block, BlockPool, DeviceAllocator
from gputensor._driver.table cimport status_t

# The size that a request is served with: a multiple of UNIT, or a division of a power of two.
cdef size_t round_size(DeviceAllocator* a, size_t nbytes) noexcept nogil
# From what the pools hold; NULL when the request misses. Makes no driver call but event queries.
cdef Block* central_take(DeviceAllocator* a, size_t nbytes, size_t rounded,
                         uint64_t stream) noexcept nogil
# After a miss: the ladder. NULL and a status when every rung failed.
cdef Block* central_miss(DeviceAllocator* a, size_t nbytes, size_t rounded, uint64_t stream,
                         status_t* status) noexcept nogil
cdef void central_free(DeviceAllocator* a, Block* block) noexcept nogil
