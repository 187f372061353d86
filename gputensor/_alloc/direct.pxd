# Requests that bypass the pools: caching turned off, or backend:cudaMallocAsync.

from libc.stdint cimport uint64_t

from gputensor._alloc.model cimport Block, DeviceAllocator
from gputensor._driver.table cimport status_t

cdef Block* direct_malloc(DeviceAllocator* a, size_t nbytes, size_t rounded, uint64_t stream,
                          status_t* status) noexcept nogil
cdef void direct_free(DeviceAllocator* a, Block* block) noexcept nogil
