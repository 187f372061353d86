"""Segments: their records, their holes, and the pages that back them.

A virtual segment reserves address space for as much as the device has and is tiled by blocks from
its first byte to its last, mapped or not; holes are UNMAPPED tiles. The page map has one cell for
each granule: the page that begins there, so that the pages inside a tile are found by walking
cells. A plain segment is the memory of one driver call; it has no holes and no pages.
"""

# Whether a tile, when free, keeps its segment from going back to the driver. Tiles of virtual
# segments never do, since pages go back one by one: as in PyTorch, they are not inactive splits.
cdef inline bint block_keeps_segment(Block* block) noexcept nogil:
    return not block.segment.is_virtual and (block.previous != NULL or block.next != NULL)


cdef Segment* segment_new(BlockPool* pool, uint64_t va, size_t nbytes, bint is_virtual,
                          uint64_t stream, size_t granularity) noexcept nogil:
    segment = <Segment*>calloc(1, sizeof(Segment))
    block = block_new()
    if segment != NULL and is_virtual:
        segment.pages = <Page**>lazy_new(nbytes // granularity * sizeof(Page*))
    if segment == NULL or block == NULL or (is_virtual and segment.pages == NULL):
        block_drop(block)
        free(segment)
        return NULL
    segment.va = va
    segment.nbytes = nbytes
    segment.mapped = 0 if is_virtual else nbytes
    segment.is_virtual = is_virtual
    segment.stream = stream
    segment.stack = stack_of_request()
    segment.first = block
    segment.pool = pool
    row_push(&pool.segments, segment)
    block.ptr = va
    block.nbytes = nbytes
    block.stream = stream
    block.device = pool.allocator.device
    block.kind = pool.kind
    block.segment = segment
    block.pool = pool
    if is_virtual:
        block.state = BLOCK_UNMAPPED
        hole_insert(block)
    else:
        block.state = BLOCK_HELD
    return segment


cdef void segment_drop(Segment* segment) noexcept nogil:
    block = segment.first
    while block != NULL:
        following = block.next
        block_drop(block)
        block = following
    row_remove(&segment.pool.segments, segment)
    if segment.is_virtual:
        munmap(segment.pages, segment.nbytes // segment.pool.allocator.granularity * sizeof(Page*))
    free(segment)


cdef bint segment_is_free(Segment* segment) noexcept nogil:
    return (not segment.is_virtual and segment.first.state == BLOCK_FREE
            and segment.first.nbytes == segment.nbytes)


cdef bint segment_is_done(Segment* segment) noexcept nogil:
    return segment_is_free(segment) and progress_is_done(
        pool_bins(segment.pool, segment.first.stream).state, segment.first.epoch)


cdef Block* segment_move(Segment* segment, BlockPool* pool) noexcept nogil:
    cdef BlockPool* source = segment.pool
    pool_remove(source, segment.first)
    segment.first.state = BLOCK_HELD
    row_remove(&source.segments, segment)
    row_push(&pool.segments, segment)
    segment.pool = segment.first.pool = pool
    account_reserved_moved(pool.allocator, source, pool, <int64_t>segment.nbytes)
    return segment.first


cdef void hole_insert(Block* block) noexcept nogil:
    block.state = BLOCK_UNMAPPED
    if block.next != NULL and gt_load(&block.next.state) == BLOCK_UNMAPPED:
        link_remove(&block.segment.holes, block.next)
        block_join_next(block)
    if block.previous != NULL and gt_load(&block.previous.state) == BLOCK_UNMAPPED:
        block_join_next(block.previous)         # the hole before is in the list already
        return
    link_push(&block.segment.holes, block)


cdef void segment_put_page(Segment* segment, Page* page, uint64_t va) noexcept nogil:
    page.va = va
    segment.pages[(va - segment.va) // segment.pool.allocator.granularity] = page
    segment.mapped += page.nbytes


cdef Page* segment_take_page(Segment* segment, uint64_t va) noexcept nogil:
    cell = &segment.pages[(va - segment.va) // segment.pool.allocator.granularity]
    page = cell[0]
    cell[0] = NULL
    segment.mapped -= page.nbytes
    page.va = 0
    return page


cdef bint block_whole_pages(DeviceAllocator* a, Block* block, uint64_t* start,
                            uint64_t* end) noexcept nogil:
    cdef Segment* segment = block.segment
    cdef size_t granule = a.granularity
    cdef uint64_t cell, last
    if not segment.is_virtual or block.nbytes < granule:
        return False
    cell = (block.ptr - segment.va + granule - 1) // granule
    last = (block.ptr + block.nbytes - segment.va) // granule
    # A page that began before the block ends inside it: skip to the first that begins inside.
    while cell < last and segment.pages[cell] == NULL:
        cell += 1
    start[0] = end[0] = segment.va + cell * granule
    while cell < last:
        page = segment.pages[cell]
        if page == NULL or end[0] + page.nbytes > block.ptr + block.nbytes:
            break
        if page.view_count == 0:
            end[0] += page.nbytes
        elif end[0] > start[0]:
            break
        else:                       # mapped in a view as well: it stays, look behind it
            start[0] += page.nbytes
            end[0] = start[0]
        cell += page.nbytes // granule
    return end[0] > start[0]
