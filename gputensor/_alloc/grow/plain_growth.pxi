"""Growth by plain segments: the memory of one driver call each.

A free segment of the default pool that fits goes to another pool first: that costs no driver call,
and pools that are made in a loop use the same memory.
"""

# The size of the segment that a request makes.
cdef size_t plain_nbytes(DeviceAllocator* a, BlockPool* pool, size_t nbytes) noexcept nogil:
    if pool.kind == POOL_SMALL:
        return SMALL_SEGMENT
    if nbytes < MIN_LARGE and nbytes <= a.config.large_segment_size:
        return a.config.large_segment_size
    return (nbytes + ROUND_LARGE - 1) // ROUND_LARGE * ROUND_LARGE


# A plain segment of the default pool that is one free block, done, and little larger than `nbytes`:
# it goes to another pool without a driver call. NULL when there is none.
cdef Segment* _adopt(DeviceAllocator* a, BlockPool* pool, uint64_t stream,
                     size_t nbytes) noexcept nogil:
    cdef BlockPool* source = &a.pools[pool.kind]
    cdef Segment* segment = source.segments
    cdef Segment* best = NULL
    cdef Block* block
    while segment != NULL and source != pool:
        block = segment.first
        if (not segment.is_virtual and block.state == BLOCK_FREE
                and block.nbytes == segment.nbytes
                and nbytes <= segment.nbytes <= nbytes + nbytes // 4
                and (best == NULL or segment.nbytes < best.nbytes)
                and progress_is_done(a, pool_bins(source, block.stream).state, block.epoch)):
            best = segment
        segment = segment.next
    if best == NULL:
        return NULL
    block = best.first
    pool_remove(source, block)
    account_pool_reserved(a, source, -<int64_t>best.nbytes)
    segment_move(best, pool)
    account_pool_reserved(a, pool, <int64_t>best.nbytes)
    best.stream = stream
    block.stream = stream
    block.epoch = 0
    block.state = BLOCK_HELD
    return best


# A HELD block of `nbytes`, or a little more, in a segment that the pool did not have, or NULL and a
# status.
cdef Block* plain_grow(DeviceAllocator* a, BlockPool* pool, uint64_t stream, size_t nbytes,
                       status_t* status) noexcept nogil:
    cdef Driver* driver = a.driver
    cdef size_t size = plain_nbytes(a, pool, nbytes)
    cdef uint64_t ptr = 0
    cdef Segment* segment = _adopt(a, pool, stream, size)
    if segment != NULL:
        pool_trim(pool, segment.first, nbytes)
        status[0] = STATUS_OK
        return segment.first
    if not limit_claim(a, size):
        status[0] = STATUS_OUT_OF_MEMORY
        return NULL
    in_flight_begin(a)
    device_unlock(a)
    status[0] = driver.mem_alloc(driver.self, &ptr, size)
    device_lock(a)
    in_flight_end(a, status[0] == STATUS_OK or a.limit_nbytes != SIZE_MAX)
    limit_settle(a, size)
    if status[0] != STATUS_OK:
        return NULL
    segment = segment_new(pool, ptr, size, False, stream, 0)
    if segment == NULL:
        driver.mem_free(driver.self, ptr)
        status[0] = STATUS_OUT_OF_MEMORY
        return NULL
    a.num_device_alloc += 1
    account_pool_reserved(a, pool, <int64_t>size)
    account_segment(a, pool.kind, 1)
    if size >= a.config.max_split_size:
        segment.is_oversize = True
        stat_change(&a.oversize_segments, 1)
    if history_enabled(a.device):
        history_record(a.device, HISTORY_SEGMENT_ALLOC, ptr, size, stream, stack_of_request(),
                       pool.pool_id)
    pool_trim(pool, segment.first, nbytes)
    return segment.first
