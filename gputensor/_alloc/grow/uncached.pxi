"""One driver allocation for each request, with the same accounting as the pools.

Used while caching is off (every free returns memory to the driver, which waits for the device), and
with ``backend:cudaMallocAsync``, where the driver's own pool orders reuse by streams. Such a block
belongs to no pool and no segment (`block.pool == NULL`). Requests of private pools do not come
here: memory that the driver takes back could not stay where a graph's replays write. If the driver
has no memory, or a limit is reached, cached memory of the pools goes back before the request fails.

During a capture no memory returns to the driver's pool, since the free would become part of the
graph: such frees are kept (`unreleased`) and made when the capture ends.
"""

cdef status_t _driver_alloc(DeviceAllocator* a, Block* block, uint64_t stream) noexcept nogil:
    cdef Driver* driver = a.driver
    if a.config.backend == BACKEND_ASYNC:
        block.is_split = 2                      # came from the driver's pool
        return driver.async_alloc(driver.self, &block.ptr, block.nbytes, stream)
    block.is_split = 0
    return driver.mem_alloc(driver.self, &block.ptr, block.nbytes)


cdef status_t _give_back(DeviceAllocator* a, Block* block) noexcept nogil:
    cdef Driver* driver = a.driver
    while block.uses != NULL:
        # The driver orders a free after the block's own stream only.
        use = row_pop(&block.uses)
        if block.is_split == 2:
            driver.stream_synchronize(driver.self, use.stream)
        free(use)
    if block.is_split == 2:
        return driver.async_free(driver.self, block.ptr, block.stream)
    return driver.mem_free(driver.self, block.ptr)


# The memory that is missing may be cached in the pools, from before or for other threads. The
# driver's pool takes a block back when its stream gets there: waiting may make room.
cdef void _make_room(DeviceAllocator* a) noexcept nogil:
    a.num_alloc_retries += 1
    caches_drain(a)
    synchronize_all(a)
    if a.pending != NULL:
        pending_poll(a)
    uncached_release(a)
    release_all(a)


# Requests the memory from the driver, within the limit. Drops the lock.
cdef status_t _try(DeviceAllocator* a, Block* block) noexcept nogil:
    cdef status_t status
    if not limit_claim(a, block.nbytes):
        return STATUS_OUT_OF_MEMORY
    in_flight_unlock(a)
    status = _driver_alloc(a, block, block.stream)
    if status == STATUS_OK and not block_map_insert(block):
        _give_back(a, block)
        status = STATUS_OUT_OF_MEMORY
    in_flight_lock(a, status == STATUS_OK)      # or two that fail would wait for each other
    a.making_nbytes -= block.nbytes
    return status


cdef Block* uncached_malloc(DeviceAllocator* a, size_t nbytes, size_t rounded, uint64_t stream,
                            status_t* status) noexcept nogil:
    cdef Block* block = block_new()
    cdef Held held
    cdef uint64_t others, frees
    cdef int _turn
    if block == NULL:
        status[0] = STATUS_OUT_OF_MEMORY
        return NULL
    block.nbytes = rounded
    block.requested = nbytes
    block.stream = stream
    block.device = a.device
    block.kind = POOL_SMALL if rounded <= SMALL_LIMIT else POOL_LARGE
    block.state = BLOCK_ALLOCATED
    held.take(&a.lock)
    status[0] = _try(a, block)
    for _turn in range(ATTEMPTS):
        if status[0] != STATUS_OUT_OF_MEMORY or a.capturing:
            break
        others = in_flight_others(a)
        frees = a.frees
        _make_room(a)
        status[0] = _try(a, block)
        # Like a miss, it does not fail while other threads have memory in flight, or free some.
        if status[0] == STATUS_OUT_OF_MEMORY and not in_flight_wait(a, others, frees):
            break
    if status[0] != STATUS_OK:
        a.num_ooms += 1
        block_drop(block)
        return NULL
    a.num_device_alloc += 1
    row_push(&a.uncached, block)
    history_record(a.device, HISTORY_SEGMENT_ALLOC, block.ptr, rounded, stream,
                   stack_of_request(), 0)
    account_reserved(a, block.kind, <int64_t>rounded)
    account_segment(a, block.kind, 1)
    account_give(a, block.kind, rounded, nbytes)
    return block


cdef void _settle(DeviceAllocator* a, Block* block) noexcept nogil:
    a.num_device_free += 1
    row_remove(&a.uncached, block)
    history_record(a.device, HISTORY_SEGMENT_FREE, block.ptr, block.nbytes, block.stream,
                   stack_of_request(), 0)
    account_reserved(a, block.kind, -<int64_t>block.nbytes)
    account_segment(a, block.kind, -1)
    block_drop(block)


# Drops the lock, unless a capture forbids the call.
cdef bint _try_back(DeviceAllocator* a, Block* block) noexcept nogil:
    cdef bint names_streams = block.is_split == 2
    cdef status_t status
    if names_streams and a.capturing:
        return False
    a.driver_requests += names_streams            # so that no capture begins meanwhile
    device_unlock(a)
    status = _give_back(a, block)
    device_lock(a)
    a.driver_requests -= names_streams
    return status == STATUS_OK


cdef void uncached_free(DeviceAllocator* a, Block* block) noexcept nogil:
    cdef bint is_back
    cdef Held held
    block_map_remove(block)
    held.take(&a.lock)
    is_back = _try_back(a, block)
    account_take(a, block.kind, block.nbytes, block.requested)
    if is_back:
        _settle(a, block)
    else:
        block.requested = 0
        block.state = BLOCK_FREE        # reserved, and without owner
        chain_push(&a.unreleased, block)


cdef void uncached_release(DeviceAllocator* a) noexcept nogil:
    cdef Block* unreleased = a.unreleased
    a.unreleased = NULL
    while unreleased != NULL:
        block = chain_pop(&unreleased)
        if _try_back(a, block):
            _settle(a, block)
        else:
            chain_push(&a.unreleased, block)
