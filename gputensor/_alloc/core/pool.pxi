"""Block pools: insert with merge, best fit with split, and blocks that change their stream.

A free block belongs to a stream: work queued on that stream may still use it, so only that stream
may take it without a check. Once progress.pxi shows that the device is done with the block, any
stream may: `pool_gather` takes all such blocks, so that neighbours of different streams join. It
costs no driver call, since the bytes stay where they are.

The device lock is held throughout.
"""

cdef void pools_init(BlockPool* pools, DeviceAllocator* a, PrivatePool* owner,
                     uint64_t pool_id) noexcept nogil:
    cdef int place
    for place in range(POOLS):
        pools[place] = BlockPool(place == POOL_LARGE, pool_id, a, owner, NULL, NULL)


cdef BlockPool* pool_for(BlockPool* pools, size_t nbytes) noexcept nogil:
    cdef DeviceAllocator* a = pools.allocator
    cdef bint is_paged = pools.owner == NULL and a.config.expandable_segments and a.granularity > 0
    if nbytes > SMALL_LIMIT:
        return &pools[POOL_LARGE]
    return &pools[POOL_MIDDLE if nbytes >= MIDDLE and is_paged else POOL_SMALL]


cdef void pool_clear(BlockPool* pool) noexcept nogil:
    while pool.streams != NULL:
        free(row_pop(&pool.streams))


cdef StreamBins* pool_bins(BlockPool* pool, uint64_t stream) noexcept nogil:
    cdef StreamBins* sb
    for sb in each(pool.streams):
        if sb.state.handle == stream:
            if sb != pool.streams:
                # The stream in use moves to the front: the next look-up is one comparison.
                row_remove(&pool.streams, sb)
                row_push(&pool.streams, sb)
            return sb
    state = progress_of(pool.allocator, stream)
    sb = <StreamBins*>calloc(1, sizeof(StreamBins)) if state != NULL else <StreamBins*>NULL
    if sb != NULL:
        sb.state = state
        row_push(&pool.streams, sb)
    return sb


cdef inline void _enter(BlockPool* pool, StreamBins* sb, Block* block) noexcept nogil:
    bins_insert(&sb.bins, block)
    sb.state.newest = max(sb.state.newest, block.epoch)
    if block.previous != NULL:
        gt_store(&block.previous.kept_at, 0)
    if block.next != NULL:
        gt_store(&block.next.kept_at, 0)
    gt_add(&pool.allocator.inserts[(block.nbytes >> UNIT_SHIFT) % 64], 1)
    sb.free_nbytes += block.nbytes
    block.is_split = block_keeps_segment(block)
    if (block.is_split
            and not counters_split_in(&pool.allocator.counters[block.kind], block.nbytes)):
        stats_update(pool.allocator, True)


cdef inline void _leave(BlockPool* pool, StreamBins* sb, Block* block) noexcept nogil:
    bins_remove(&sb.bins, block)
    sb.free_nbytes -= block.nbytes
    if block.is_split:
        counters_split_out(&pool.allocator.counters[block.kind], block.nbytes)


cdef inline bint _is_unsplit(BlockPool* pool) noexcept nogil:
    return pool.owner != NULL and pool.owner.is_unsplit


cdef inline bint _joins(BlockPool* pool, Block* neighbour, uint64_t stream) noexcept nogil:
    return (neighbour != NULL and gt_load(&neighbour.state) == BLOCK_FREE
            and neighbour.stream == stream and not _is_unsplit(pool))


cdef bint pool_would_keep(Block* block) noexcept nogil:
    other = bins_best_fit(&pool_bins(block.pool, block.stream).bins, block.nbytes)
    return (not _joins(block.pool, block.next, block.stream)
            and not _joins(block.pool, block.previous, block.stream)
            and (other == NULL or other.nbytes > block.nbytes or other.ptr > block.ptr))


cdef Block* pool_insert(BlockPool* pool, Block* block) noexcept nogil:
    return _insert(pool, pool_bins(pool, block.stream), block)


cdef void pool_insert_all(Block* tiles) noexcept nogil:
    while tiles != NULL:
        tile = chain_pop(&tiles)
        tile.is_part = False
        tile.state = BLOCK_HELD
        pool_insert(tile.pool, tile)


cdef void pool_give(Block* block) noexcept nogil:
    block.epoch = block.pool.allocator.epoch
    pool_insert(block.pool, block)


cdef inline Block* _insert(BlockPool* pool, StreamBins* sb, Block* block) noexcept nogil:
    if _joins(pool, block.next, block.stream):
        _leave(pool, sb, block.next)
        block_join_next(block)
    if _joins(pool, block.previous, block.stream):
        block = block.previous
        _leave(pool, sb, block)
        block_join_next(block)
    block.state = BLOCK_FREE
    _enter(pool, sb, block)
    if not block.segment.is_virtual:
        block.segment.idle_since = pool.allocator.counters[pool.kind].came[FLOW_COUNT]
    return block


cdef void pool_remove(BlockPool* pool, Block* block) noexcept nogil:
    _leave(pool, pool_bins(pool, block.stream), block)


# A large block at or over max_split_size is never cut, and serves only requests of near its size.
cdef inline bint _may_serve(BlockPool* pool, Block* block, size_t nbytes) noexcept nogil:
    cdef size_t limit = pool.allocator.config.max_split_size
    if pool.kind != POOL_LARGE or block.segment.is_virtual:
        return True
    if nbytes < limit:
        return block.nbytes < limit
    return block.nbytes < nbytes + pool.allocator.config.max_non_split_rounding


# A remainder becomes a block of its own. In plain large segments one of up to 1 MiB does not: it
# could serve no large request.
cdef inline bint _may_cut(BlockPool* pool, Block* block, size_t nbytes) noexcept nogil:
    if _is_unsplit(pool):
        return False
    if pool.kind != POOL_LARGE or block.segment.is_virtual:
        return block.nbytes - nbytes >= UNIT
    return (block.nbytes - nbytes > (1 << 20)
            and block.nbytes < pool.allocator.config.max_split_size)


cdef void pool_trim(BlockPool* pool, Block* block, size_t nbytes) noexcept nogil:
    # Without host memory for a record, the caller gets the whole block.
    tail = block_split(block, nbytes) if _may_cut(pool, block, nbytes) else <Block*>NULL
    if tail != NULL:
        block.is_split = block_keeps_segment(block)
        pool_insert(pool, tail)


cdef Block* pool_take(BlockPool* pool, uint64_t stream, size_t nbytes) noexcept nogil:
    sb = pool_bins(pool, stream)
    if sb == NULL or sb.free_nbytes < nbytes:
        return NULL
    block = bins_best_fit(&sb.bins, nbytes)
    if block == NULL or not _may_serve(pool, block, nbytes):
        return NULL
    _leave(pool, sb, block)
    block.state = BLOCK_HELD
    pool_trim(pool, block, nbytes)
    return block


cdef bint pool_gather(BlockPool* pool, uint64_t stream) noexcept nogil:
    cdef StreamBins* sb
    cdef Block* kept = NULL
    cdef bint moved = False
    own = pool_bins(pool, stream)
    for sb in each(pool.streams if own != NULL else <StreamBins*>NULL):
        while sb != own and sb.bins.rows != 0:
            block = bins_largest(&sb.bins)
            _leave(pool, sb, block)
            if not progress_is_done(sb.state, block.epoch):
                chain_push(&kept, block)
                continue
            block.stream = stream
            block.epoch = 0
            # The neighbours may be free blocks of `stream`: join them. Joining does not count as a
            # use, so `idle_since` is kept.
            idle_since = block.segment.idle_since
            block = _insert(pool, own, block)
            block.segment.idle_since = idle_since
            moved = True
        while kept != NULL:
            _enter(pool, sb, chain_pop(&kept))
    return moved


cdef Block* pool_cut(BlockPool* pool, Block* block, uint64_t start, uint64_t end) noexcept nogil:
    cdef Block* tail = NULL
    pool_remove(pool, block)
    block.state = BLOCK_HELD
    if end < block.ptr + block.nbytes:
        tail = block_split(block, end - block.ptr)
        if tail == NULL:
            pool_insert(pool, block)
            return NULL
    middle = block
    if start > block.ptr:
        middle = block_split(block, start - block.ptr)
        pool_insert(pool, block)
    if tail != NULL:
        pool_insert(pool, tail)
    return middle
