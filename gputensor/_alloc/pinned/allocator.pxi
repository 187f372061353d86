"""Pinned host memory: its owners, the streams that still use it, and its return.

A copy between pinned memory and a device runs on while the host goes on, so a freed block waits for
the streams that used it. `pinned_free` records one event on each of them and returns. The
events are checked only when a request finds no free block: then the queues are read, oldest first,
and a request that still finds no block allocates from the system. If the system has no memory
either, the request waits for events one after the other, then returns whole free segments, and
only then fails.

During a capture no event may be recorded on the capturing stream. A block used by captured work
belongs to the graph: when freed it waits until `pinned_capture_done` names its capture. A block
whose other streams happen to capture when it is freed is marked later.

Locks: PinnedPool.lock only, a spin lock never held over a driver call.
"""

cdef extern from "<stdint.h>" nogil:
    uint64_t UINT64_MAX


cdef Block* pinned_malloc(int device, size_t nbytes, status_t* status) noexcept nogil:
    return pinned_malloc_named(device, nbytes, stack_capture_if(HISTORY_STACK_ALLOC), status)


# The same with the stack that history and snapshots name (history.pxd); pinned_malloc takes the
# caller's when it holds the GIL.
cdef Block* pinned_malloc_named(int device, size_t nbytes, uint32_t stack,
                                status_t* status) noexcept nogil:
    cdef size_t rounded = (nbytes + UNIT - 1) // UNIT * UNIT
    if driver_get(device) == NULL:
        status[0] = STATUS_INVALID_DEVICE
        return NULL
    if not (is_configured or _configure()) or nbytes == 0:
        status[0] = STATUS_INVALID_VALUE
        return NULL
    pool = pinned_pool(device)
    if pool == NULL or nbytes >> 50:
        status[0] = STATUS_OUT_OF_MEMORY
        return NULL
    status[0] = STATUS_OK
    block = pinned_take(pool, rounded)
    if block == NULL:
        _retire_captures(pool)
        pinned_collect(pool)
        block = pinned_take(pool, rounded)
    if block == NULL:
        block = _grow_or_wait(pool, rounded, stack, status)
    if block != NULL:
        gt_spin_lock(&pool.lock)        # a snapshot may read it now
        block.requested = nbytes
        block.stack = stack
        gt_spin_unlock(&pool.lock)
        block.uses = NULL
        status[0] = STATUS_OK
        history_record_pinned(device, HISTORY_ALLOC, block.ptr, block.nbytes, nbytes, stack)
    return block


cdef Block* _grow_or_wait(PinnedPool* pool, size_t rounded, uint32_t stack,
                          status_t* status) noexcept nogil:
    """Ask the system, and when it has nothing, everything that can help it."""
    cdef Block* block = NULL
    if config.pinned_reserve_segment >= rounded and not pool.is_reserved:
        pool.is_reserved = True
        block = pinned_grow(pool, config.pinned_reserve_segment, rounded, stack, status)
    if block == NULL:
        block = pinned_grow(pool, rounded, rounded, stack, status)
    while block == NULL and pinned_wait_oldest(pool):
        block = pinned_take(pool, rounded)
    if block == NULL:
        pinned_trim(pool, 0)
        block = pinned_grow(pool, rounded, rounded, stack, status)
    return block


cdef status_t pinned_use(Block* block, uint64_t stream) noexcept nogil:
    cdef StreamUse* use
    cdef Driver* driver = driver_get(block.device)
    cdef int active = 0
    cdef uint64_t capture_id = 0
    cdef status_t status = driver.capture_info(driver.self, stream, &active, &capture_id)
    if status != STATUS_OK:
        return status
    if active:
        return _use_in_capture(block, capture_id)
    for use in each(block.uses):
        if use.stream == stream:
            return STATUS_OK
    use = <StreamUse*>malloc(sizeof(StreamUse))
    if use == NULL:
        # Without a record of the use its work must be over before anyone can free the block.
        return driver.stream_synchronize(driver.self, stream)
    use.stream = stream
    row_push(&block.uses, use)
    return STATUS_OK


# The record of a capture whose graph is there; 0: of any whose graph is gone.
cdef PinnedCapture* _capture_locked(PinnedPool* pool, uint64_t capture_id) noexcept nogil:
    cdef PinnedCapture* record
    for record in each(pool.captures):
        if record.is_gone if capture_id == 0 else record.capture_id == capture_id:
            return record
    return NULL


cdef status_t _use_in_capture(Block* block, uint64_t capture_id) noexcept nogil:
    cdef SpinHeld held
    pool = pinned_pool_of(block)
    held.take(&pool.lock)
    if _capture_locked(pool, capture_id) == NULL:
        record = <PinnedCapture*>calloc(1, sizeof(PinnedCapture))
        if record == NULL:
            return STATUS_OUT_OF_MEMORY
        record.capture_id = capture_id
        row_push(&pool.captures, record)
    # Used by two graphs: it is not known which goes last, so it never comes back.
    block.epoch = capture_id if block.epoch == 0 or block.epoch == capture_id else UINT64_MAX
    return STATUS_OK


# Keeps a freed block for the graph that uses it; False: there is none.
cdef bint _keep_captured(PinnedPool* pool, Block* block) noexcept nogil:
    cdef SpinHeld held
    held.take(&pool.lock)
    if block.epoch != UINT64_MAX and _capture_locked(pool, block.epoch) == NULL:
        return False
    block.state = BLOCK_PENDING
    chain_push(&pool.captured, block)
    return True


cdef void pinned_free(Block* block) noexcept nogil:
    pool = pinned_pool_of(block)
    if pool.is_closed:
        return
    history_record_pinned(pool.device, HISTORY_FREE_REQUESTED, block.ptr, block.nbytes,
                          block.nbytes, stack_capture_if(HISTORY_STACK_FREE))
    if block.epoch == 0 or not _keep_captured(pool, block):
        _leave(pool, block)


cdef void _leave(PinnedPool* pool, Block* block) noexcept nogil:
    """The block's owner and the graphs are done with it; its streams may not be."""
    block.epoch = 0
    if block.uses == NULL:
        pinned_give_back(pool, block)
        return
    gt_spin_lock(&pool.lock)
    block.state = BLOCK_PENDING
    gt_spin_unlock(&pool.lock)
    pinned_await(pool, block)


# The graph made by capture `capture_id` is given up: once its launches are done, blocks that it
# used are reused when they are freed.
cdef void pinned_capture_done(int device, uint64_t capture_id) noexcept nogil:
    pool = pinned_pool_peek(device)
    if pool == NULL:
        return
    gt_spin_lock(&pool.lock)
    record = _capture_locked(pool, capture_id)
    if record != NULL:
        record.is_gone = True
    gt_spin_unlock(&pool.lock)
    _retire_captures(pool)


# Takes a capture that is gone off the list, and the blocks that wait for it.
cdef bint _take_gone(PinnedPool* pool, Block** released) noexcept nogil:
    cdef Block* kept = NULL
    cdef SpinHeld held
    held.take(&pool.lock)
    record = _capture_locked(pool, 0)
    if record == NULL:
        return False
    while pool.captured != NULL:
        block = chain_pop(&pool.captured)
        chain_push(released if block.epoch == record.capture_id else &kept, block)
    pool.captured = kept
    row_remove(&pool.captures, record)
    free(record)
    return True


cdef void _retire_captures(PinnedPool* pool) noexcept nogil:
    """Free what graphs that are gone have used. Waits for the device, as their launches may run."""
    cdef Block* released = NULL
    driver = driver_get(pool.device)
    allocator = allocator_find(pool.device)
    gt_spin_lock(&pool.lock)
    record = _capture_locked(pool, 0)
    gt_spin_unlock(&pool.lock)
    # Waiting for the device would break a capture that is under way: later, then.
    if (record == NULL or (allocator != NULL and allocator.capturing)
            or driver.synchronize(driver.self) != STATUS_OK):
        return
    if _take_gone(pool, &released):
        while released != NULL:
            _leave(pool, chain_pop(&released))


# Free blocks whose work is done come back, and free segments go back to the system.
cdef void pinned_empty_cache(int device) noexcept nogil:
    cdef PinnedPool* pool = pinned_pool_peek(device)
    if pool != NULL and driver_get(device) != NULL:
        _retire_captures(pool)
        pinned_collect(pool)
        pinned_trim(pool, 0)


# Gives everything back that is not in use and forgets the device: before the device is closed.
cdef void pinned_close(int device) noexcept nogil:
    cdef PinnedPool* pool = pinned_pool_peek(device)
    if pool == NULL or driver_get(device) == NULL:
        return
    pinned_collect(pool)
    while pinned_wait_oldest(pool):
        pass
    pinned_trim(pool, 0)
    pinned_pool_detach(pool)
    pinned_drop_events(pool)


# ---- the slot of this room (registry.pxd) ----

cdef int _close(int device) except -1:
    with nogil:
        pinned_close(device)
    return 0


# In the child of a fork the pools are its parent's: blocks that come back are only forgotten.
cdef void _fork() noexcept nogil:
    cdef int device
    for device in range(-HOST_DEVICES, MAX_DEVICES - HOST_DEVICES):
        pool = pinned_pool_peek(device)
        if pool != NULL:
            pool.is_closed = True
    gt_spin_unlock(&pools_lock)
    pinned_ranges.renew()


cdef Slot slot
slot.nbytes = sizeof(PinnedPool*)
slot.close = _close
slot.fork = _fork
cdef int pinned_slot = register_slot(&slot)


cdef int raise_for_pinned(int device, size_t nbytes, status_t status) except -1:
    cdef PinnedPool* pool = pinned_pool_peek(device)
    if status == STATUS_INVALID_VALUE:
        _settings.current()     # raises when the environment variable is bad
        raise ValueError(f"nbytes: got {nbytes}; expected an integer above 0")
    if status == STATUS_OUT_OF_MEMORY:
        reserved = 0 if pool == NULL else pool.figures.stats[PINNED_SEGMENTS + 1].current
        active = 0 if pool == NULL else pool.figures.stats[PINNED_BLOCKS + 1].current
        raise OutOfMemoryError(
            f"out of pinned host memory: requested {nbytes} bytes; in use {active}, "
            f"reserved {reserved}",
            "exhausted",
            {"requested": nbytes, "allocated": active, "reserved": reserved},
        )
    raise_for_status(status, "pinned_alloc", f"while making {nbytes} bytes of pinned memory")
