"""Physical pages: created, pooled, cut out of free blocks, returned to the driver.

A page is one physical allocation of the driver and is mapped whole. Bytes of a page count as
reserved from its creation until its return: in its segment's pool while it is mapped, in the large
pool's count while it is in the page pool or in flight.

Taking pages out of free blocks has three steps, since unmapping is a driver call and must not hold
the lock: `pages_detach` (locked) cuts the tiles out of the bins, `pages_unmap` (unlocked) calls the
driver, `pages_settle` (locked) moves the pages to the pool. A tile whose
unmap fails becomes a free block again.
"""

cdef enum:
    ALL = 0x7fffffffffffffff


cdef void page_pool_put(DeviceAllocator* a, Page* page) noexcept nogil:
    page.next = a.page_pool
    a.page_pool = page


cdef Page* page_pool_take(DeviceAllocator* a, size_t nbytes) noexcept nogil:
    cdef Page** cell = &a.page_pool
    cdef Page** best = NULL
    cdef Page* page
    while cell[0] != NULL:
        page = cell[0]
        if best == NULL:
            best = cell
        elif page.nbytes <= nbytes:
            if best[0].nbytes > nbytes or page.nbytes > best[0].nbytes:
                best = cell
        elif best[0].nbytes > nbytes and page.nbytes < best[0].nbytes:
            best = cell
        cell = &page.next
    if best == NULL:
        return NULL
    page = best[0]
    best[0] = page.next
    page.next = NULL
    return page


# At most `count` pages, none larger than `largest`.
cdef size_t _detach_some(DeviceAllocator* a, BlockPool* pool, size_t nbytes, size_t largest,
                         int64_t* count, Block** detached) noexcept nogil:
    cdef StreamBins* sb
    cdef Block* head
    cdef Block* block
    cdef Block* tile
    cdef Page* page
    cdef uint64_t start, end, taken
    cdef size_t got = 0
    if pool.streams != NULL:
        # A page under free blocks of two streams is whole only once they are one block.
        pool_gather(pool, pool.streams.state.handle)
    sb = pool.streams
    while sb != NULL and got < nbytes:
        head = bins_largest(&sb.bins)
        while head != NULL and got < nbytes:
            # The column below stays valid while this one changes.
            block = head
            head = bins_below(&sb.bins, block)
            while block != NULL and got < nbytes:
                tile = block
                block = block.link_next
                if (not progress_is_done(a, sb.state, tile.epoch)
                        or not block_whole_pages(a, tile, &start, &end)):
                    continue
                taken = start
                while taken < end and taken - start + got < nbytes and count[0] > 0:
                    page = tile.segment.pages[(taken - tile.segment.va) // a.granularity]
                    if page.nbytes > largest:
                        break
                    taken += page.nbytes
                    count[0] -= 1
                if taken == start:
                    continue
                tile = pool_cut(pool, tile, start, taken)
                if tile == NULL:
                    return got
                tile.link_next = detached[0]
                detached[0] = tile
                got += tile.nbytes
                # Cutting may have moved the next block of this list: begin the column again.
                block = NULL
                head = bins_largest(&sb.bins)
        sb = sb.next
    return got


# The pools of a pair, the large one first, but for `skipped`.
cdef size_t _detach_pair(DeviceAllocator* a, BlockPool* pools, BlockPool* skipped, size_t nbytes,
                         size_t largest, int64_t* count, Block** detached) noexcept nogil:
    cdef size_t got = 0
    if &pools[1] != skipped:
        got = _detach_some(a, &pools[1], nbytes, largest, count, detached)
    if got < nbytes and &pools[0] != skipped:
        got += _detach_some(a, &pools[0], nbytes - got, largest, count, detached)
    return got


cdef Block* pages_detach_elsewhere(DeviceAllocator* a, BlockPool* pool, size_t nbytes,
                                   size_t largest, int64_t count) noexcept nogil:
    cdef Block* detached = NULL
    cdef PrivatePool* private = a.private_pools
    cdef size_t got = _detach_pair(a, a.pools, pool, nbytes, largest, &count, &detached)
    while private != NULL and got < nbytes:
        # The free memory of a pool that a graph uses belongs to the graph's replays.
        if private.use_count == 0 and not private.capturing:
            got += _detach_pair(a, private.pools, pool, nbytes - got, largest, &count, &detached)
        private = private.next
    return detached


cdef Block* pages_detach(DeviceAllocator* a, size_t nbytes) noexcept nogil:
    return pages_detach_elsewhere(a, NULL, nbytes, <size_t>ALL, ALL)


cdef Block* pages_detach_retired(DeviceAllocator* a) noexcept nogil:
    cdef Block* detached = NULL
    cdef PrivatePool* private = a.private_pools
    cdef int64_t count = ALL
    while private != NULL:
        if private.use_count == 0 and private.scopes == 0:
            _detach_pair(a, private.pools, NULL, <size_t>ALL, <size_t>ALL, &count, &detached)
        private = private.next
    return detached


cdef status_t pages_unmap(DeviceAllocator* a, Block* detached, Block** done,
                          Block** failed) noexcept nogil:
    cdef Driver* driver = a.driver
    cdef status_t status, first = STATUS_OK
    cdef Block* tile
    while detached != NULL:
        tile = detached
        detached = tile.link_next
        status = driver.page_unmap(driver.self, tile.ptr, tile.nbytes)
        if status == STATUS_OK:
            tile.link_next = done[0]
            done[0] = tile
        else:
            tile.link_next = failed[0]
            failed[0] = tile
            if first == STATUS_OK:
                first = status
    return first


# The pages of an unmapped tile leave their segment for the page pool, and the tile is a hole.
cdef void _to_pool(DeviceAllocator* a, Block* tile) noexcept nogil:
    cdef uint64_t va = tile.ptr
    cdef Page* page
    while va < tile.ptr + tile.nbytes:
        page = segment_take_page(tile.segment, va)
        va += page.nbytes
        page_pool_put(a, page)
    account_reserved_moved(a, tile.pool, NULL, <int64_t>tile.nbytes)
    a.page_pool_nbytes += tile.nbytes
    a.num_device_free += 1
    if history_enabled(a.device):
        history_record(a.device, HISTORY_SEGMENT_UNMAP, tile.ptr, tile.nbytes,
                       tile.segment.stream, stack_of_request(), tile.pool.pool_id)
    hole_insert(tile)


cdef void pages_settle(DeviceAllocator* a, Block* done, Block* failed) noexcept nogil:
    cdef Block* tile
    while done != NULL:
        tile = done
        done = tile.link_next
        _to_pool(a, tile)
    while failed != NULL:
        tile = failed
        failed = tile.link_next
        pool_insert(tile.pool, tile)


cdef Page* page_make(DeviceAllocator* a, size_t nbytes, status_t* status) noexcept nogil:
    cdef Page* page = <Page*>calloc(1, sizeof(Page))
    if page == NULL:
        status[0] = STATUS_OUT_OF_MEMORY
        return NULL
    status[0] = a.driver.page_create(a.driver.self, &page.handle, nbytes)
    if status[0] != STATUS_OK:
        free(page)
        return NULL
    page.nbytes = nbytes
    return page


cdef status_t page_unmake(DeviceAllocator* a, Page* page) noexcept nogil:
    cdef status_t status = a.driver.page_destroy(a.driver.self, page.handle)
    if status == STATUS_OK:
        free(page)
    return status
