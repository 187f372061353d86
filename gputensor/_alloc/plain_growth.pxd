# Growth by plain segments. Needs the device lock; given up for the driver call.

from libc.stdint cimport uint64_t

from gputensor._alloc.model cimport Block, BlockPool, DeviceAllocator
from gputensor._driver.table cimport status_t

# The size of the segment that a request makes.
cdef size_t plain_nbytes(DeviceAllocator* a, BlockPool* pool, size_t nbytes) noexcept nogil
# A HELD block of `nbytes`, or a little more, in a segment that the pool did not have, or NULL and a
# status.
cdef Block* plain_grow(DeviceAllocator* a, BlockPool* pool, uint64_t stream, size_t nbytes,
                       status_t* status) noexcept nogil
