# Segments: ranges of address space and the tiles in them. All functions need the device lock and
# make no driver call; growth.pyx and release.pyx make the calls between them.

from libc.stdint cimport uint64_t

from gputensor._alloc.model cimport (
    BLOCK_MOVING,
    BLOCK_UNMAPPED,
    Block,
    BlockPool,
    DeviceAllocator,
    Page,
    Segment,
    gt_load_byte,
)

# The records of a segment over [va, va + nbytes), one UNMAPPED (virtual) or HELD (plain) tile.
cdef Segment* segment_new(BlockPool* pool, uint64_t va, size_t nbytes, bint is_virtual,
                          uint64_t stream, size_t granularity) noexcept nogil
cdef void segment_drop(Segment* segment) noexcept nogil
# A plain segment of one tile that is in no bin goes to another pool of its kind.
cdef void segment_move(Segment* segment, BlockPool* pool) noexcept nogil

# An UNMAPPED tile joins its UNMAPPED neighbours and the hole list.
cdef void hole_insert(Block* block) noexcept nogil
cdef void hole_remove(Block* block) noexcept nogil

# Writes a page into the segment's map, or takes out the page that starts at an address.
cdef void segment_put_page(Segment* segment, Page* page, uint64_t va) noexcept nogil
cdef Page* segment_take_page(Segment* segment, uint64_t va) noexcept nogil
# The run of whole pages inside a block: its first address and end; False when there is none.
cdef bint block_whole_pages(DeviceAllocator* a, Block* block, uint64_t* start,
                            uint64_t* end) noexcept nogil

cdef inline bint block_is_mapped(Block* block) noexcept nogil:
    cdef int state = gt_load_byte(&block.state)
    return state != BLOCK_UNMAPPED and state != BLOCK_MOVING


# Whether a tile, free, keeps its segment from going back to the driver. Those of virtual segments
# never do, since pages go one by one: as in PyTorch they are no inactive splits.
cdef inline bint block_keeps_segment(Block* block) noexcept nogil:
    return not block.segment.is_virtual and (block.previous != NULL or block.next != NULL)
