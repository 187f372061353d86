"""Growth: address space and pages, with the driver calls outside the lock; plain_growth.pxi else.

A pool of virtual memory has one home segment that all its streams share, as long as its address
space lasts. Growth takes the hole that needs the fewest new bytes: the free block before a hole
counts towards the request. Under the lock the tiles are claimed, so that no other thread counts on
them; pages are gathered and mapped without it; then the new tile joins what was claimed. When a
driver call fails, what was mapped so far stays as free memory, pages that were gathered go to the
page pool, and the claimed tiles go back.

Page sizes: creating and mapping a page costs much the same whatever its size, and a page that is
larger than the need is memory that no request needs. So a page is as large as the reserved bytes so
far, from FIRST_PAGE up to `page_size`: a small program stays small, and a large one pays for few
pages. A need of up to ONE_PAGE times `page_size` is one page, which costs less than several and is
free as a whole when its block is. A small device, or a low limit, is still many pages: a page that
is partly in use can neither move nor serve others, so one that is much of the device ends in
requests that fail though there is memory. For a view, a capture and a device that has no whole page
left, exactly what is needed is made.
"""

cdef enum:
    FIRST_PAGE = 8 << 20
    PAGES_ABOUT = 64            # in a device, or a limit: pages of more than its share are rare

cdef enum:                      # how what is needed is cut into new pages
    BY_PAGES = 0                # whole pages: what the last one has too much is free memory
    AS_NEEDED = 1               # not a byte more

cdef double ONE_PAGE = 2.4

# Creating a page and mapping it: measured on an H200.
cdef double MAKE_US = 41.5
cdef double MAKE_MIB_US = 0.24

# Where a growth happens: `lead` is the free block before the hole, or NULL.
cdef struct Place:
    Block* hole
    Block* lead
    size_t need                 # bytes to map, a multiple of the granularity


cdef inline size_t _round_up(size_t nbytes, size_t step) noexcept nogil:
    return (nbytes + step - 1) // step * step


cdef inline size_t _reserved(DeviceAllocator* a) noexcept nogil:
    return <size_t>gt_load(&a.stats[STAT_RESERVED_BYTES][0].current)    # with or without the lock


cdef inline Block* _usable(Block* neighbour, uint64_t stream) noexcept nogil:
    if (neighbour != NULL and gt_load(&neighbour.state) == BLOCK_FREE
            and neighbour.stream == stream):
        return neighbour
    return NULL


cdef bint _find_place(DeviceAllocator* a, BlockPool* pool, uint64_t stream, size_t nbytes,
                      bint alone, Place* best) noexcept nogil:
    cdef Segment* segment
    cdef Block* hole
    cdef size_t need
    best.hole = NULL
    for segment in each(pool.segments):
        for hole in linked(segment.holes):
            lead = _usable(hole.previous, stream) if not alone else <Block*>NULL
            need = nbytes
            if lead != NULL:
                need = nbytes - lead.nbytes if lead.nbytes < nbytes else 0
            need = _round_up(need if need > 0 else 1, a.granularity)
            if need <= hole.nbytes and (
                    best.hole == NULL or need < best.need
                    or (need == best.need and hole.ptr < best.hole.ptr)):
                best.hole = hole
                best.lead = lead
                best.need = need
    return best.hole != NULL


# Reserves address space for a new home segment. Gives the lock up for the driver call.
cdef status_t _reserve(DeviceAllocator* a, BlockPool* pool, uint64_t stream,
                       size_t nbytes) noexcept nogil:
    cdef Driver* driver = a.driver
    cdef size_t range_nbytes = _round_up(a.total_nbytes + a.total_nbytes // 8, a.granularity)
    cdef uint64_t va = 0
    cdef status_t status
    if range_nbytes < nbytes:
        return STATUS_OUT_OF_MEMORY             # larger than the device
    device_unlock(a)
    status = driver.va_reserve(driver.self, &va, range_nbytes, a.granularity)
    device_lock(a)
    if status != STATUS_OK:
        return status
    if segment_new(pool, va, range_nbytes, True, stream, a.granularity) == NULL:
        driver.va_release(driver.self, va, range_nbytes)
        return STATUS_OUT_OF_MEMORY
    return STATUS_OK


# The size of the next page when `need` bytes are still to be mapped.
cdef size_t _page_nbytes(DeviceAllocator* a, BlockPool* pool, size_t need,
                         int cut) noexcept nogil:
    cdef size_t room = a.limit_nbytes if a.limit_nbytes < a.total_nbytes else a.total_nbytes
    cdef size_t share = room // PAGES_ABOUT + 1
    cdef size_t usual = a.config.page_size
    cdef size_t one = <size_t>(ONE_PAGE * usual)
    cdef size_t step = _round_up(_reserved(a) + 1, a.granularity)
    if usual > share:
        usual = share
    usual = _round_up(usual, a.granularity)
    share = _round_up(usual + usual // 5 - a.granularity // 2, a.granularity)      # to the nearest
    if one > share and room // PAGES_ABOUT < one:
        one = share
    if cut != BY_PAGES:
        return need if need <= one else usual
    if pool.kind == POOL_SMALL:
        return _round_up(SMALL_SEGMENT, a.granularity)
    if step < FIRST_PAGE:
        step = FIRST_PAGE
    if step > usual:
        step = usual
    if need > one:
        return share
    return need if need > step else step


# Claims the place: its hole is cut to `nbytes` and MOVING, the lead is HELD.
cdef bint _growth_claim(BlockPool* pool, Place* place, size_t nbytes) noexcept nogil:
    link_remove(&place.hole.segment.holes, place.hole)
    place.hole.state = BLOCK_MOVING
    if nbytes < place.hole.nbytes:
        rest = block_split(place.hole, nbytes)
        if rest == NULL:
            hole_insert(place.hole)
            return False
        hole_insert(rest)
    if place.lead != NULL:
        pool_remove(pool, place.lead)
        place.lead.state = BLOCK_HELD
    return True


# Pages of the page pool for a place, and their sum: whole pages that fit, and one larger page at
# the end when that spares asking the driver for one of its size. If not BY_PAGES, of any size.
cdef size_t _pick(DeviceAllocator* a, BlockPool* pool, Place* place, int cut,
                  Page** pages) noexcept nogil:
    cdef size_t left, got = 0
    while got < place.need:
        left = place.need - got
        page = page_pool_take(a, left)
        if page == NULL:
            break
        if page.nbytes > left and (
                got + page.nbytes > place.hole.nbytes
                or (cut == BY_PAGES and page.nbytes > _round_up(
                    _page_nbytes(a, pool, left, BY_PAGES) * 6 // 5, a.granularity))):
            row_push(&a.page_pool, page)
            break
        row_push(pages, page)
        got += page.nbytes
    return got


# Makes pages for the rest. Without the lock.
cdef status_t _make(DeviceAllocator* a, BlockPool* pool, size_t nbytes, int cut, Page** pages,
                    size_t* created, double* made_us) noexcept nogil:
    cdef status_t status = STATUS_OK
    cdef size_t size
    while created[0] < nbytes:
        size = _page_nbytes(a, pool, nbytes - created[0], cut)
        if size > nbytes - created[0]:
            size = nbytes - created[0]
        page = page_make(a, size, &status)
        if page == NULL:
            return status
        row_push(pages, page)
        created[0] += size
        made_us[0] += MAKE_US + MAKE_MIB_US * (size >> 20)
    return STATUS_OK


# Maps pages one after the other from the start of the hole; gives the bytes mapped.
cdef size_t _growth_map(DeviceAllocator* a, Place* place, Page** pages, Page** mapped,
                        status_t* status) noexcept nogil:
    cdef Driver* driver = a.driver
    cdef size_t done = 0
    while pages[0] != NULL and status[0] == STATUS_OK:
        page = pages[0]
        status[0] = driver.page_map(driver.self, place.hole.ptr + done, page.nbytes, page.handle)
        if status[0] == STATUS_OK:
            row_push(mapped, row_pop(pages))
            done += page.nbytes
    return done


# Books the mapped bytes: the first part of the hole becomes a HELD tile.
cdef Block* _commit(DeviceAllocator* a, BlockPool* pool, Place* place, uint64_t stream,
                    size_t done, Page* mapped) noexcept nogil:
    cdef Block* tile = place.hole
    cdef uint64_t va = tile.ptr + done
    while mapped != NULL:                       # last mapped first
        page = row_pop(&mapped)
        page.next = NULL
        va -= page.nbytes
        segment_put_page(tile.segment, page, va)
        a.num_device_alloc += 1
        a.mapping_us += MAP_US
    if done < tile.nbytes:
        rest = block_split(tile, done)          # cannot fail twice: see _growth_claim
        if rest != NULL:
            hole_insert(rest)
    a.page_pool_nbytes -= done
    history_record(a.device, HISTORY_SEGMENT_MAP, tile.ptr, done, tile.segment.stream,
                   stack_of_request(), pool.pool_id)
    tile.state = BLOCK_HELD
    tile.stream = stream
    tile.epoch = 0
    return tile


# How much to map at a place that needs `need`, of which `got` come from the page pool.
cdef size_t _want(DeviceAllocator* a, BlockPool* pool, Place* place, size_t got,
                  int cut) noexcept nogil:
    cdef size_t page
    if got >= place.need:
        return got
    page = _page_nbytes(a, pool, place.need - got, cut)
    if page > place.need - got and got + page <= place.hole.nbytes:
        return got + page                       # a whole page; the rest becomes free memory
    return place.need


cdef Block* _join_claimed(BlockPool* pool, Place* place, Block* block,
                          size_t nbytes) noexcept nogil:
    if place.lead != NULL:
        block = place.lead
        block_join_next(block)
    pool_trim(pool, block, nbytes)
    return block


cdef void _return_pages(DeviceAllocator* a, Page* pages) noexcept nogil:
    while pages != NULL:
        row_push(&a.page_pool, row_pop(&pages))


cdef Block* _grow_virtual(DeviceAllocator* a, BlockPool* pool, uint64_t stream, size_t nbytes,
                          int cut, bint alone, status_t* status) noexcept nogil:
    cdef Place place
    cdef Page* pages = NULL
    cdef Page* mapped = NULL
    cdef size_t got, want, fresh, done = 0, created = 0
    cdef double made_us = 0
    cdef bint is_allowed
    if not _find_place(a, pool, stream, nbytes, alone, &place):
        status[0] = _reserve(a, pool, stream, nbytes)
        if status[0] != STATUS_OK:
            return NULL
        if not _find_place(a, pool, stream, nbytes, alone, &place):
            status[0] = STATUS_OUT_OF_MEMORY
            return NULL
    got = _pick(a, pool, &place, cut, &pages)
    want = _want(a, pool, &place, got, cut)
    fresh = want - got if got < want else 0
    is_allowed = want <= place.hole.nbytes and limit_claim(a, fresh)
    if not is_allowed or not _growth_claim(pool, &place, want):
        if is_allowed:
            limit_settle(a, fresh)
        _return_pages(a, pages)
        status[0] = STATUS_OUT_OF_MEMORY
        return NULL
    in_flight_unlock(a)
    status[0] = _make(a, pool, want - got, cut, &pages, &created, &made_us)
    if status[0] == STATUS_OK:
        done = _growth_map(a, &place, &pages, &mapped, status)
    in_flight_lock(a, got + created > 0 or place.lead != NULL)
    limit_settle(a, fresh)
    a.making_us += made_us
    a.page_pool_nbytes += created
    a.mapping_us += 10.0 + 0.24 * (created >> 20)
    # What was created counts for the pool at once; the page pool gives the rest, or gets it.
    account_pool_reserved(a, pool, <int64_t>created)
    account_reserved_moved(a, NULL, pool, <int64_t>done - <int64_t>created)
    _return_pages(a, pages)
    if done == 0:
        hole_insert(place.hole)
    else:
        block = _commit(a, pool, &place, stream, done, mapped)
        if status[0] == STATUS_OK:
            return block if alone else _join_claimed(pool, &place, block, nbytes)
        pool_insert(pool, block)
    if place.lead != NULL:
        pool_insert(pool, place.lead)
    return NULL


# A HELD tile of new pages that begins with a page, of `nbytes` rounded up to whole pages: it joins
# no neighbour.
cdef Block* pool_grow_page(DeviceAllocator* a, BlockPool* pool, uint64_t stream, size_t nbytes,
                           status_t* status) noexcept nogil:
    return _grow_virtual(a, pool, stream, nbytes, AS_NEEDED, True, status)


# The size of the next page that is made when `need` bytes are still to be mapped.
cdef size_t growth_page(DeviceAllocator* a, BlockPool* pool, size_t need) noexcept nogil:
    return _page_nbytes(a, pool, need, BY_PAGES)


cdef size_t pages_collect(DeviceAllocator* a, size_t nbytes) noexcept nogil:
    return pages_take(a, pages_detach(a, NULL, nbytes, SIZE_MAX, INT64_MAX, False))


cdef size_t pages_collect_retired(DeviceAllocator* a) noexcept nogil:
    return pages_take(a, pages_detach(a, NULL, SIZE_MAX, SIZE_MAX, INT64_MAX, True))


cdef bint grows_plainly(DeviceAllocator* a, BlockPool* pool) noexcept nogil:
    return (not a.config.expandable_segments or a.granularity == 0
            or pool_source(pool) != NULL)


cdef Block* pool_grow(DeviceAllocator* a, BlockPool* pool, uint64_t stream, size_t nbytes,
                      status_t* status) noexcept nogil:
    if grows_plainly(a, pool):
        return plain_grow(a, pool, stream, nbytes, status)
    if pool.owner != NULL and pool.owner.is_unsplit:
        # What is mapped is the block: no more of it than is needed, and apart from its neighbours.
        return _grow_virtual(a, pool, stream, nbytes, AS_NEEDED, True, status)
    if pool.owner != NULL and pool.owner.capturing:
        # The graph keeps it: no more than the request needs.
        return _grow_virtual(a, pool, stream, nbytes, AS_NEEDED, False, status)
    block = _grow_virtual(a, pool, stream, nbytes, BY_PAGES, False, status)
    if block == NULL and status[0] == STATUS_OUT_OF_MEMORY:
        # Not a whole page is left: what is needed may still be there.
        block = _grow_virtual(a, pool, stream, nbytes, AS_NEEDED, False, status)
    return block


cdef size_t growth_need(DeviceAllocator* a, BlockPool* pool, uint64_t stream,
                        size_t nbytes) noexcept nogil:
    cdef Place place
    if grows_plainly(a, pool):
        return plain_nbytes(a, pool, nbytes)
    if not _find_place(a, pool, stream, nbytes, pool.owner != NULL and pool.owner.is_unsplit,
                       &place):
        return _round_up(nbytes, a.granularity)
    return place.need
