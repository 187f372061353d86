"""Physical pages: created, pooled, cut out of free blocks, returned to the driver.

A page is one physical allocation of the driver and is mapped whole. Bytes of a page count as
reserved from its creation until its return: in its segment's pool while it is mapped, in the large
pool's count while it is in the page pool or in flight.
"""

# Takes the largest page of at most `nbytes`, otherwise the smallest; NULL: the page pool is empty.
cdef Page* page_pool_take(DeviceAllocator* a, size_t nbytes) noexcept nogil:
    cdef Page* page
    cdef Page* best = a.page_pool
    for page in each(a.page_pool):
        if page.nbytes <= nbytes:
            if best.nbytes > nbytes or page.nbytes > best.nbytes:
                best = page
        elif best.nbytes > nbytes and page.nbytes < best.nbytes:
            best = page
    if best != NULL:
        row_remove(&a.page_pool, best)
        best.next = NULL
    return best


cdef size_t _detach_some(DeviceAllocator* a, BlockPool* pool, size_t nbytes, size_t largest,
                         int64_t* count, Block** detached) noexcept nogil:
    cdef StreamBins* sb
    cdef Block* block
    cdef uint64_t start, end, taken
    cdef size_t got = 0
    if pool.streams != NULL:
        # A page under free blocks of two streams is whole only once they are one block.
        pool_gather(pool, pool.streams.state.handle)
    for sb in each(pool.streams):
        head = bins_largest(&sb.bins)
        while head != NULL and got < nbytes:
            # The column below stays valid while this one changes.
            block = head
            head = bins_below(&sb.bins, block)
            while block != NULL and got < nbytes:
                tile = block
                block = block.link_next
                if (not progress_is_done(sb.state, tile.epoch)
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
                chain_push(detached, tile)
                got += tile.nbytes
                # Cutting may have moved the next block of this list: begin the column again.
                block = NULL
                head = bins_largest(&sb.bins)
    return got


# Cuts whole pages that the device is done with out of free blocks of all pools but `skipped` and
# those of its kind and owner, or of retired pools only; largest blocks first, up to `nbytes`,
# `count` pages (which counts down) of at most `largest` bytes. The cut tiles are HELD and linked.
cdef Block* pages_detach(DeviceAllocator* a, BlockPool* skipped, size_t nbytes, size_t largest,
                         int64_t* count, bint of_retired) noexcept nogil:
    cdef Block* detached = NULL
    cdef PrivatePool* private = a.private_pools
    cdef BlockPool* pools = &a.pools[0] if not of_retired else <BlockPool*>NULL
    cdef size_t got = 0
    cdef int place
    while pools != NULL or private != NULL:
        if pools == NULL:
            # The free memory of a pool that a graph uses belongs to the graph's replays.
            if private.use_count == 0 and not (private.scopes if of_retired else private.capturing):
                pools = &private.pools[0]
            private = private.next
        for place in range(POOLS if pools != NULL else 0):
            pool = &pools[(POOL_LARGE + place) % POOLS]
            if got < nbytes and (skipped == NULL or pool.kind != skipped.kind
                                 or pool.owner != skipped.owner):
                got += _detach_some(a, pool, nbytes - got, largest, count, &detached)
        pools = NULL
    return detached


# Unmaps detached tiles, with the lock dropped: they become holes, and their pages go to the page
# pool. Those that the driver does not unmap are free again. Returns the number of bytes moved.
cdef size_t pages_take(DeviceAllocator* a, Block* detached) noexcept nogil:
    cdef Block* done = NULL
    cdef Block* failed = NULL
    cdef size_t before = a.page_pool_nbytes
    cdef uint64_t va
    cdef status_t status
    if detached == NULL:
        return 0
    in_flight_unlock(a)
    while detached != NULL:
        tile = chain_pop(&detached)
        status = a.driver.page_unmap(a.driver.self, tile.ptr, tile.nbytes)
        chain_push(&done if status == STATUS_OK else &failed, tile)
    device_lock(a)
    while done != NULL:
        tile = chain_pop(&done)
        va = tile.ptr
        while va < tile.ptr + tile.nbytes:
            page = segment_take_page(tile.segment, va)
            va += page.nbytes
            row_push(&a.page_pool, page)
        account_reserved_moved(a, tile.pool, NULL, <int64_t>tile.nbytes)
        a.page_pool_nbytes += tile.nbytes
        a.num_device_free += 1
        history_segment(HISTORY_SEGMENT_UNMAP, tile.segment, tile.ptr, tile.nbytes,
                        stack_of_request())
        hole_insert(tile)
    pool_insert_all(failed)
    in_flight_end(a)
    return a.page_pool_nbytes - before
