# Physical pages: the page pool of a device, and taking free pages out of segments.

from libc.stdint cimport int64_t, uint64_t

from gputensor._alloc.model cimport Block, BlockPool, DeviceAllocator, Page
from gputensor._driver.table cimport status_t

# The page pool. Needs the device lock. take: the largest page of at most `nbytes`, else the
# smallest page larger than it, else NULL.
cdef void page_pool_put(DeviceAllocator* a, Page* page) noexcept nogil
cdef Page* page_pool_take(DeviceAllocator* a, size_t nbytes) noexcept nogil
# Needs the device lock: cuts whole pages that the device is done with out of free blocks, up to
# `nbytes` of them, largest blocks first; the cut tiles are HELD and linked by link_next.
cdef Block* pages_detach(DeviceAllocator* a, size_t nbytes) noexcept nogil
# The same from all pools but one: pages of at most `largest` bytes, at most `count` of them.
cdef Block* pages_detach_elsewhere(DeviceAllocator* a, BlockPool* pool, size_t nbytes,
                                   size_t largest, int64_t count) noexcept nogil
# The same for all such pages of the private pools that are dead.
cdef Block* pages_detach_dead(DeviceAllocator* a) noexcept nogil
# Without the lock: unmaps the detached tiles. Tiles whose unmap failed are left in `failed`.
cdef status_t pages_unmap(DeviceAllocator* a, Block* detached, Block** done,
                          Block** failed) noexcept nogil
# Needs the lock: the unmapped tiles become holes, their pages go to the page pool; failed tiles
# become free blocks again.
cdef void pages_settle(DeviceAllocator* a, Block* done, Block* failed) noexcept nogil
# Without the lock: a new page of `nbytes`. NULL and a status when there is none.
cdef Page* page_make(DeviceAllocator* a, size_t nbytes, status_t* status) noexcept nogil
# Without the lock: gives a page of the pool back to the driver.
cdef status_t page_unmake(DeviceAllocator* a, Page* page) noexcept nogil
