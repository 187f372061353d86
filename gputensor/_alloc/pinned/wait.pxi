"""Waits of freed pinned blocks: one event on each stream that used them.

Events are recorded when a block is freed, and checked only when a request finds no free block or a
caller queries. A queue holds the events of one stream, oldest first: if its head is not done, the
others are not either. A thread that checks an event takes its record out of the queue, and puts it
back if the event is not done, so that no lock is held over a driver call.
"""

# A block without remaining waits is free; cached memory beyond the limit is returned.
cdef void pinned_give_back(PinnedPool* pool, Block* block) noexcept nogil:
    cdef bint is_over
    gt_spin_lock(&pool.lock)
    pinned_insert_locked(pool, block)
    is_over = pool.free_nbytes > pinned_max_cached()
    gt_spin_unlock(&pool.lock)
    if is_over:
        pinned_trim(pool, pinned_max_cached())


cdef bint _captures(PinnedPool* pool, Driver* driver, Block* block) noexcept nogil:
    """Whether a stream that used the block is capturing now."""
    cdef StreamUse* use = block.uses
    cdef int active = 0
    cdef uint64_t capture_id
    while use != NULL and not active:
        driver.capture_info(driver.self, use.stream, &active, &capture_id)
        use = use.next
    return active


# Records an event on each stream in block.uses; the block is free when all are done. While one of
# the streams captures, that is put off until the next pinned_collect.
cdef void pinned_await(PinnedPool* pool, Block* block) noexcept nogil:
    """Record an event on each stream that used the block; later, when one of them captures."""
    cdef Driver* driver = driver_get(pool.device)
    cdef StreamUse* use
    cdef PinnedEvent* mark
    if _captures(pool, driver, block):
        gt_spin_lock(&pool.lock)
        block.link_next = pool.deferred
        pool.deferred = block
        gt_spin_unlock(&pool.lock)
        return
    # One more than there are events, so that the block cannot come back before all are queued.
    block.waits = 1
    while block.uses != NULL:
        use = block.uses
        block.uses = use.next
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
    if is_last:
        pool.waiting -= 1
    gt_spin_unlock(&pool.lock)
    if is_last:
        pinned_give_back(pool, block)


cdef PinnedEvent* _new_event(PinnedPool* pool, Driver* driver) noexcept nogil:
    cdef PinnedEvent* mark
    gt_spin_lock(&pool.lock)
    mark = pool.spare
    if mark != NULL:
        pool.spare = mark.next
    gt_spin_unlock(&pool.lock)
    if mark == NULL:
        mark = <PinnedEvent*>malloc(sizeof(PinnedEvent))
        if mark != NULL and driver.event_create(driver.self, &mark.event, 0) != STATUS_OK:
            free(mark)
            return NULL
    return mark


cdef void _put_spare(PinnedPool* pool, PinnedEvent* mark) noexcept nogil:
    if mark != NULL:
        gt_spin_lock(&pool.lock)
        mark.next = pool.spare
        pool.spare = mark
        gt_spin_unlock(&pool.lock)


cdef PinnedQueue* _queue_locked(PinnedPool* pool, uint64_t stream) noexcept nogil:
    """The queue of a stream. One that ran empty serves the next stream: streams come and go."""
    cdef PinnedQueue* queue = pool.queues
    cdef PinnedQueue* empty = NULL
    while queue != NULL and queue.stream != stream:
        if queue.head == NULL:
            empty = queue
        queue = queue.next
    if queue == NULL and empty != NULL:
        queue = empty
    elif queue == NULL:
        queue = <PinnedQueue*>malloc(sizeof(PinnedQueue))
        if queue != NULL:
            queue.head = NULL
            queue.next = pool.queues
            pool.queues = queue
    if queue != NULL:
        queue.stream = stream
    return queue


cdef bint _enqueue(PinnedPool* pool, uint64_t stream, PinnedEvent* mark) noexcept nogil:
    cdef PinnedQueue* queue
    gt_spin_lock(&pool.lock)
    queue = _queue_locked(pool, stream)
    if queue != NULL:
        mark.block.waits += 1
        mark.next = NULL
        if queue.head == NULL:
            queue.head = mark
        else:
            queue.tail.next = mark
        queue.tail = mark
    gt_spin_unlock(&pool.lock)
    return queue != NULL


cdef PinnedEvent* _borrow(PinnedPool* pool, PinnedQueue* queue) noexcept nogil:
    """Take the oldest event out of a queue; NULL stands for the first queue that has one."""
    cdef PinnedEvent* mark = NULL
    gt_spin_lock(&pool.lock)
    if queue == NULL:
        queue = pool.queues
        while queue != NULL and queue.head == NULL:
            queue = queue.next
    if queue != NULL and queue.head != NULL:
        mark = queue.head
        queue.head = mark.next
        pool.borrowed += 1
    gt_spin_unlock(&pool.lock)
    return mark


cdef void _done(PinnedPool* pool, PinnedEvent* mark) noexcept nogil:
    """A borrowed event is complete."""
    cdef Block* block = mark.block
    gt_spin_lock(&pool.lock)
    pool.borrowed -= 1
    gt_spin_unlock(&pool.lock)
    _put_spare(pool, mark)
    _pass(pool, block)


# Looks at the events, oldest first.
cdef void pinned_collect(PinnedPool* pool) noexcept nogil:
    cdef Driver* driver = driver_get(pool.device)
    cdef PinnedQueue* queue
    cdef PinnedEvent* mark
    cdef Block* block
    cdef Block* following
    gt_spin_lock(&pool.lock)
    block = pool.deferred
    pool.deferred = NULL
    queue = pool.queues
    gt_spin_unlock(&pool.lock)
    while block != NULL:
        following = block.link_next
        pinned_await(pool, block)
        block = following
    # Queues are only ever added in front, and never freed.
    while queue != NULL:
        mark = _borrow(pool, queue)
        while mark != NULL and driver.event_query(driver.self, mark.event) == STATUS_OK:
            _done(pool, mark)
            mark = _borrow(pool, queue)
        if mark != NULL:
            _return(pool, queue, mark)
        queue = queue.next


cdef void _return(PinnedPool* pool, PinnedQueue* queue, PinnedEvent* mark) noexcept nogil:
    gt_spin_lock(&pool.lock)
    mark.next = queue.head
    if queue.head == NULL:
        queue.tail = mark
    queue.head = mark
    pool.borrowed -= 1
    gt_spin_unlock(&pool.lock)


# Waits for one event; False when nothing waits any more.
cdef bint pinned_wait_oldest(PinnedPool* pool) noexcept nogil:
    """Wait for one event; False when nothing waits any more."""
    cdef Driver* driver = driver_get(pool.device)
    cdef PinnedEvent* mark = _borrow(pool, NULL)
    cdef int64_t borrowed
    if mark == NULL:
        gt_spin_lock(&pool.lock)
        borrowed = pool.borrowed
        gt_spin_unlock(&pool.lock)
        if borrowed:
            # Another thread waits for it; its freed memory may be enough for both.
            usleep(50)
        return borrowed != 0
    if driver.event_synchronize(driver.self, mark.event) != STATUS_OK:
        driver.synchronize(driver.self)
    _done(pool, mark)
    return True


# Gives the spare events back to the driver.
cdef void pinned_drop_events(PinnedPool* pool) noexcept nogil:
    cdef Driver* driver = driver_get(pool.device)
    cdef PinnedEvent* mark
    while pool.spare != NULL:
        mark = pool.spare
        pool.spare = mark.next
        driver.event_destroy(driver.self, mark.event)
        free(mark)
