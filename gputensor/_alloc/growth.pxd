# Making a pool larger. Each function is called with the device lock held, gives it up for the
# driver calls, and has it again when it returns.

from libc.stdint cimport uint64_t

from gputensor._alloc.model cimport Block, BlockPool, DeviceAllocator
from gputensor._driver.table cimport status_t

# A HELD block of exactly `nbytes` (or a little more in plain segments) out of new memory, or NULL
# and a status. The page pool serves first, then the driver.
cdef Block* pool_grow(DeviceAllocator* a, BlockPool* pool, uint64_t stream, size_t nbytes,
                      status_t* status) noexcept nogil
# A HELD tile of new pages that begins with a page, of `nbytes` rounded up to whole pages: it joins
# no neighbour. What the page pool lacks is made `as_few` pages as may be, which costs least, or as
# pages of the usual size, which leave least in pieces.
cdef Block* pool_grow_page(DeviceAllocator* a, BlockPool* pool, uint64_t stream, size_t nbytes,
                           bint as_few, status_t* status) noexcept nogil
# Moves whole free pages that the device is done with into the page pool, at least `nbytes` when
# there are as many; gives how many bytes came.
cdef size_t pages_collect(DeviceAllocator* a, size_t nbytes) noexcept nogil
# The same for the dead private pools, as many as there are.
cdef size_t pages_collect_dead(DeviceAllocator* a) noexcept nogil
# Moves detached tiles' pages into the page pool; gives how many bytes came.
cdef size_t pages_take(DeviceAllocator* a, Block* detached) noexcept nogil
# The size of the next page that is made when `need` bytes are still to be mapped.
cdef size_t growth_page(DeviceAllocator* a, BlockPool* pool, size_t need) noexcept nogil
# What a request would add to the reserved bytes at least, without moving pages.
cdef size_t growth_need(DeviceAllocator* a, BlockPool* pool, uint64_t stream,
                        size_t nbytes) noexcept nogil
