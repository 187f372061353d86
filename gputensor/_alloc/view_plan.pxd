# Which free bytes a view could serve a request from, and whether that is worth its mappings.
# Needs the device lock, makes no driver call.

from libc.stdint cimport uint64_t

from gputensor._alloc.model cimport Block, BlockPool, DeviceAllocator, Page, View

cdef enum:
    PLAN_PIECES = 512

cdef enum:                      # what a request may do to get a view
    VIEW_IF_WORTH = 0
    VIEW_OF_FREE = 1            # whatever it costs, but without memory of the driver
    VIEW_AND_GROW = 2           # whatever it costs, with new pages for what is missing

# Free bytes of one page: a run inside its home tile.
cdef struct Piece:
    Page* page
    Block* tile
    uint64_t start              # home address
    size_t nbytes

cdef struct Plan:
    View* view                  # the view to use or to extend; NULL: a new one
    int first                   # pieces before this one are mapped in the view already
    int count
    size_t offset               # of the first byte in the view
    size_t missing              # bytes for which new pages are needed at the end
    bint is_noted               # the pages know what of them is free
    Piece pieces[512]

# A run of free bytes in a view, already mapped. Costs nothing.
cdef bint plan_reuse(DeviceAllocator* a, BlockPool* pool, uint64_t stream, size_t nbytes,
                     Plan* plan) noexcept nogil
# After plan_reuse found nothing, with its plan: pages to map behind a view's end, or into a new
# view if one `may_begin`. False: growing is the better choice, or no view is possible.
cdef bint plan_stitch(DeviceAllocator* a, BlockPool* pool, uint64_t stream, size_t nbytes,
                      size_t grow_need, int effort, bint may_begin, Plan* plan) noexcept nogil
