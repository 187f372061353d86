"""The functions that callers use: the thread cache first, then the pools, then the steps of a miss.

If the caller holds the GIL, a hit keeps it; a miss releases it, because its steps may call the
driver and wait.
"""

cdef enum:
    LARGEST_REQUEST = 0x4000000000000   # a petabyte: no sum of such sizes overflows


cdef Block* _miss(DeviceAllocator* a, size_t nbytes, size_t rounded, uint64_t stream, bint uncached,
                  status_t* status) noexcept nogil:
    cdef PyThreadState* state = NULL
    if PyGILState_Check():
        state = PyEval_SaveThread()
    if uncached:
        block = uncached_malloc(a, nbytes, rounded, stream, status)
    else:
        block = central_miss(a, nbytes, rounded, stream, status)
    if state != NULL:
        PyEval_RestoreThread(state)
    return block


# Whether a request that is not for the cache goes to the driver: those of private pools do not.
cdef bint _is_uncached(DeviceAllocator* a, uint64_t stream) noexcept nogil:
    cdef Held held
    if gt_load(&a.scope_count) == 0:
        return True
    held.take(&a.lock)
    return scope_pools(a, stream) == a.pools


cdef inline Block* _malloc(DeviceAllocator* a, size_t nbytes, uint64_t stream,
                           status_t* status) noexcept nogil:
    cdef size_t rounded
    cdef ThreadCache* cache = NULL
    cdef Block* block = NULL
    status[0] = STATUS_OK
    if nbytes == 0:
        status[0] = STATUS_INVALID_VALUE
        return NULL
    if nbytes > LARGEST_REQUEST:
        device_lock(a)
        a.num_ooms += 1
        device_unlock(a)
        status[0] = STATUS_OUT_OF_MEMORY
        return NULL
    rounded = round_size(a, nbytes)
    if (not a.caching or a.config.backend != BACKEND_NATIVE) and _is_uncached(a, stream):
        return _miss(a, nbytes, rounded, stream, True, status)
    if a.config.thread_cache and gt_load(&a.scope_count) == 0:
        cache = cache_mine(a)
        if cache != NULL:
            block = cache_take(cache, rounded, nbytes, stream)
    if block == NULL:
        block = central_take(a, nbytes, rounded, stream)
        if block == NULL:
            block = _miss(a, nbytes, rounded, stream, False, status)
            if block == NULL:
                return NULL
        # Oversize blocks are counted in the pools only.
        if block.pool.pool_id == 0 and block.view == NULL and not block.is_oversize:
            block.home = cache
    return block


cdef Block* allocator_malloc(int device, size_t nbytes, uint64_t stream,
                             status_t* status) noexcept nogil:
    cdef DeviceAllocator* a = allocator_find(device)
    cdef uint32_t stack = 0
    if a == NULL:
        a = allocator_open(device)
        if a == NULL:
            status[0] = STATUS_INVALID_DEVICE
            return NULL
    if history_enabled(device):
        stack = stack_for_request(HISTORY_STACK_ALLOC)
    block = _malloc(a, nbytes, stream, status)
    if stack != 0:
        stack_for_request(0)
    if block != NULL:
        gt_store(&block.stack, stack)    # a snapshot may read it now
        if history_enabled(device):
            block_event_alloc(block, stack)
    check_after(device, "malloc")
    return block


cdef void allocator_free(Block* block) noexcept nogil:
    cdef int device = block.device
    cdef DeviceAllocator* a = allocator_find(device)
    cdef uint32_t stack = 0
    if a == NULL:
        return                      # the device was closed, and the memory went with it
    if history_enabled(device):
        # A block of no pool goes back to the driver at once, which waits for the uses itself.
        stack = stack_for_request(HISTORY_STACK_FREE)
        block_event_free(block, stack, block.uses == NULL or block.pool == NULL)
    if block.home == NULL or block.uses != NULL or not cache_put(block.home, block):
        if block.pool == NULL:
            uncached_free(a, block)
        else:
            central_free(a, block)
    if stack != 0:
        stack_for_request(0)
    check_after(device, "free")


cdef status_t allocator_record_stream(Block* block, uint64_t stream) noexcept nogil:
    cdef DeviceAllocator* a = allocator_find(block.device)
    cdef Held held
    if stream == block.stream:
        return STATUS_OK
    device_hold(a, &held, "record_stream")
    return use_add(block, stream)


cdef status_t allocator_synchronize(int device) noexcept nogil:
    cdef DeviceAllocator* a = allocator_find(device)
    cdef Held held
    if a == NULL:
        driver = driver_get(device)
        return driver.synchronize(driver.self)
    device_hold(a, &held, "synchronize")
    return progress_synchronize(a)


cdef status_t allocator_settle(int device) noexcept nogil:
    cdef DeviceAllocator* a = allocator_find(device)
    cdef Held held
    cdef status_t status
    if a == NULL:
        return allocator_synchronize(device)
    device_hold(a, &held, "the wait before a capture")
    if a.capturing:
        return STATUS_CAPTURE_UNSUPPORTED
    caches_drain(a)             # first: cached blocks are done after the wait, too
    status = progress_synchronize(a)
    if status == STATUS_OK and not a.capturing:
        pending_poll(a)
        retired_pools_settle(a)
        collect_for_capture(a)
    return status


def explain_with(function):
    """Have `function(device, nbytes, stream, status)` raise for every request that fails."""
    global explain_failure
    explain_failure = function


cdef int raise_for_malloc(int device, size_t nbytes, uint64_t stream,
                          status_t status) except -1 with gil:
    if status != STATUS_OK:
        explain_failure(device, nbytes, stream, status)
    return 0
