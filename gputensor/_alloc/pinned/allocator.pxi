"""Pinned host memory: its owners, the streams that still use it, and its return.

A copy between pinned memory and a device is still running when the call that queues it returns, so
a freed block waits for the streams that used it. `pinned_free` records one event on each of them
and returns. Events are queried only when a request finds no free block: then the queues are read,
oldest first, and a request that still finds no block allocates from the system. If the system has
no memory either, the request waits for one event after the other, then returns whole free segments,
and fails only after that.

No event may be recorded on a stream that captures. A block used by captured work belongs to the
graph: when freed, it waits until `pinned_capture_done` names its capture. A block whose other
streams are capturing when it is freed begins to wait later. Both are `deferred`.

Locks: that of the pool's allocator, never held over a driver call.
"""

cdef extern from "<stdint.h>" nogil:
    uint64_t UINT64_MAX

cdef enum:                      # CaptureState
    CAPTURE_LIVE = 0
    CAPTURE_GONE = 1            # its graph was given up; launches may still run
    CAPTURE_AWAITED = 2         # ... and a thread waits for them


# The pool of a block.
cdef inline PinnedPool* _pool_of(const Block* block) noexcept nogil:
    return <PinnedPool*>block.pool.allocator


cdef Block* pinned_malloc(int device, size_t nbytes, status_t* status) noexcept nogil:
    stack_for_request(HISTORY_STACK_ALLOC)
    block = _malloc(device, nbytes, status)
    stack_for_request(0)
    return block


# The same with the stack that the thread captured last.
cdef Block* _malloc(int device, size_t nbytes, status_t* status) noexcept nogil:
    cdef Held held
    pool = pinned_pool_peek(device)
    status[0] = STATUS_OK
    if driver_get(device) == NULL:
        status[0] = STATUS_INVALID_DEVICE
    elif nbytes == 0:
        status[0] = STATUS_INVALID_VALUE
    elif nbytes >> 50:
        status[0] = STATUS_OUT_OF_MEMORY
    elif pool == NULL:
        status[0] = _open(device)
        pool = pinned_pool_peek(device)
    if status[0] != STATUS_OK:
        return NULL
    a = &pool.a
    device_hold(a, &held, "a request for pinned memory")
    block = _take(pool, (nbytes + UNIT - 1) // UNIT * UNIT, status)
    if block == NULL:
        return NULL
    block.state = BLOCK_ALLOCATED
    block.requested = nbytes
    block.stack = stack_of_request()
    block.epoch = 0
    account_give(a, block.kind, block.nbytes, nbytes)
    if history_enabled(device):
        block_event_alloc(block, block.stack)
    return block


# A HELD block of `nbytes`: from the pool, otherwise from the system, otherwise from the pool after
# a wait, and at last from the system once all free segments were returned to it.
cdef Block* _take(PinnedPool* pool, size_t nbytes, status_t* status) noexcept nogil:
    cdef DeviceAllocator* a = &pool.a
    block = pool_take(a.pools, 0, nbytes)
    if block == NULL:
        _collect(pool)
        block = pool_take(a.pools, 0, nbytes)
    if block == NULL and a.config.pinned_reserve_segment_size >= nbytes and not pool.is_reserved:
        pool.is_reserved = True
        block = pinned_grow(pool, a.config.pinned_reserve_segment_size, nbytes, status)
    if block == NULL:
        block = pinned_grow(pool, nbytes, nbytes, status)
    while block == NULL and pending_wait_one(a):
        block = pool_take(a.pools, 0, nbytes)
    if block == NULL:
        pinned_trim(pool, 0)
        block = pinned_grow(pool, nbytes, nbytes, status)
    return block


cdef status_t pinned_use(Block* block, uint64_t stream) noexcept nogil:
    cdef Driver* driver = driver_get(block.device)
    cdef int active = 0
    cdef uint64_t capture_id = 0
    cdef status_t status = driver.capture_info(driver.self, stream, &active, &capture_id)
    if status != STATUS_OK:
        return status
    if active:
        return _use_in_capture(block, capture_id)
    if use_add(block, stream) != STATUS_OK:
        # Without a record of the use, its work must end before the block can be freed.
        return driver.stream_synchronize(driver.self, stream)
    return STATUS_OK


# The record of a capture, if it is in `state`; with `capture_id` 0, the first record in that state.
cdef PinnedCapture* _capture(PinnedPool* pool, uint64_t capture_id, int state) noexcept nogil:
    cdef PinnedCapture* record
    for record in each(pool.captures):
        if record.state == state and capture_id in (0, record.capture_id):
            return record
    return NULL


cdef status_t _use_in_capture(Block* block, uint64_t capture_id) noexcept nogil:
    cdef Held held
    pool = _pool_of(block)
    held.take(&pool.a.lock)
    if _capture(pool, capture_id, CAPTURE_LIVE) == NULL:
        record = <PinnedCapture*>calloc(1, sizeof(PinnedCapture))
        if record == NULL:
            return STATUS_OUT_OF_MEMORY
        record.capture_id = capture_id
        row_push(&pool.captures, record)
    # Used by two graphs: it is not known which is deleted last, so the block is never reused.
    block.epoch = capture_id if block.epoch in (0, capture_id) else UINT64_MAX
    return STATUS_OK


# Whether a stream that used a freed block captures now. Without the lock.
cdef bint _is_capturing(Driver* driver, Block* block) noexcept nogil:
    cdef StreamUse* use
    cdef int active = 0
    cdef uint64_t capture_id
    for use in each(block.uses):
        if not active:
            driver.capture_info(driver.self, use.stream, &active, &capture_id)
    return active != 0


# Makes a PENDING block wait for its streams, but not while a graph or a capture keeps the block.
cdef void _await(PinnedPool* pool, Block* block, bint is_capturing) noexcept nogil:
    cdef PinnedCapture* record
    cdef bint is_kept = is_capturing or block.epoch == UINT64_MAX
    for record in each(pool.captures):
        is_kept = is_kept or record.capture_id == block.epoch
    if is_kept:
        chain_push(&pool.a.deferred, block)
    else:
        block.epoch = 0
        pending_begin(&pool.a, block)


cdef void pinned_free(Block* block) noexcept nogil:
    cdef Held held
    cdef bint is_done = block.uses == NULL and block.epoch == 0
    cdef bint is_capturing
    pool = _pool_of(block)
    if pool.is_closed:
        return
    a = &pool.a
    if history_enabled(a.device):
        block_event_free(block, stack_capture_if(HISTORY_STACK_FREE), is_done)
    is_capturing = _is_capturing(a.driver, block)
    device_hold(a, &held, "a free of pinned memory")
    account_take(a, block.kind, block.nbytes, block.requested)
    block.requested = 0
    if is_done:
        pool_insert(a.pools, block)
    else:
        block.state = BLOCK_PENDING
        account_pending(a, block, 1)
        _await(pool, block, is_capturing)
    pinned_trim(pool, a.config.pinned_max_cached_size)


# Checks what freed blocks wait for: graphs, captures and events. Needs the lock, which it drops.
cdef void _collect(PinnedPool* pool) noexcept nogil:
    cdef DeviceAllocator* a = &pool.a
    _retire_captures(pool)
    deferred = a.deferred
    a.deferred = NULL
    a.driver_requests += 1              # meanwhile they are in no list
    while deferred != NULL:
        block = chain_pop(&deferred)
        device_unlock(a)
        is_capturing = _is_capturing(a.driver, block)
        device_lock(a)
        _await(pool, block, is_capturing)
    a.driver_requests -= 1
    pending_poll(a)
    pinned_trim(pool, a.config.pinned_max_cached_size)


# Waits for the device; not while a capture is under way, which that would break. Drops the lock.
cdef bint _synchronize(PinnedPool* pool) noexcept nogil:
    cdef DeviceAllocator* allocator = allocator_find(pool.a.device)
    return ((allocator == NULL or not allocator.capturing)
            and progress_synchronize(&pool.a) == STATUS_OK)


# Drops the records of captures whose graph is gone, once its launches are done.
cdef void _retire_captures(PinnedPool* pool) noexcept nogil:
    cdef PinnedCapture* record = _capture(pool, 0, CAPTURE_GONE)
    while record != NULL:
        record.state = CAPTURE_AWAITED
        if not _synchronize(pool):
            record.state = CAPTURE_GONE
            return
        row_remove(&pool.captures, record)
        free(record)
        record = _capture(pool, 0, CAPTURE_GONE)


# The graph made by capture `capture_id` is given up: once its launches are done, blocks that it
# used are reused when they are freed.
cdef void pinned_capture_done(int device, uint64_t capture_id) noexcept nogil:
    cdef Held held
    pool = pinned_pool_peek(device)
    if pool == NULL:
        return
    device_hold(&pool.a, &held, "the end of a graph that used pinned memory")
    record = _capture(pool, capture_id, CAPTURE_LIVE)
    if record != NULL:
        record.state = CAPTURE_GONE
    if pool.captures != NULL:
        _collect(pool)


# Freed blocks whose work is done return to the pool, and free segments go back to the system.
cdef void pinned_empty_cache(int device) noexcept nogil:
    cdef PendingQueue* queue
    cdef PinnedPool* pool = pinned_pool_peek(device)
    cdef Held held
    if pool == NULL or driver_get(device) == NULL:
        return
    device_hold(&pool.a, &held, "the return of free pinned memory")
    for queue in each(pool.a.pending):
        if queue.head != NULL and queue.head.event == 0:
            _synchronize(pool)      # no event could be created or recorded
    _collect(pool)
    pinned_trim(pool, 0)


# Gives back everything that is not in use and forgets the device; called before the device closes.
cdef void pinned_close(int device) noexcept nogil:
    cdef PinnedPool* pool = pinned_pool_peek(device)
    cdef uint64_t event = 0
    cdef Held held
    if pool == NULL or driver_get(device) == NULL:
        return
    a = &pool.a
    held.take(&a.lock)
    _collect(pool)
    while pending_wait_one(a):
        pass
    pinned_trim(pool, 0)
    pool.is_closed = True
    gt_store(<void**>device_slot(device, pinned_slot), NULL)
    while a.spare_event_count > 0:
        event_take(a, &event)
        a.driver.event_destroy(a.driver.self, event)


# ---- the slot of this room (registry.pxd) ----

cdef int _close(int device) except -1:
    with nogil:
        pinned_close(device)
    return 0


# In the child of a fork the pools are its parent's: blocks that are freed are only forgotten.
cdef void _fork() noexcept nogil:
    cdef int device
    for device in range(-HOST_DEVICES, MAX_DEVICES - HOST_DEVICES):
        pool = pinned_pool_peek(device)
        if pool != NULL:
            pool.is_closed = True


cdef Slot slot
slot.nbytes = sizeof(PinnedPool*)
slot.close = _close
slot.fork = _fork
cdef int pinned_slot = register_slot(&slot)


cdef int raise_for_pinned(int device, object nbytes, status_t status) except -1:
    cdef PinnedPool* pool = pinned_pool_peek(device)
    if status == STATUS_INVALID_VALUE:
        _settings.current()     # raises when the environment variable is bad
        raise ValueError(f"nbytes: got {nbytes}; expected an integer above 0")
    if status == STATUS_OUT_OF_MEMORY:
        reserved = active = 0
        if pool != NULL:
            reserved = pool.a.stats[STAT_RESERVED_BYTES][0].current
            active = stats_allocated(&pool.a) + pool.a.pending_sums[FLOW_BYTES][POOL_SMALL]
        raise OutOfMemoryError(
            f"out of pinned host memory: {amount(nbytes)} requested; in use {amount(active)}, "
            f"reserved {amount(reserved)}",
            "exhausted",
            {"requested": nbytes, "allocated": active, "reserved": reserved},
        )
    raise_for_status(status, "pinned_alloc", f"while making {nbytes} bytes of pinned memory")
