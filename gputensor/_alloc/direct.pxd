# Requests that bypass the pools: caching turned off, or backend:cudaMallocAsync.

from libc.stdint cimport uint64_t

from gputensor._alloc.model cimport Block, DeviceAllocator
from gputensor._driver.table cimport status_t

cdef Block* direct_malloc(DeviceAllocator* a, size_t nbytes, size_t rounded, uint64_t stream,
                          status_t* status) noexcept nogil
# Needs the device lock, which it gives up: asks the driver again to take back what it refused, and
# for the first time what a capture put off.
cdef void direct_release(DeviceAllocator* a) noexcept nogil
cdef void direct_free(DeviceAllocator* a, Block* block) noexcept nogil
