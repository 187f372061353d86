"""The ladder that a request climbs when its pool has no block that fits.

Each rung is tried only when the ones below gave nothing, and costs more than they do:

 1. thread caches are drained, and the pool is searched again       no driver call
 2. the free blocks of other streams whose work is done             no driver call
 3. a view: free pages of several places, mapped side by side       a mapping for each page
 4. growth: from the page pool, where free pages of other pools go  creating and mapping
    before; then by new pages or a new segment
 5. the free blocks of pools that lend them (`use_on_oom`)          no driver call
 6. a view whatever it costs; free pages moved, then growth again,  unmapping, mapping
    or a view of free bytes and new pages
 7. waiting for the oldest event of freed blocks, one at a time     a wait, as short as suffices
 8. waiting for the streams, so that everything free is done        a longer wait
 9. giving cached segments back, and pages that were of no use,     the most expensive
    then growth again
After each of 7 to 9 the cheap rungs are tried again. Rungs 5 to 9 are for a device that is full, or
a limit that is reached; then the request fails, and the next one is served as if nothing had been.
With backend:cudaMallocAsync only private pools come here; what is free in the driver's own pool
goes back to the device when 4 fails, and once more at 9.
With `throw_on_cudamalloc_oom` a request that would pass the limit gets what 1 to 3 and 6 give, or
is refused.
A request that fails while others hold memory outside of the lists, or free some, climbs again.
In a capture, blocks that the graph has done with come first of all (captured_free.pyx).
Rung 2 takes all such blocks at once, not the one that fits best: what lay beside them joins, so the
best fit is chosen among whole free runs, and less of them is cut up (multistream trace: 0.92 of the
reserved bytes in use rather than 0.88).
"""

# Whether pages serve more than the place they were made for.
cdef inline bint _may_move(DeviceAllocator* a) noexcept nogil:
    return a.config.page_reuse and a.config.expandable_segments


# Rungs 1 and 2: what is there, without asking the driver for memory.
cdef Block* _search(DeviceAllocator* a, BlockPool* pool, uint64_t stream,
                    size_t nbytes) noexcept nogil:
    cdef Block* block = pool_take(pool, stream, nbytes)
    if block != NULL:
        return block
    if pool_gather(pool, stream):
        return pool_take(pool, stream, nbytes)
    return NULL


# Rung 5: for requests of the default pool only, as a pool's own requests are to fail alone.
cdef Block* _borrow(DeviceAllocator* a, BlockPool* pool, uint64_t stream,
                    size_t nbytes) noexcept nogil:
    cdef PrivatePool* private = a.private_pools
    cdef Block* block = NULL
    while pool.owner == NULL and private != NULL and block == NULL:
        if private.is_for_oom and not private.capturing:
            block = _search(a, &private.pools[pool.kind], stream, nbytes)
        private = private.next
    return block


# Takes free pages out of all pools. What they leave behind may be any stream's by then.
cdef void _collect(DeviceAllocator* a, BlockPool* pool, uint64_t stream,
                   size_t nbytes) noexcept nogil:
    views_drop_idle(a)
    pages_collect(a, nbytes)
    pool_gather(pool, stream)


# Rungs 5 to 9. The page pool had `pooled` bytes when the climb began.
cdef Block* _squeeze(DeviceAllocator* a, BlockPool* pool, uint64_t stream, size_t nbytes,
                     size_t pooled, status_t* status) noexcept nogil:
    cdef Block* block = NULL
    cdef bint waited = False
    cdef bint drained = False
    while True:
        block = _borrow(a, pool, stream, nbytes)
        if block != NULL:
            return block
        if _may_move(a):
            block = view_open(a, pool, stream, nbytes, VIEW_OF_FREE)
            if block != NULL:
                return block
            _collect(a, pool, stream, growth_need(a, pool, stream, nbytes))
            if a.page_pool != NULL:
                block = pool_grow(a, pool, stream, nbytes, status)
                if block != NULL:
                    return block
            # Pages that a view in use shows cannot move, and those that moved are one part of it.
            block = view_open(a, pool, stream, nbytes, VIEW_AND_GROW)
            if block != NULL:
                return block
        if pending_wait_one(a):
            pass
        elif not waited and not a.capturing:
            synchronize_all(a)
            pending_poll(a)
            retired_pools_settle(a)
            waited = True
        elif not drained and caches_drain(a) > 0:
            drained = True                  # what was parked meanwhile, and may not be done
            waited = False
        else:
            break
        block = _search(a, pool, stream, nbytes)
        if block != NULL:
            return block
    if a.capturing:
        page_pool_release(a, pooled)    # pages that came in vain
        return NULL
    driver_pool_trim(a)         # its frees are done by now
    a.num_alloc_retries += 1            # as in PyTorch: what is cached goes, then another attempt
    segments_release(a, nbytes)
    block = _search(a, pool, stream, nbytes)
    if block == NULL:
        block = pool_grow(a, pool, stream, nbytes, status)
    if block == NULL:
        _collect(a, pool, stream, SIZE_MAX)     # without page_reuse, too: the driver gets them
        if _may_move(a):
            # The limit may be below what is held: what goes back now does not come again.
            if a.page_pool_nbytes >= growth_need(a, pool, stream, nbytes):
                block = pool_grow(a, pool, stream, nbytes, status)
            if block == NULL:
                block = view_open(a, pool, stream, nbytes, VIEW_AND_GROW)
    if block == NULL:
        page_pool_release(a, 0)
        segments_release(a, SIZE_MAX)
        block = pool_grow(a, pool, stream, nbytes, status)
    if block == NULL:
        page_pool_release(a, 0)         # pages made in vain: others may want them
    return block


cdef bint miss_refuses(DeviceAllocator* a, BlockPool* pool, uint64_t stream,
                         size_t nbytes) noexcept nogil:
    cdef size_t need, pooled
    if not a.config.throw_on_oom:
        return False
    need = growth_need(a, pool, stream, nbytes)
    pooled = a.page_pool_nbytes if a.config.expandable_segments else 0
    return (need > pooled and need - pooled
            + <size_t>a.stats[STAT_RESERVED_BYTES][0].current + a.making_nbytes
            > a.limit_nbytes)


# Rung 6 alone, for a request that is to be refused rather than wait or give back what is cached.
cdef Block* _rearrange(DeviceAllocator* a, BlockPool* pool, uint64_t stream, size_t nbytes,
                       status_t* status, bint* is_refused) noexcept nogil:
    cdef Block* block = NULL
    cdef size_t wanted = growth_need(a, pool, stream, nbytes)
    cdef int _turn
    if _may_move(a):
        block = view_open(a, pool, stream, nbytes, VIEW_OF_FREE)
        for _turn in range(2):
            if block == NULL:
                _collect(a, pool, stream, wanted)
                if not miss_refuses(a, pool, stream, nbytes):
                    block = pool_grow(a, pool, stream, nbytes, status)
            if block == NULL:           # as far as the limit goes
                block = view_open(a, pool, stream, nbytes, VIEW_AND_GROW)
            wanted = SIZE_MAX           # what was collected may be what was counted on to stay
    is_refused[0] = block == NULL
    return block


cdef Block* _climb(DeviceAllocator* a, BlockPool* pool, uint64_t stream, size_t nbytes,
                   status_t* status, bint* is_refused) noexcept nogil:
    cdef Block* block = NULL
    cdef size_t pooled = a.page_pool_nbytes
    status[0] = STATUS_OK
    caches_drain(a)             # first: what was parked belongs to the epoch that ends now
    progress_advance(a, stream)
    if a.capturing:
        capture_reuse_collect(a, pool, stream)
    block = _search(a, pool, stream, nbytes)
    if block != NULL:
        return block
    if a.retired_pools > 0 and not a.capturing:
        retired_pools_settle(a)
        block = _search(a, pool, stream, nbytes)
        if block != NULL:
            return block
    collect_garbage(a, nbytes)
    if _may_move(a):
        block = view_open(a, pool, stream, nbytes, VIEW_IF_WORTH)
        if block != NULL:
            return block
        if not a.capturing:
            pages_bring(a, pool, stream, nbytes)
    if miss_refuses(a, pool, stream, nbytes):
        return _rearrange(a, pool, stream, nbytes, status, is_refused)
    block = pool_grow(a, pool, stream, nbytes, status)
    # It may be addresses that the driver lacks, or what its own pool keeps.
    if block == NULL and (ranges_release_all(a) | driver_pool_trim(a)):
        block = pool_grow(a, pool, stream, nbytes, status)
    if block == NULL:
        block = _squeeze(a, pool, stream, nbytes, pooled, status)
    return block


cdef Block* miss_serve(DeviceAllocator* a, BlockPool* pool, uint64_t stream, size_t nbytes,
                         status_t* status) noexcept nogil:
    cdef Block* block = NULL
    cdef uint64_t others, frees
    cdef bint is_refused = False
    cdef int _turn
    for _turn in range(CLIMBS):
        others = in_flight_others(a)
        frees = a.frees
        block = _climb(a, pool, stream, nbytes, status, &is_refused)
        if block != NULL:
            return block
        if is_refused:
            a.num_oom_rejections += 1
            status[0] = STATUS_OUT_OF_MEMORY
            return NULL
        # It failed for good when all that there is was in the lists.
        if caches_drain(a) == 0 and not in_flight_wait(a, others, frees):
            break
    a.num_ooms += 1
    if status[0] == STATUS_OK:
        status[0] = STATUS_OUT_OF_MEMORY
    return NULL
