"""Growth: address space and pages, with the driver calls outside the lock.

A pool of virtual memory has one home segment that all its streams share, as long as its address
space lasts. Growth takes the hole that needs the fewest new bytes: the free block before a hole
counts towards the request. Under the lock the tiles are claimed, so that no other thread counts on
them; pages are gathered and mapped without it; then the new tile joins what was claimed. When a
driver call fails, what was mapped so far stays as free memory, pages that were gathered go to the
page pool, and the claimed tiles go back.

DESIGN.md, *Growing*, describes the sizes of pages. Plain segments grow in plain_growth.pxi.
"""

cdef enum:
    FIRST_PAGE = 8 << 20
    STEADY = 2                  # uses of the reserved bytes
    SHARE = 96                  # of the reserved bytes: a page may have it in excess from then on
    COARSE = 40 << 20           # the default of `page_size_mb`; pages of smaller settings have at
    FINE = 128                  # most a FINE-th of the reserved bytes
    PAGES_ABOUT = 64            # in a device or a limit: pages larger than this share are rare
    PARTS = 3                   # of a large need: a page is one of them ...
    MOST = 5                    # ... up to MOST times `page_size`, and to an eighth of the share

cdef enum:                      # how a need is divided into new pages
    BY_PAGES = 0                # whole pages: the excess of the last one is free memory
    AS_NEEDED = 1               # not a byte more, unless a page in the page pool is larger
    EXACTLY = 2                 # not a byte more

cdef double ONE_PAGE = 2.4       # a need of up to so many times `page_size` is one page
cdef double ONE_PAGE_FINE = 1.2  # ... below COARSE

# The cost of a page in microseconds, measured on an H200: creating it, and each MiB of it; mapping
# (cuMemMap and cuMemSetAccess) and unmapping it.
cdef double MAKE_US = 10.0
cdef double MAKE_MIB_US = 0.24
cdef double MAP_US = 31.5
cdef double UNMAP_US = 18.5

# The progress of one growth: the bytes taken from the page pool, created, and mapped.
cdef struct Growth:
    int cut
    Block* rest                 # a record for the part of the place that is not mapped, if any
    Page* pages                 # not mapped yet
    Page* mapped                # ... last first
    size_t got, created, done
    double made_us


cdef inline size_t _round_up(size_t nbytes, size_t step) noexcept nogil:
    return (nbytes + step - 1) // step * step


cdef inline size_t _reserved(DeviceAllocator* a) noexcept nogil:
    return <size_t>gt_load(&a.stats[STAT_RESERVED_BYTES][0].current)    # with or without the lock


cdef Request request_for(BlockPool* pool, uint64_t stream, size_t nbytes) noexcept nogil:
    cdef bint alone = pool.owner != NULL and pool.owner.is_unsplit
    return Request(pool, stream, nbytes, alone, STATUS_OK, False, NULL, NULL, 0)


# Finds the place of a request, unless it is known. False: no hole is large enough.
cdef bint _find_place(DeviceAllocator* a, Request* request) noexcept nogil:
    cdef Segment* segment
    cdef Block* hole
    cdef Block* lead
    cdef size_t need
    if request.is_placed:
        return True
    for segment in each(request.pool.segments):
        for hole in linked(segment.holes):
            need = request.nbytes
            lead = <Block*>NULL if request.alone else hole.previous
            if (lead != NULL and gt_load(&lead.state) == BLOCK_FREE
                    and lead.stream == request.stream):
                need = need - lead.nbytes if lead.nbytes < need else 1
            else:
                lead = NULL
            need = _round_up(need, a.granularity)
            if need <= hole.nbytes and (
                    not request.is_placed or need < request.need
                    or (need == request.need and hole.ptr < request.hole.ptr)):
                request.is_placed = True
                request.hole = hole
                request.lead = lead
                request.need = need
    return request.is_placed


# Reserves address space for a new home segment. Drops the lock for the driver call.
cdef status_t _reserve(DeviceAllocator* a, Request* request) noexcept nogil:
    cdef Driver* driver = a.driver
    cdef size_t nbytes = _round_up(a.total_nbytes + a.total_nbytes // 8, a.granularity)
    cdef uint64_t va = 0
    cdef status_t status
    if nbytes < request.nbytes:
        return STATUS_OUT_OF_MEMORY             # larger than the device
    device_unlock(a)
    status = driver.va_reserve(driver.self, &va, nbytes, a.granularity)
    device_lock(a)
    if status != STATUS_OK:
        return status
    if segment_new(request.pool, va, nbytes, True, request.stream, a.granularity) == NULL:
        driver.va_release(driver.self, va, nbytes)
        return STATUS_OUT_OF_MEMORY
    return STATUS_OK if _find_place(a, request) else <status_t>STATUS_OUT_OF_MEMORY


# The usual page. Settings below COARSE are alike until a page is below 1 % of the reserved bytes.
cdef inline size_t _page_size(DeviceAllocator* a) noexcept nogil:
    cdef size_t nbytes = a.config.page_size
    return nbytes if nbytes >= COARSE else max(a.granularity, min(nbytes, _reserved(a) // FINE))


# The size of the next page when `need` bytes are still to be mapped.
cdef size_t _page_nbytes(DeviceAllocator* a, BlockPool* pool, size_t need, int cut) noexcept nogil:
    cdef size_t room = a.limit_nbytes if a.limit_nbytes < a.total_nbytes else a.total_nbytes
    cdef size_t share = room // PAGES_ABOUT + 1
    cdef size_t usual = _page_size(a)
    cdef size_t one = <size_t>((ONE_PAGE_FINE if a.config.page_size < COARSE else ONE_PAGE) * usual)
    cdef size_t step = _reserved(a) + a.granularity
    cdef uint64_t used = stats_used(a)
    usual = max(usual, min(need // PARTS, min(MOST * usual, share // 8)))
    usual = _round_up(min(usual, share), a.granularity)
    share = _round_up(usual + usual // 5 - a.granularity // 2, a.granularity)      # to the nearest
    if one > share and room // PAGES_ABOUT < one:
        one = share
    if cut != BY_PAGES:
        return need if need <= one else usual
    if pool.kind == POOL_SMALL:
        return _round_up(SMALL_SEGMENT, a.granularity)
    step = step // SHARE if used > STEADY * step else max(step, <size_t>FIRST_PAGE)
    return share if need > one else max(need, _round_up(min(step, usual), a.granularity))


# Claims the place: its hole is cut to `nbytes` and MOVING, the lead is HELD.
cdef bint _growth_claim(Request* request, size_t nbytes) noexcept nogil:
    cdef Block* hole = request.hole
    link_remove(&hole.segment.holes, hole)
    hole.state = BLOCK_MOVING
    if nbytes < hole.nbytes:
        rest = block_split(hole, nbytes)
        if rest == NULL:
            hole_insert(hole)
            return False
        hole_insert(rest)
    if request.lead != NULL:
        pool_remove(request.pool, request.lead)
        request.lead.state = BLOCK_HELD
    return True


# Takes pages for a place out of the page pool: pages that fit, and one larger page at the end if it
# is at most a fifth larger than the page that the driver would make (BY_PAGES) or of any size
# (AS_NEEDED). Returns the bytes to map, new pages included.
cdef size_t _pick(DeviceAllocator* a, Request* request, Growth* growth) noexcept nogil:
    cdef size_t left, next_nbytes
    cdef Page* page
    while growth.got < request.need:
        left = request.need - growth.got
        next_nbytes = _page_nbytes(a, request.pool, left, growth.cut)
        page = page_pool_take(a, left)
        if page != NULL and page.nbytes > left and (
                growth.got + page.nbytes > request.hole.nbytes
                or growth.cut == EXACTLY
                or (growth.cut == BY_PAGES
                    and page.nbytes > _round_up(next_nbytes * 6 // 5, a.granularity))):
            row_push(&a.page_pool, page)
            page = NULL
        if page == NULL:
            if next_nbytes > left and growth.got + next_nbytes <= request.hole.nbytes:
                return growth.got + next_nbytes     # a whole page; the rest becomes free memory
            return request.need
        row_push(&growth.pages, page)
        growth.got += page.nbytes
    return growth.got


# Makes pages for the rest, and maps all one after the other. Without the lock.
cdef status_t _make_and_map(DeviceAllocator* a, Request* request, Growth* growth,
                            size_t nbytes) noexcept nogil:
    cdef Driver* driver = a.driver
    cdef status_t status = STATUS_OK
    cdef size_t size
    while growth.got + growth.created < nbytes:
        size = nbytes - growth.got - growth.created
        size = min(size, _page_nbytes(a, request.pool, size, growth.cut))
        page = <Page*>calloc(1, sizeof(Page))
        if page == NULL:
            return STATUS_OUT_OF_MEMORY
        page.nbytes = size
        status = driver.page_create(driver.self, &page.handle, size)
        if status != STATUS_OK:
            free(page)
            return status
        row_push(&growth.pages, page)
        growth.created += size
        growth.made_us += MAKE_US + MAP_US + MAKE_MIB_US * (size >> 20)
    while growth.pages != NULL and status == STATUS_OK:
        page = growth.pages
        status = driver.page_map(driver.self, request.hole.ptr + growth.done, page.nbytes,
                                 page.handle)
        if status == STATUS_OK:
            row_push(&growth.mapped, row_pop(&growth.pages))
            growth.done += page.nbytes
    return status


# Accounts for the mapped bytes: the first part of the hole becomes a HELD tile.
cdef Block* _commit(DeviceAllocator* a, Request* request, Growth* growth) noexcept nogil:
    cdef Block* tile = request.hole
    cdef uint64_t va = tile.ptr + growth.done
    while growth.mapped != NULL:                # last mapped first
        page = row_pop(&growth.mapped)
        page.next = NULL
        va -= page.nbytes
        segment_put_page(tile.segment, page, va)
        a.num_device_alloc += 1
        a.mapping_us += MAP_US
    if growth.done < tile.nbytes:
        hole_insert(block_cut(tile, growth.done, growth.rest))
        growth.rest = NULL
    a.page_pool_nbytes -= growth.done
    history_segment(HISTORY_SEGMENT_MAP, tile.segment, tile.ptr, growth.done, stack_of_request())
    tile.state = BLOCK_HELD
    tile.stream = request.stream
    tile.epoch = 0
    return tile


cdef void _return_pages(DeviceAllocator* a, Page* pages) noexcept nogil:
    while pages != NULL:
        row_push(&a.page_pool, row_pop(&pages))


cdef Block* _grow_virtual(DeviceAllocator* a, Request* request, int cut) noexcept nogil:
    cdef Growth growth = Growth(cut, NULL, NULL, NULL, 0, 0, 0, 0)
    cdef BlockPool* pool = request.pool
    cdef Block* block
    cdef size_t nbytes, fresh
    cdef bint is_allowed
    request.status = STATUS_OK if _find_place(a, request) else _reserve(a, request)
    if request.status != STATUS_OK:
        return NULL
    request.is_placed = False
    nbytes = _pick(a, request, &growth)
    fresh = nbytes - growth.got
    growth.rest = block_new()
    is_allowed = nbytes <= request.hole.nbytes and limit_claim(a, fresh)
    if not is_allowed or growth.rest == NULL or not _growth_claim(request, nbytes):
        if is_allowed:
            a.making_nbytes -= fresh
        block_drop(growth.rest)
        _return_pages(a, growth.pages)
        request.status = STATUS_OUT_OF_MEMORY
        return NULL
    in_flight_unlock(a)
    request.status = _make_and_map(a, request, &growth, nbytes)
    in_flight_lock(a, growth.got + growth.created > 0 or request.lead != NULL)
    a.making_nbytes -= fresh
    a.making_us += growth.made_us
    a.page_pool_nbytes += growth.created
    a.mapping_us += MAKE_US + MAKE_MIB_US * (growth.created >> 20)
    # Created bytes count for the pool at once; the page pool gives the rest, or gets it.
    account_pool_reserved(a, pool, <int64_t>growth.created)
    account_reserved_moved(a, NULL, pool, <int64_t>growth.done - <int64_t>growth.created)
    _return_pages(a, growth.pages)
    if growth.done == 0:
        hole_insert(request.hole)
    else:
        block = _commit(a, request, &growth)
    block_drop(growth.rest)
    if growth.done > 0:
        if request.status == STATUS_OK:
            if request.lead != NULL:
                block = request.lead
                block_join_next(block)
            if not request.alone:
                pool_trim(pool, block, request.nbytes)
            return block
        pool_insert(pool, block)
    if request.lead != NULL:
        pool_insert(pool, request.lead)
    return NULL


# Moves whole free pages that the device is done with into the page pool, at least `nbytes` if there
# are that many, out of all pools or of the retired ones; returns the number of bytes moved.
cdef size_t pages_collect(DeviceAllocator* a, size_t nbytes, bint of_retired=False) noexcept nogil:
    cdef int64_t count = INT64_MAX
    return pages_take(a, pages_detach(a, NULL, nbytes, SIZE_MAX, &count, of_retired))


cdef bint grows_plainly(DeviceAllocator* a, BlockPool* pool) noexcept nogil:
    return not a.config.expandable_segments or a.granularity == 0 or pool_source(pool) != NULL


# A HELD block of exactly the request's size (or a little more in plain segments) out of new memory,
# or NULL and a status. The page pool serves first, then the driver. Drops the lock.
cdef Block* pool_grow(DeviceAllocator* a, Request* request) noexcept nogil:
    cdef Block* block
    cdef PrivatePool* owner = request.pool.owner
    # A graph keeps what its capture maps, and where blocks are not cut, the block is all that is
    # mapped.
    cdef bint is_exact = owner != NULL and (owner.is_unsplit or owner.capturing)
    if grows_plainly(a, request.pool):
        return plain_grow(a, request)
    block = _grow_virtual(a, request, EXACTLY if is_exact else BY_PAGES)
    if block != NULL or request.status != STATUS_OUT_OF_MEMORY:
        return block
    # There is no such page left, but there may be as much as is needed.
    return _grow_virtual(a, request, AS_NEEDED)


cdef size_t growth_need(DeviceAllocator* a, Request* request) noexcept nogil:
    if grows_plainly(a, request.pool):
        return plain_nbytes(a, request.pool, request.nbytes)
    return request.need if _find_place(a, request) else _round_up(request.nbytes, a.granularity)
