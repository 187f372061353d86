# The functions of _alloc/grow for other rooms; each section is named after its part.

from libc.stdint cimport uint64_t

from gputensor._alloc.model cimport Block, BlockPool, DeviceAllocator, MemorySource, Page, View
from gputensor._driver.table cimport status_t

# ---- cost

# The cost of a page in microseconds, measured on an H200. The rules for views and for moves between
# pools use it to weigh driver time against memory.

cdef extern from *:
    """
    static const double gt_map_us = 31.5;       // cuMemMap and cuMemSetAccess
    static const double gt_unmap_us = 18.5;
    """
    const double MAP_US "gt_map_us"
    const double UNMAP_US "gt_unmap_us"


# ---- growth

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

# Making a pool larger. Each function is called with the device lock held, drops it for the driver
# calls, and has it again when it returns.

# A HELD block of exactly the request's size (or a little more in plain segments) out of new memory,
# or NULL and a status. The page pool serves first, then the driver.
cdef Block* pool_grow(DeviceAllocator* a, Request* request) noexcept nogil
# Moves whole free pages that the device is done with into the page pool, at least `nbytes` if there
# are that many, out of all pools or of the retired ones; returns the number of bytes moved.
cdef size_t pages_collect(DeviceAllocator* a, size_t nbytes, bint of_retired=*) noexcept nogil
# The least that a request would add to the reserved bytes if no pages moved.
cdef size_t growth_need(DeviceAllocator* a, Request* request) noexcept nogil

# The source of a pool's plain segments in place of the driver; NULL: the driver.
cdef MemorySource* pool_source(BlockPool* pool) noexcept nogil
# Gives the memory of a plain segment back to the driver, or to its source. Without the lock.
cdef status_t plain_give_back(DeviceAllocator* a, MemorySource* source, uint64_t ptr,
                              size_t nbytes, uint64_t stream) noexcept nogil


# ---- page_moves

# Moving free pages from pool to pool before a pool grows.

# Moves whole free pages of other pools into the page pool, as many as the request needs and as the
# bound on driver time allows. Needs the device lock, and drops it; not for use during a capture.
cdef void pages_bring(DeviceAllocator* a, Request* request) noexcept nogil


# ---- view

# Views: free pages of several places, mapped side by side a second time. See view.pxi.

cdef enum:                      # what a request may do to get a view
    VIEW_IF_WORTH = 0
    VIEW_OF_FREE = 1            # whatever it costs, but without memory of the driver
    VIEW_AND_GROW = 2           # whatever it costs, with new pages for what is missing

# Needs the device lock, which it may give up. A HELD block that is a view, or NULL when a view is
# not possible, or not worth its driver calls with an `effort` of VIEW_IF_WORTH.
cdef Block* view_open(DeviceAllocator* a, Request* request, int effort) noexcept nogil
# A view's block is free again: its home tiles return to their pools, its mappings are kept.
cdef void view_close(DeviceAllocator* a, Block* block) noexcept nogil
# Sets the state of the home tiles of a view's block.
cdef void view_show(Block* block, int state) noexcept nogil
# Unmaps and forgets all unused views that the device is done with.
cdef void views_drop_idle(DeviceAllocator* a) noexcept nogil
