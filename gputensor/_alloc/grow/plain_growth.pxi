"""Growth by plain segments: the memory of one driver call each.

Before another pool grows, it takes over a free segment of the default pool that fits: that costs no
driver call, and pools that are made in a loop use the same memory.
"""

# The source of a pool's plain segments in place of the driver; NULL: the driver.
cdef MemorySource* pool_source(BlockPool* pool) noexcept nogil:
    return <MemorySource*>NULL if pool.owner == NULL else pool.owner.source


# One call of a user's functions.
cdef struct SourceCall:
    MemorySource* source
    size_t nbytes
    int device
    void* stream
    void* ptr


cdef void _source_take(void* argument) noexcept nogil:
    cdef SourceCall* call = <SourceCall*>argument
    call.ptr = call.source.allocate(call.nbytes, call.device, call.stream)


cdef void _source_give(void* argument) noexcept nogil:
    cdef SourceCall* call = <SourceCall*>argument
    call.source.release(call.ptr, call.nbytes, call.device, call.stream)


# The address of new memory, from the driver or a user's functions. Without the lock.
cdef status_t _plain_take(DeviceAllocator* a, MemorySource* source, uint64_t* ptr, size_t nbytes,
                          uint64_t stream) noexcept nogil:
    cdef SourceCall call
    cdef status_t status
    if source == NULL:
        return a.driver.mem_alloc(a.driver.self, ptr, nbytes)
    call = SourceCall(source, nbytes, a.device, <void*>stream, NULL)
    status = a.driver.call_apart(a.driver.self, _source_take, &call)
    ptr[0] = <uint64_t>call.ptr
    if status == STATUS_OK and ptr[0] % UNIT:
        plain_give_back(a, source, ptr[0], nbytes, stream)
        return STATUS_MISALIGNED
    return STATUS_OUT_OF_MEMORY if status == STATUS_OK and call.ptr == NULL else status


# Gives memory back to the driver, which waits for the device, or to its source. Without the lock.
cdef status_t plain_give_back(DeviceAllocator* a, MemorySource* source, uint64_t ptr,
                              size_t nbytes, uint64_t stream) noexcept nogil:
    cdef SourceCall call
    if source == NULL:
        return a.driver.mem_free(a.driver.self, ptr)
    call = SourceCall(source, nbytes, a.device, <void*>stream, <void*>ptr)
    return a.driver.call_apart(a.driver.self, _source_give, &call)


# The size of the segment that a request makes.
cdef size_t plain_nbytes(DeviceAllocator* a, BlockPool* pool, size_t nbytes) noexcept nogil:
    if pool.kind == POOL_SMALL:
        return SMALL_SEGMENT
    if (nbytes < MIN_LARGE and nbytes <= a.config.large_segment_size
            and (pool.owner == NULL or not pool.owner.capturing)):
        return a.config.large_segment_size
    return (nbytes + ROUND_LARGE - 1) // ROUND_LARGE * ROUND_LARGE


# A plain segment of the default pool that is free, done, and little larger than `nbytes` goes to
# another pool without a driver call. NULL when there is none.
cdef Segment* _adopt(DeviceAllocator* a, Request* request, size_t nbytes) noexcept nogil:
    cdef BlockPool* source = &a.pools[request.pool.kind]
    cdef Segment* segment
    cdef Segment* best = NULL
    for segment in each(source.segments if source != request.pool else <Segment*>NULL):
        if (segment.source == NULL and nbytes <= segment.nbytes <= nbytes + nbytes // 4
                and (best == NULL or segment.nbytes < best.nbytes) and segment_is_done(segment)):
            best = segment
    if best != NULL:
        block = segment_move(best, request.pool)
        best.stream = block.stream = request.stream
        block.epoch = 0
    return best


# A HELD block of the requested size or a little more, in a segment new to the pool, or NULL.
cdef Block* plain_grow(DeviceAllocator* a, Request* request) noexcept nogil:
    cdef BlockPool* pool = request.pool
    cdef uint64_t stream = request.stream
    cdef size_t size = plain_nbytes(a, pool, request.nbytes)
    cdef uint64_t ptr = 0
    cdef MemorySource* source = pool_source(pool)
    cdef Segment* segment = NULL
    request.status = STATUS_OK
    if source == NULL:
        segment = _adopt(a, request, size)
    if segment == NULL:
        if not limit_claim(a, size):
            request.status = STATUS_OUT_OF_MEMORY
            return NULL
        in_flight_unlock(a)
        request.status = _plain_take(a, source, &ptr, size, stream)
        in_flight_lock(a, request.status == STATUS_OK or a.limit_nbytes != SIZE_MAX)
        a.making_nbytes -= size
        if request.status != STATUS_OK:
            return NULL
        segment = segment_new(pool, ptr, size, False, stream, 0)
        if segment == NULL:
            plain_give_back(a, source, ptr, size, stream)
            request.status = STATUS_OUT_OF_MEMORY
            return NULL
        segment.source = source
        a.num_device_alloc += 1
        account_pool_reserved(a, pool, <int64_t>size)
        account_segment(a, pool.kind, 1)
        if size >= a.config.max_split_size:
            segment.is_oversize = True
            stat_change(&a.oversize_segments, 1)
        history_segment(HISTORY_SEGMENT_ALLOC, segment, ptr, size, stack_of_request())
    pool_trim(pool, segment.first, request.nbytes)
    return segment.first
