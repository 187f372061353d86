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
    cdef PinnedPool* pool
    cdef Block* block
    cdef size_t rounded = (nbytes + UNIT - 1) // UNIT * UNIT
    if driver_get(device) == NULL:
        status[0] = STATUS_INVALID_DEVICE
        return NULL
    if not pinned_configured() or nbytes == 0:
        status[0] = STATUS_INVALID_VALUE
        return NULL
    pool = pinned_pool(device)
    if pool == NULL or nbytes >> 50:
        status[0] = STATUS_OUT_OF_MEMORY
        return NULL
    status[0] = STATUS_OK
    block = pinned_take(pool, rounded)
    if block == NULL and _is_waiting(pool):
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
        if history_enabled(device):
            history_record_pinned(device, HISTORY_ALLOC, block.ptr, block.nbytes, nbytes, stack)
    return block


cdef bint _is_waiting(PinnedPool* pool) noexcept nogil:
    cdef bint is_waiting
    gt_spin_lock(&pool.lock)
    is_waiting = pool.waiting != 0
    gt_spin_unlock(&pool.lock)
    return is_waiting


cdef Block* _grow_or_wait(PinnedPool* pool, size_t rounded, uint32_t stack,
                          status_t* status) noexcept nogil:
    """Ask the system, and when it has nothing, everything that can help it."""
    cdef Block* block = NULL
    if pinned_reserve_segment() >= rounded and not pool.is_reserved:
        pool.is_reserved = True
        block = pinned_grow(pool, pinned_reserve_segment(), rounded, stack, status)
    if block == NULL:
        block = pinned_grow(pool, rounded, rounded, stack, status)
    while block == NULL and pinned_wait_oldest(pool):
        block = pinned_take(pool, rounded)
    if block == NULL:
        pinned_trim(pool, 0)
        block = pinned_grow(pool, rounded, rounded, stack, status)
    return block


cdef status_t pinned_use(Block* block, uint64_t stream) noexcept nogil:
    cdef Driver* driver = driver_get(block.device)
    cdef StreamUse* use = block.uses
    cdef int active = 0
    cdef uint64_t capture_id = 0
    cdef status_t status = driver.capture_info(driver.self, stream, &active, &capture_id)
    if status != STATUS_OK:
        return status
    if active:
        return _use_in_capture(block, capture_id)
    while use != NULL:
        if use.stream == stream:
            return STATUS_OK
        use = use.next
    use = <StreamUse*>malloc(sizeof(StreamUse))
    if use == NULL:
        # Without a record of the use its work must be over before anyone can free the block.
        return driver.stream_synchronize(driver.self, stream)
    use.stream = stream
    use.next = block.uses
    block.uses = use
    return STATUS_OK


cdef PinnedCapture** _capture_locked(PinnedPool* pool, uint64_t capture_id) noexcept nogil:
    """The link to the record of a capture; the link at the end of the list when there is none."""
    cdef PinnedCapture** link = &pool.captures
    while link[0] != NULL and link[0].capture_id != capture_id:
        link = &link[0].next
    return link


cdef status_t _use_in_capture(Block* block, uint64_t capture_id) noexcept nogil:
    cdef PinnedPool* pool = pinned_pool_of(block)
    cdef PinnedCapture* record = <PinnedCapture*>malloc(sizeof(PinnedCapture))
    cdef PinnedCapture** link
    if record == NULL:
        return STATUS_OUT_OF_MEMORY
    record.capture_id = capture_id
    record.is_gone = False
    record.next = NULL
    gt_spin_lock(&pool.lock)
    link = _capture_locked(pool, capture_id)
    if link[0] == NULL:
        link[0] = record
        record = NULL
    # Used by two graphs: it is not known which goes last, so it never comes back.
    block.epoch = capture_id if block.epoch == 0 or block.epoch == capture_id else UINT64_MAX
    gt_spin_unlock(&pool.lock)
    free(record)
    return STATUS_OK


cdef void pinned_free(Block* block) noexcept nogil:
    cdef PinnedPool* pool = pinned_pool_of(block)
    cdef bint is_kept = False
    if pool.is_closed:
        return
    if history_enabled(pool.device):
        history_record_pinned(pool.device, HISTORY_FREE_REQUESTED, block.ptr, block.nbytes,
                              block.nbytes, stack_capture_if(HISTORY_STACK_FREE))
    if block.epoch != 0:
        gt_spin_lock(&pool.lock)
        if block.epoch == UINT64_MAX or _capture_locked(pool, block.epoch)[0] != NULL:
            block.state = BLOCK_PENDING
            block.link_next = pool.captured
            pool.captured = block
            is_kept = True
        gt_spin_unlock(&pool.lock)
    if not is_kept:
        _leave(pool, block)


cdef void _leave(PinnedPool* pool, Block* block) noexcept nogil:
    """The block's owner and the graphs are done with it; its streams may not be."""
    block.epoch = 0
    if block.uses == NULL:
        pinned_give_back(pool, block)
        return
    gt_spin_lock(&pool.lock)
    block.state = BLOCK_PENDING
    pool.waiting += 1
    gt_spin_unlock(&pool.lock)
    pinned_await(pool, block)


# The graph made by capture `capture_id` is given up: once its launches are done, blocks that it
# used are reused when they are freed.
cdef void pinned_capture_done(int device, uint64_t capture_id) noexcept nogil:
    cdef PinnedPool* pool = pinned_pool_peek(device)
    cdef PinnedCapture* record
    if pool == NULL:
        return
    gt_spin_lock(&pool.lock)
    record = _capture_locked(pool, capture_id)[0]
    if record != NULL and not record.is_gone:
        record.is_gone = True
        pool.waiting += 1
    gt_spin_unlock(&pool.lock)
    if record != NULL:
        _retire_captures(pool)


cdef PinnedCapture** _gone_locked(PinnedPool* pool) noexcept nogil:
    """The link to a capture that is gone; the link at the end of the list when there is none."""
    cdef PinnedCapture** link = &pool.captures
    while link[0] != NULL and not link[0].is_gone:
        link = &link[0].next
    return link


cdef void _retire_captures(PinnedPool* pool) noexcept nogil:
    """Free what graphs that are gone have used. Waits for the device, as their launches may run."""
    cdef Driver* driver = driver_get(pool.device)
    cdef DeviceAllocator* allocator = allocator_find(pool.device)
    cdef PinnedCapture** link
    cdef PinnedCapture* record
    gt_spin_lock(&pool.lock)
    record = _gone_locked(pool)[0]
    gt_spin_unlock(&pool.lock)
    # Waiting for the device would break a capture that is under way: later, then.
    if record == NULL or (allocator != NULL and allocator.capturing):
        return
    if driver.synchronize(driver.self) != STATUS_OK:
        return
    gt_spin_lock(&pool.lock)
    link = _gone_locked(pool)
    record = link[0]
    if record != NULL:
        link[0] = record.next
        pool.waiting -= 1
    gt_spin_unlock(&pool.lock)
    if record != NULL:
        _release_captured(pool, record.capture_id)
        free(record)


cdef void _release_captured(PinnedPool* pool, uint64_t capture_id) noexcept nogil:
    cdef Block** link
    cdef Block* block
    cdef Block* released = NULL
    gt_spin_lock(&pool.lock)
    link = &pool.captured
    while link[0] != NULL:
        block = link[0]
        if block.epoch == capture_id:
            link[0] = block.link_next
            block.link_next = released
            released = block
        else:
            link = &block.link_next
    gt_spin_unlock(&pool.lock)
    while released != NULL:
        block = released
        released = block.link_next
        _leave(pool, block)


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
    cdef PinnedPool* pool
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
        reserved = 0 if pool == NULL else pool.allocated_bytes.current
        active = 0 if pool == NULL else pool.active_bytes.current
        raise OutOfMemoryError(
            f"out of pinned host memory: requested {nbytes} bytes; in use {active}, "
            f"reserved {reserved}",
            "exhausted",
            {"requested": nbytes, "allocated": active, "reserved": reserved},
        )
    raise_for_status(status, "pinned_alloc", f"while making {nbytes} bytes of pinned memory")
