"""Returns memory to the driver: pages, plain segments, address space.

A plain segment can go exactly when it is one free block, a test of two pointers. cuMemFree waits
for the device itself, so a plain segment needs no proof that its work is done. A page does,
and pages_detach takes only pages that have it.
"""

cdef void synchronize_all(DeviceAllocator* a) noexcept nogil:
    if a.capturing:
        return
    progress_synchronize(a)
    a.num_sync_all_streams += 1


# Memory that is free when a capture begins has to serve it: its requests can neither wait nor give
# segments back. Whole free pages and plain segments go to the driver, because the graph keeps what
# it is given: pages of exactly its needs. Pages that are mapped in views stay.
cdef void collect_for_capture(DeviceAllocator* a) noexcept nogil:
    pages_collect(a, SIZE_MAX)
    page_pool_release(a, 0)
    segments_release(a, SIZE_MAX)


# Destroys the pages in the page pool, down to `keep` bytes; gives the bytes released.
cdef size_t page_pool_release(DeviceAllocator* a, size_t keep) noexcept nogil:
    cdef Page* pages = NULL
    cdef Page* kept = NULL
    cdef size_t left = a.page_pool_nbytes
    cdef size_t released = 0
    while a.page_pool != NULL and left > keep:
        page = row_pop(&a.page_pool)
        row_push(&pages, page)
        left = left - page.nbytes if left > page.nbytes else 0
    if pages == NULL:
        return 0
    in_flight_unlock(a)
    while pages != NULL:
        page = row_pop(&pages)
        if a.driver.page_destroy(a.driver.self, page.handle) == STATUS_OK:
            released += page.nbytes
            free(page)
        else:
            row_push(&kept, page)
    in_flight_lock(a)
    while kept != NULL:
        row_push(&a.page_pool, row_pop(&kept))
    # The reserved bytes bound the time for views, and their use decides about the size of pages:
    # returned bytes take their share of both along.
    reserved = <double>a.stats[STAT_RESERVED_BYTES][0].current
    if reserved > 0:
        share = <double>released / reserved
        a.mapping_us -= a.mapping_us * share
        gt_add(&a.used_before, <uint64_t>(share * <double>stats_used(a)))
    a.page_pool_nbytes -= released
    account_reserved(a, POOL_LARGE, -<int64_t>released)
    return released


# Returns a releasable segment's memory to the driver or its source; False when that refuses.
cdef bint _release(DeviceAllocator* a, Segment* segment) noexcept nogil:
    cdef status_t status
    block = segment.first
    pool = segment.pool
    pool_remove(pool, block)
    block.state = BLOCK_HELD
    in_flight_unlock(a)
    if segment.source != NULL:
        # The driver's own call waits for the work of the whole device; another source may not.
        a.driver.synchronize(a.driver.self)
    status = plain_give_back(a, segment.source, segment.va, segment.nbytes, segment.stream)
    in_flight_lock(a)
    if status != STATUS_OK:
        pool_insert(pool, block)
        return False
    a.num_device_free += 1
    account_pool_reserved(a, pool, -<int64_t>segment.nbytes)
    account_segment(a, pool.kind, -1)
    if segment.is_oversize:
        stat_change(&a.oversize_segments, -1)
    history_segment(HISTORY_SEGMENT_FREE, segment, segment.va, segment.nbytes, stack_of_request())
    segment_drop(segment)
    return True


# The next segment of a pool to release: the least recently used, on the clock of the pools'
# requests (a hit in a thread's cache does not count); or the one that serves `nbytes` best, the
# smallest that is large enough, otherwise the largest.
cdef Segment* _choose(BlockPool* pool, size_t nbytes, bint oldest_first) noexcept nogil:
    cdef Segment* segment
    cdef Segment* best = NULL
    for segment in each(pool.segments):
        if segment_is_free(segment) and (best == NULL or (
                segment.idle_since <= best.idle_since if oldest_first
                else nbytes <= segment.nbytes < best.nbytes if best.nbytes >= nbytes
                else segment.nbytes > best.nbytes)):
            best = segment
    return best


# Releases segments of the large pool of a pair, then of the small one.
cdef size_t release_from(DeviceAllocator* a, BlockPool* pools, size_t nbytes,
                         bint oldest_first=False) noexcept nogil:
    cdef size_t size, released = 0
    cdef int kind = POOL_LARGE
    # A retired pool may get a holder while the lock is dropped.
    while released < nbytes and (pools.owner == NULL or (pools.owner.use_count == 0
                                                         and not pools.owner.capturing)):
        segment = _choose(&pools[kind], nbytes - released, oldest_first)
        if segment != NULL:
            size = segment.nbytes
            if _release(a, segment):
                released += size
                continue
        if kind == POOL_SMALL or oldest_first:
            break
        kind = POOL_SMALL
    return released


# Frees plain segments that are one free block each: at least `nbytes`, the smallest that suffices
# first, then from the largest down. Gives the bytes released.
cdef size_t segments_release(DeviceAllocator* a, size_t nbytes) noexcept nogil:
    cdef PrivatePool* private
    cdef size_t released = release_from(a, a.pools, nbytes)
    for private in each(a.private_pools):
        private.pins += 1
        if released < nbytes:
            released += release_from(a, private.pools, nbytes - released)
        private.pins -= 1
    return released


# Releases the address ranges of some pools that no memory backs; says whether there were any.
cdef bint ranges_release(DeviceAllocator* a, BlockPool* pools) noexcept nogil:
    cdef Driver* driver = a.driver
    cdef Segment* segment
    cdef uint64_t va, stream
    cdef size_t nbytes
    cdef status_t status = STATUS_OK
    cdef bint found = False
    cdef int place
    for place in range(POOLS):
        segment = pools[place].segments
        while segment != NULL and status == STATUS_OK:
            if not (segment.is_virtual and segment.mapped == 0 and segment.holes != NULL
                    and segment.holes.nbytes == segment.nbytes):
                segment = segment.next
                continue
            va = segment.va
            nbytes = segment.nbytes
            stream = segment.stream
            segment_drop(segment)           # no other thread may use it meanwhile
            device_unlock(a)
            status = driver.va_release(driver.self, va, nbytes)
            device_lock(a)
            if status != STATUS_OK:
                segment_new(&pools[place], va, nbytes, True, stream, a.granularity)
            found |= status == STATUS_OK
            segment = pools[place].segments
    return found


# The same for all pools.
cdef bint ranges_release_all(DeviceAllocator* a) noexcept nogil:
    cdef PrivatePool* private
    cdef bint found = ranges_release(a, a.pools)
    for private in each(a.private_pools):
        private.pins += 1
        found |= ranges_release(a, private.pools)
        private.pins -= 1
    return found


# backend:cudaMallocAsync: the driver's pool returns its free memory. False: no such backend.
cdef bint driver_pool_trim(DeviceAllocator* a) noexcept nogil:
    if a.config.backend != BACKEND_ASYNC:
        return False
    device_unlock(a)
    a.driver.async_trim(a.driver.self, 0)
    device_lock(a)
    return True


cdef size_t release_all(DeviceAllocator* a) noexcept nogil:
    cdef size_t released
    driver_pool_trim(a)
    views_drop_idle(a)
    pages_collect(a, SIZE_MAX)
    released = page_pool_release(a, 0)
    released += segments_release(a, SIZE_MAX)
    ranges_release_all(a)
    return released


# garbage_collection_threshold: releases the page pool and cached plain segments, the least recently
# used first, as few as bring the reserved bytes with the request below the threshold. Not in a
# capture.
cdef void collect_garbage(DeviceAllocator* a, size_t nbytes) noexcept nogil:
    cdef size_t reserved = <size_t>a.stats[STAT_RESERVED_BYTES][0].current
    cdef size_t target
    if a.config.garbage_collection_threshold <= 0 or a.limit_nbytes == SIZE_MAX or a.capturing:
        return
    target = <size_t>(a.config.garbage_collection_threshold * <double>a.limit_nbytes)
    if reserved + nbytes <= target or reserved == 0:
        return
    nbytes = reserved + nbytes - target
    if a.page_pool_nbytes > 0:
        nbytes -= page_pool_release(a, 0)
        if <int64_t>nbytes <= 0:
            return
    release_from(a, a.pools, nbytes, True)
