"""The steps that serve a request when its pool has no block that fits.

Each step runs only if all before it failed, and costs more than they do:

 1. drain the thread caches, and search the pool again              no driver call
 2. take free blocks of other streams whose work is done; for the   no driver call
    middle pool then the rest of a partly used large page
 3. a view: free pages of several places, mapped side by side       a mapping for each page
 4. growth: from the page pool, which first receives free pages of  creating and mapping
    other pools; then by new pages or a new segment
 5. take free blocks of pools that lend them (`use_on_oom`)         no driver call
 6. a view at any cost; free pages moved, then growth again, or a   unmapping, mapping
    view of free bytes and new pages
 7. wait for the oldest event of freed blocks, one at a time        the shortest wait that helps
 8. wait for the streams, so that all free memory is done           a longer wait
 9. return cached segments and unused pages to the driver, then     the most expensive
    grow again
After each of 7 to 9 the cheap steps run again. Steps 5 to 9 are for a full device or a reached
limit. If all fail, the request fails, and later requests work normally. With
backend:cudaMallocAsync only requests of private pools come here; free memory in the driver's own
pool returns to the device when 4 fails, and once more at 9. With `throw_on_cudamalloc_oom`, a
request beyond the limit gets the memory of steps 1 to 3 and 6, or fails. A request starts over if
another thread had memory in flight, or freed some, while it failed. Step 2 takes all such blocks at
once, not only the best fit: neighbouring blocks join, so the best fit is chosen among whole free
runs, and fewer of them are split.
"""

# Whether pages may serve other places than the one they were made for.
cdef inline bint _may_move(DeviceAllocator* a) noexcept nogil:
    return a.config.page_reuse and a.config.expandable_segments


# Free bytes of the large pool for a middle request; pages that are free as a whole stay there.
cdef Block* _lend(BlockPool* lender, Request* request) noexcept nogil:
    pool_gather(lender, request.stream)
    sb = pool_bins(lender, request.stream)
    tile = bins_best_fit(&sb.bins, request.nbytes) if sb != NULL else <Block*>NULL
    if tile == NULL or not tile.segment.is_virtual:
        return NULL
    page = _page_at(lender.allocator, tile.segment, tile.ptr)
    if page.va == tile.ptr and page.nbytes <= tile.nbytes:
        return NULL
    return pool_take(lender, request.stream, request.nbytes)


# Steps 1 and 2: memory that is there, without a request to the driver.
cdef Block* _search(BlockPool* pool, Request* request) noexcept nogil:
    cdef Block* block = pool_take(pool, request.stream, request.nbytes)
    request.is_placed = False
    if block == NULL and pool_gather(pool, request.stream):
        block = pool_take(pool, request.stream, request.nbytes)
    if block == NULL and pool == &pool.allocator.pools[POOL_MIDDLE]:
        block = _lend(&pool.allocator.pools[POOL_LARGE], request)
    return block


# Step 5: for requests of the default pool only; those of private pools do not borrow.
cdef Block* _borrow(DeviceAllocator* a, Request* request) noexcept nogil:
    cdef PrivatePool* private = a.private_pools
    cdef Block* block = NULL
    while request.pool.owner == NULL and private != NULL and block == NULL:
        if private.is_for_oom and not private.capturing:
            block = _search(&private.pools[request.pool.kind], request)
        private = private.next
    return block


# Takes free pages out of all pools. Their holes may serve any stream afterwards.
cdef void _collect(DeviceAllocator* a, Request* request, size_t nbytes) noexcept nogil:
    views_drop_idle(a)
    pages_collect(a, nbytes)
    pool_gather(request.pool, request.stream)
    request.is_placed = False


cdef bint miss_refuses(DeviceAllocator* a, Request* request) noexcept nogil:
    cdef size_t need, pooled
    if not a.config.throw_on_cudamalloc_oom:
        return False
    need = growth_need(a, request)
    pooled = a.page_pool_nbytes if a.config.expandable_segments else 0
    return (need > pooled and need - pooled
            + <size_t>a.stats[STAT_RESERVED_BYTES][0].current + a.making_nbytes
            > a.limit_nbytes)


# Step 6: a view of free bytes; growth by pages that moved, as far as the limit goes; and last, a
# view with new pages, which uses the pages that could not move as well as those that did.
cdef Block* _rearrange(DeviceAllocator* a, Request* request, size_t nbytes) noexcept nogil:
    cdef Block* block = view_open(a, request, VIEW_OF_FREE)
    if block == NULL:
        _collect(a, request, nbytes)
        if ((a.page_pool != NULL or a.config.throw_on_cudamalloc_oom)
                and not miss_refuses(a, request)):
            block = pool_grow(a, request)
    return view_open(a, request, VIEW_AND_GROW) if block == NULL else block


# Steps 5 to 9. The page pool had `pooled` bytes when the miss began.
cdef Block* _squeeze(DeviceAllocator* a, Request* request, size_t pooled) noexcept nogil:
    cdef Block* block = NULL
    cdef bint waited = False
    cdef bint drained = False
    while True:
        block = _borrow(a, request)
        if block == NULL and _may_move(a):
            block = _rearrange(a, request, growth_need(a, request))
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
            drained = True                  # blocks cached meanwhile, perhaps not done
            waited = False
        else:
            break
        block = _search(request.pool, request)
        if block != NULL:
            return block
    if a.capturing:
        page_pool_release(a, pooled)    # pages collected in vain
        return NULL
    driver_pool_trim(a)         # its frees are done by now
    a.num_alloc_retries += 1            # as in PyTorch: return the cache, then retry
    segments_release(a, request.nbytes)
    block = _search(request.pool, request)
    if block == NULL:
        block = pool_grow(a, request)
    if block == NULL and _may_move(a):
        block = _rearrange(a, request, SIZE_MAX)
    elif block == NULL:
        _collect(a, request, SIZE_MAX)      # the driver gets them
    if block == NULL:
        page_pool_release(a, 0)
        segments_release(a, SIZE_MAX)
        request.is_placed = False           # the lock was dropped since
        block = pool_grow(a, request)
    if block == NULL:
        page_pool_release(a, 0)         # unused new pages: others may need them
    return block


cdef Block* _attempt(DeviceAllocator* a, Request* request, bint* is_refused) noexcept nogil:
    cdef Block* block = NULL
    cdef size_t pooled = a.page_pool_nbytes
    request.status = STATUS_OK
    caches_drain(a)             # first: cached blocks belong to the epoch that ends now
    if progress_can_wait(a):
        block = _search(request.pool, request)
    if block == NULL:
        progress_advance(a, request.stream)
        block = _search(request.pool, request)
    if block == NULL and a.retired_pools > 0 and not a.capturing:
        retired_pools_settle(a)
        block = _search(request.pool, request)
    if block != NULL:
        return block
    collect_garbage(a, request.nbytes)
    if _may_move(a):
        block = view_open(a, request, VIEW_IF_WORTH)
        if block != NULL:
            return block
        if not a.capturing:
            pages_bring(a, request)
    if miss_refuses(a, request):
        # It may neither wait nor return cached memory: step 6 alone.
        if _may_move(a):
            block = _rearrange(a, request, growth_need(a, request))
            if block == NULL:           # the collected pages may be those counted on
                block = _rearrange(a, request, SIZE_MAX)
        is_refused[0] = block == NULL
        return block
    block = pool_grow(a, request)
    # The driver may lack addresses, or its own pool may keep the memory.
    if block == NULL and (ranges_release_all(a) | driver_pool_trim(a)):
        request.is_placed = False
        block = pool_grow(a, request)
    if block == NULL:
        block = _squeeze(a, request, pooled)
    return block


cdef Block* miss_serve(DeviceAllocator* a, BlockPool* pool, uint64_t stream, size_t nbytes,
                       status_t* status) noexcept nogil:
    cdef Request request = request_for(pool, stream, nbytes)
    cdef Block* block = NULL
    cdef uint64_t others, frees
    cdef bint is_refused = False
    cdef int _turn
    for _turn in range(ATTEMPTS):
        others = in_flight_others(a)
        frees = a.frees
        block = _attempt(a, &request, &is_refused)
        status[0] = request.status
        if block != NULL:
            return block
        if is_refused:
            a.num_oom_rejections += 1
            status[0] = STATUS_OUT_OF_MEMORY
            return NULL
        # The failure is final if all memory was in the lists.
        if caches_drain(a) == 0 and not in_flight_wait(a, others, frees):
            break
    a.num_ooms += 1
    if status[0] == STATUS_OK:
        status[0] = STATUS_OUT_OF_MEMORY
    return NULL
