"""Waits of freed pinned blocks: one event on each stream that used them.

Events are recorded when a block is freed, and checked only when a request finds no free block or a
caller queries. A queue holds the events of one stream, oldest first: if its head is not done, the
others are not either. A thread that checks an event takes its record out of the queue, and puts it
back if the event is not done, so that no lock is held over a driver call.
"""

cdef bint _captures(Driver* driver, Block* block) noexcept nogil:
    """Whether a stream that used the block is capturing now."""
    cdef StreamUse* use
    cdef int active = 0
    cdef uint64_t capture_id
    for use in each(block.uses):
        driver.capture_info(driver.self, use.stream, &active, &capture_id)
        if active:
            return True
    return False


# Records an event on each stream in block.uses; the block is free when all are done. While one of
# the streams captures, that is put off until the next pinned_collect.
cdef void pinned_await(PinnedPool* pool, Block* block) noexcept nogil:
    cdef SpinHeld held
    driver = driver_get(pool.device)
    if _captures(driver, block):
        held.take(&pool.lock)
        chain_push(&pool.deferred, block)
        return
    # One more than there are events, so that the block cannot come back before all are queued.
    block.waits = 1
    while block.uses != NULL:
        use = row_pop(&block.uses)
        mark = _new_event(pool, driver)
        if mark != NULL:
            mark.block = block
        if (mark == NULL
                or driver.event_record(driver.self, mark.event, use.stream) != STATUS_OK
                or not _enqueue(pool, use.stream, mark)):
            # No event to be had: waiting here is the only safe thing left.
            _put_spare(pool, mark)
            if driver.stream_synchronize(driver.self, use.stream) != STATUS_OK:
                driver.synchronize(driver.self)
        free(use)
    _pass(pool, block)


cdef void _pass(PinnedPool* pool, Block* block) noexcept nogil:
    """One of the things that the block waits for is done."""
    cdef bint is_last
    gt_spin_lock(&pool.lock)
    block.waits -= 1
    is_last = block.waits == 0
    gt_spin_unlock(&pool.lock)
    if is_last:
        pinned_give_back(pool, block)


cdef PinnedEvent* _new_event(PinnedPool* pool, Driver* driver) noexcept nogil:
    gt_spin_lock(&pool.lock)
    mark = row_pop(&pool.spare)
    gt_spin_unlock(&pool.lock)
    if mark == NULL:
        mark = <PinnedEvent*>malloc(sizeof(PinnedEvent))
        if mark != NULL and driver.event_create(driver.self, &mark.event, 0) != STATUS_OK:
            free(mark)
            return NULL
    return mark


cdef void _put_spare(PinnedPool* pool, PinnedEvent* mark) noexcept nogil:
    cdef SpinHeld held
    held.take(&pool.lock)
    if mark != NULL:
        row_push(&pool.spare, mark)


cdef PinnedQueue* _queue_locked(PinnedPool* pool, uint64_t stream) noexcept nogil:
    """The queue of a stream. One that ran empty serves the next stream: streams come and go."""
    cdef PinnedQueue* queue
    cdef PinnedQueue* empty = NULL
    for queue in each(pool.queues):
        if queue.stream == stream:
            return queue
        if queue.head == NULL:
            empty = queue
    if empty == NULL:
        empty = <PinnedQueue*>calloc(1, sizeof(PinnedQueue))
        if empty == NULL:
            return NULL
        row_push(&pool.queues, empty)
    empty.stream = stream
    return empty


cdef bint _enqueue(PinnedPool* pool, uint64_t stream, PinnedEvent* mark) noexcept nogil:
    cdef SpinHeld held
    held.take(&pool.lock)
    queue = _queue_locked(pool, stream)
    if queue != NULL:
        mark.block.waits += 1
        queue_append(queue, mark)
    return queue != NULL


cdef PinnedEvent* _borrow(PinnedPool* pool, PinnedQueue* queue) noexcept nogil:
    """Take the oldest event out of a queue; NULL stands for the first queue that has one."""
    cdef PinnedQueue* one
    cdef SpinHeld held
    held.take(&pool.lock)
    for one in each(pool.queues):
        if one.head != NULL and (queue == NULL or one == queue):
            pool.borrowed += 1
            return row_pop(&one.head)
    return NULL


cdef void _done(PinnedPool* pool, PinnedEvent* mark) noexcept nogil:
    """A borrowed event is complete."""
    block = mark.block
    gt_spin_lock(&pool.lock)
    pool.borrowed -= 1
    gt_spin_unlock(&pool.lock)
    _put_spare(pool, mark)
    _pass(pool, block)


# Looks at the events, oldest first.
cdef void pinned_collect(PinnedPool* pool) noexcept nogil:
    cdef PinnedQueue* queue
    driver = driver_get(pool.device)
    gt_spin_lock(&pool.lock)
    deferred = pool.deferred
    pool.deferred = NULL
    queues = pool.queues
    gt_spin_unlock(&pool.lock)
    while deferred != NULL:
        pinned_await(pool, chain_pop(&deferred))
    # Queues are only ever added in front, and never freed.
    for queue in each(queues):
        mark = _borrow(pool, queue)
        while mark != NULL and driver.event_query(driver.self, mark.event) == STATUS_OK:
            _done(pool, mark)
            mark = _borrow(pool, queue)
        if mark != NULL:
            gt_spin_lock(&pool.lock)
            queue_push(queue, mark)
            pool.borrowed -= 1
            gt_spin_unlock(&pool.lock)


# Waits for one event; False when nothing waits any more.
cdef bint pinned_wait_oldest(PinnedPool* pool) noexcept nogil:
    cdef bint is_borrowed
    driver = driver_get(pool.device)
    mark = _borrow(pool, NULL)
    if mark == NULL:
        gt_spin_lock(&pool.lock)
        is_borrowed = pool.borrowed != 0
        gt_spin_unlock(&pool.lock)
        if is_borrowed:
            # Another thread waits for it; its freed memory may be enough for both.
            usleep(50)
        return is_borrowed
    if driver.event_synchronize(driver.self, mark.event) != STATUS_OK:
        driver.synchronize(driver.self)
    _done(pool, mark)
    return True


# Gives the spare events back to the driver.
cdef void pinned_drop_events(PinnedPool* pool) noexcept nogil:
    driver = driver_get(pool.device)
    while pool.spare != NULL:
        mark = row_pop(&pool.spare)
        driver.event_destroy(driver.self, mark.event)
        free(mark)
