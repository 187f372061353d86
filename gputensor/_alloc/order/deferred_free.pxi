"""Frees that wait for other streams.

When a block is freed that other streams used, one event is recorded on each of them, and the block
is PENDING until all are complete. Each stream has a queue, oldest first: events of one stream
complete in order, so checking the head is enough. Without pending blocks there is no polling.

If an event cannot be created or recorded, the block waits for the whole device instead: the queue
holds an entry with event 0, which a later wait for the device satisfies. The stream itself is not
queried, because its owner may destroy it once the block is freed.

Driver calls run without the lock: on a deferred host device any such call may run host functions,
and one that frees memory enters this module again.

During a capture no event is recorded; blocks are put aside and start to wait when it ends, unless
the order of the graph releases them earlier (capture_reuse.pxi).
"""

cdef extern from "sched.h" nogil:
    int sched_yield()


cdef status_t use_add(Block* block, uint64_t stream) noexcept nogil:
    cdef StreamUse* use
    for use in each(block.uses):
        if use.stream == stream:
            return STATUS_OK
    use = <StreamUse*>calloc(1, sizeof(StreamUse))
    if use == NULL:
        return STATUS_OUT_OF_MEMORY
    use.stream = stream
    row_push(&block.uses, use)
    return STATUS_OK


cdef PendingQueue* _queue(DeviceAllocator* a, uint64_t stream) noexcept nogil:
    cdef PendingQueue* queue
    for queue in each(a.pending):
        if queue.stream == stream:
            return queue
    queue = <PendingQueue*>calloc(1, sizeof(PendingQueue))
    if queue != NULL:
        queue.stream = stream
        row_push(&a.pending, queue)
    return queue


cdef void _wait_for(DeviceAllocator* a, Block* block, uint64_t stream) noexcept nogil:
    cdef Driver* driver = a.driver
    cdef PendingQueue* queue = _queue(a, stream)
    cdef PendingEvent* entry = <PendingEvent*>calloc(1, sizeof(PendingEvent))
    cdef uint64_t event = 0
    cdef bint is_recorded = False
    if event_take(a, &event) != STATUS_OK:
        event = 0
    device_unlock(a)
    if queue == NULL or entry == NULL:
        # Without host memory for the record, wait here and now: correct, and rare.
        driver.stream_synchronize(driver.self, stream)
    elif event != 0:
        is_recorded = driver.event_record(driver.self, event, stream) == STATUS_OK
    device_lock(a)
    if event != 0 and not is_recorded:
        event_give(a, event)
        event = 0
    if queue == NULL or entry == NULL:
        free(entry)
        return
    entry.event = event
    entry.wait = a.epoch
    entry.block = block
    block.waits += 1
    queue_append(queue, entry)


cdef void _complete(DeviceAllocator* a, Block* block) noexcept nogil:
    account_pending(a, block, -1)
    block_event_completed(block)
    if block.view != NULL:
        view_close(a, block)
    else:
        pool_insert(block.pool, block)


cdef void pending_add(DeviceAllocator* a, Block* block) noexcept nogil:
    block.state = BLOCK_PENDING
    if block.view != NULL:
        view_show(block, BLOCK_PENDING)
    account_pending(a, block, 1)
    in_flight_begin(a)               # until its waits are in their queues
    pending_begin(a, block)
    in_flight_end(a)


# The block begins to wait, for events or for the capture's end.
cdef void pending_begin(DeviceAllocator* a, Block* block) noexcept nogil:
    if a.capturing:
        chain_push(&a.deferred, block)
        capture_reuse_note(a, block)
        return
    block.waits = 1                     # this function: the block must not complete under it
    a.driver_requests += 1
    while block.uses != NULL:
        use = row_pop(&block.uses)
        _wait_for(a, block, use.stream)
        free(use)
    a.driver_requests -= 1
    block.waits -= 1
    if block.waits == 0:
        _complete(a, block)


# Queries an entry's event, or waits for it. Without the lock.
cdef bint _deferred_free_ask(DeviceAllocator* a, PendingEvent* entry, bint waits) noexcept nogil:
    cdef Driver* driver = a.driver
    cdef status_t status
    if not waits:
        status = driver.event_query(driver.self, entry.event)
    elif entry.event != 0:
        status = driver.event_synchronize(driver.self, entry.event)
    else:
        status = driver.synchronize(driver.self)
    return status == STATUS_OK


# Takes the oldest entry out of its queue, so that no other thread settles, queries or waits, and
# settles it or puts it back. Gives the lock up meanwhile.
cdef bint _try_oldest(DeviceAllocator* a, PendingQueue* queue, bint waits) noexcept nogil:
    cdef PendingEvent* entry = queue.head
    cdef Block* block = entry.block
    cdef bint is_complete = entry.event == 0 and a.waited >= entry.wait
    if entry.event == 0 and not is_complete and not waits:
        return False
    row_pop(&queue.head)
    if not is_complete:
        a.pending_in_flight += 1
        a.driver_requests += not waits
        device_unlock(a)
        is_complete = _deferred_free_ask(a, entry, waits)
        device_lock(a)
        a.driver_requests -= not waits
        a.pending_in_flight -= 1
    if not is_complete:
        queue_push(queue, entry)
        return False
    if entry.event != 0:
        event_give(a, entry.event)
    free(entry)
    block.waits -= 1
    if block.waits == 0:
        _complete(a, block)
    return True


cdef void pending_poll(DeviceAllocator* a) noexcept nogil:
    cdef PendingQueue* queue
    for queue in each(a.pending):
        while queue.head != NULL and not a.capturing and _try_oldest(a, queue, False):
            pass


cdef bint pending_wait_one(DeviceAllocator* a) noexcept nogil:
    cdef PendingQueue* queue
    if a.capturing:
        return False
    for queue in each(a.pending):
        if queue.head != NULL:
            return _try_oldest(a, queue, True)
    if a.pending_in_flight > 0:
        # Another thread is about to return the entry that it waits for.
        device_unlock(a)
        sched_yield()
        device_lock(a)
        return True
    return False


cdef void pending_resume(DeviceAllocator* a) noexcept nogil:
    cdef Block* deferred = a.deferred
    capture_reuse_forget(a)
    a.deferred = NULL
    in_flight_begin(a)
    while deferred != NULL:
        pending_begin(a, chain_pop(&deferred))
    in_flight_end(a)
