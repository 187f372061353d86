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


# One of the waits of a block is over.
cdef void _waits_less(DeviceAllocator* a, Block* block) noexcept nogil:
    block.waits -= 1
    if block.waits == 0:
        account_pending(a, block, -1)
        block_event_completed(block)
        block_return(a, block)


cdef void _use_over(DeviceAllocator* a, StreamUse* use) noexcept nogil:
    if use.event != 0:
        event_give(a, use.event)
    _waits_less(a, use.block)
    free(use)


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
    cdef Driver* driver = a.driver
    cdef StreamUse* use
    if a.capturing:
        chain_push(&a.deferred, block)
        capture_reuse_note(a, block)
        return
    a.driver_requests += 1              # meanwhile the block is in no list
    for use in each(block.uses):
        use.block = block
        use.queue = _queue(a, use.stream)
        if event_take(a, &use.event) != STATUS_OK:
            use.event = 0
    device_unlock(a)
    for use in each(block.uses):
        if use.queue == NULL:
            # Without host memory for the queue, wait here and now: correct, and rare.
            driver.stream_synchronize(driver.self, use.stream)
        if use.event != 0 and driver.event_record(driver.self, use.event, use.stream) != STATUS_OK:
            driver.event_destroy(driver.self, use.event)
            use.event = 0
    device_lock(a)
    a.driver_requests -= 1
    block.waits = 1                     # for this function: the block must not complete before
    while block.uses != NULL:
        use = row_pop(&block.uses)
        use.wait = a.epoch
        block.waits += 1
        if use.queue != NULL:
            queue_append(use.queue, use)
        else:
            _use_over(a, use)
    _waits_less(a, block)


# Whether the work that an entry stands for is done; with `waits`, waits for it. Without the lock.
cdef bint _is_over(Driver* driver, StreamUse* use, uint64_t waited, bint waits) noexcept nogil:
    if use.event == 0:
        return waited >= use.wait or (waits and driver.synchronize(driver.self) == STATUS_OK)
    if waits:
        return driver.event_synchronize(driver.self, use.event) == STATUS_OK
    return driver.event_query(driver.self, use.event) == STATUS_OK


# Takes all entries out of a queue, or the oldest if it waits for that, so that no other thread
# queries them or waits. Those that are complete are settled, the others go back; whether any is
# complete. Drops the lock meanwhile.
cdef bint _settle(DeviceAllocator* a, PendingQueue* queue, bint waits) noexcept nogil:
    cdef StreamUse* first = queue.head
    cdef StreamUse* last = first if waits else queue.tail
    cdef StreamUse* still = first       # the first that is not complete
    cdef uint64_t waited = a.waited
    cdef bint is_settled
    queue.head = last.next
    last.next = NULL
    a.pending_in_flight += 1
    a.driver_requests += not waits
    device_unlock(a)
    while still != NULL and _is_over(a.driver, still, waited, waits):
        still = still.next
    device_lock(a)
    a.driver_requests -= not waits
    a.pending_in_flight -= 1
    if still != NULL:
        queue.tail = last if queue.head == NULL else queue.tail
        last.next = queue.head
        queue.head = still
    is_settled = still != first
    while first != still:
        _use_over(a, row_pop(&first))
    return is_settled


cdef void pending_poll(DeviceAllocator* a) noexcept nogil:
    cdef PendingQueue* queue
    for queue in each(a.pending):
        if queue.head != NULL and not a.capturing:
            _settle(a, queue, False)


cdef bint pending_wait_one(DeviceAllocator* a) noexcept nogil:
    cdef PendingQueue* queue
    if a.capturing:
        return False
    for queue in each(a.pending):
        if queue.head != NULL:
            return _settle(a, queue, True)
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
