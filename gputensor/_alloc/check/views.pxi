"""Checks the views: each maps the pages it lists, and its blocks have the bytes of their parts.

A thread that creates, extends or drops a view drops the lock and registers in `in_flight`; only
while no thread does are all views in the list. The device lock is held and the caches are stopped.
"""

cdef inline uint64_t _overlap(uint64_t start, uint64_t end, uint64_t other_start,
                              uint64_t other_end) noexcept nogil:
    start = start if start > other_start else other_start
    end = end if end < other_end else other_end
    return end - start if start < end else 0


# The bytes of page `i` that a block covers, by home address; the same address twice: none.
cdef inline void _range_at_home(View* view, Block* block, int i, uint64_t va, uint64_t* start,
                                uint64_t* end) noexcept nogil:
    cdef Page* page = view.pages[i]
    cdef uint64_t block_end = block.ptr + block.nbytes
    start[0] = va if va > block.ptr else block.ptr
    end[0] = va + page.nbytes if va + page.nbytes < block_end else block_end
    if start[0] >= end[0]:
        start[0] = end[0] = page.va
        return
    start[0] += page.va - va
    end[0] += page.va - va


# How many of the bytes [start, end) of a segment the block's pages have at home.
cdef uint64_t _covered(View* view, Block* block, uint64_t start, uint64_t end) noexcept nogil:
    cdef uint64_t va = view.va
    cdef uint64_t home, home_end
    cdef uint64_t covered = 0
    cdef int i
    for i in range(view.page_count):
        _range_at_home(view, block, i, va, &home, &home_end)
        covered += _overlap(start, end, home, home_end)
        va += view.pages[i].nbytes
    return covered


# Whether two of the block's pages share a byte at home.
cdef bint _is_twice(View* view, Block* block) noexcept nogil:
    cdef uint64_t va = view.va
    cdef uint64_t start, end
    cdef int i
    for i in range(view.page_count):
        _range_at_home(view, block, i, va, &start, &end)
        if _covered(view, block, start, end) != end - start:
            return True
        va += view.pages[i].nbytes
    return False


# The block's bytes at home, none of them twice, are as many as those of its parts, none of which
# overlap; and they cover each part. So they are its parts, each once.
cdef void _check_block(Walk* walk, View* view, Block* block) noexcept nogil:
    cdef Block* tile
    cdef Block* other
    cdef uint64_t nbytes = 0
    cdef bint is_right = not _is_twice(view, block)
    if (block.view != view or block.is_part or block.kind != POOL_LARGE
            or (block.state != BLOCK_ALLOCATED and block.state != BLOCK_PENDING)
            or (block.state == BLOCK_ALLOCATED) != (block.requested > 0)):
        gt_fault(walk.faults, "block %#lx+%zu of a view: wrong view or state (%d)",
                 block.ptr, block.nbytes, block.state)
    for tile in linked(block.parts):
        if not tile.is_part or tile.state != block.state:
            gt_fault(walk.faults, "block %#lx+%zu of a view: its part at %#lx has state %d",
                     block.ptr, block.nbytes, tile.ptr, tile.state)
        if _covered(view, block, tile.ptr, tile.ptr + tile.nbytes) != tile.nbytes:
            is_right = False
        for other in linked(tile.link_next):
            if _overlap(tile.ptr, tile.ptr + tile.nbytes, other.ptr, other.ptr + other.nbytes):
                is_right = False
        nbytes += tile.nbytes
    if (not is_right or nbytes != block.nbytes or block.ptr < view.va
            or block.ptr + block.nbytes > view.va + view.nbytes):
        gt_fault(walk.faults, "block %#lx+%zu of a view: its parts are not what is mapped there",
                 block.ptr, block.nbytes)


cdef void _check_view(Walk* walk, View* view, int64_t* nbytes) noexcept nogil:
    cdef Block* block
    cdef size_t mapped = 0
    cdef int count = view.is_growing
    cdef int i
    for i in range(view.page_count):
        mapped += view.pages[i].nbytes
        view.pages[i].views_found += 1
        if view.pages[i].va == 0:
            gt_fault(walk.faults, "a page of view %#lx has no home", view.va)
    if mapped != view.nbytes or view.nbytes > view.range_nbytes:
        gt_fault(walk.faults, "view %#lx: its pages have %zu bytes, mapped are %zu",
                 view.va, mapped, view.nbytes)
    for block in each(view.blocks):
        count += 1
        nbytes[0] += block.nbytes
        _check_block(walk, view, block)
        block_count(walk, block)
    if count != view.use_count:
        gt_fault(walk.faults, "view %#lx: %d uses, counted %d", view.va, count,
                 view.use_count)


# Each page counts the views that map it; those that a thread is dropping are not in the list.
cdef void _check_counts(DeviceAllocator* a, Walk* walk, Segment* segment) noexcept nogil:
    cdef size_t cell
    for cell in range(segment.nbytes // a.granularity):
        page = segment.pages[cell]
        if page == NULL:
            continue
        if (page.view_count < page.views_found
                or (a.in_flight == 0 and page.view_count != page.views_found)):
            gt_fault(walk.faults, "the page at %#lx is in %d views and counts %d",
                     page.va, page.views_found, page.view_count)


# Invariants 7 and 8 of DESIGN.md. Adds the blocks in views to the sums.
cdef void views_check(DeviceAllocator* a, Walk* walk) noexcept nogil:
    cdef View* view
    cdef Segment* segment
    cdef int64_t nbytes = 0
    cdef int listed = 0
    for view in each(a.views):
        listed += 1
        _check_view(walk, view, &nbytes)
    if listed > a.view_limit or (a.in_flight == 0 and listed != a.view_count):
        gt_fault(walk.faults, "%d views in the list, %d counted of %d", listed, a.view_count,
                 a.view_limit)
    for segment in each(a.pools[POOL_LARGE].segments):
        if segment.is_virtual:
            _check_counts(a, walk, segment)
    figures_check(walk, "bytes of parts and of blocks in views", walk.part_nbytes, nbytes)
