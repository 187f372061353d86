# What happens on a miss, rung by rung. Called with the device lock, which rungs may give up.

from libc.stdint cimport uint64_t

from gputensor._alloc.model cimport Block, BlockPool, DeviceAllocator
from gputensor._driver.table cimport status_t

# A HELD block for `nbytes` (rounded), or NULL and the status of the last rung.
cdef Block* ladder_climb(DeviceAllocator* a, BlockPool* pool, uint64_t stream, size_t nbytes,
                         status_t* status) noexcept nogil
# throw_on_cudamalloc_oom: whether serving the request by growth would pass what may be reserved.
cdef bint ladder_refuses(DeviceAllocator* a, BlockPool* pool, uint64_t stream,
                         size_t nbytes) noexcept nogil
