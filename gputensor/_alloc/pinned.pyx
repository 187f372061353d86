# distutils: language = c++
"""Pinned host memory: who holds it, which streams still use it, and when it comes back.

A copy between pinned memory and a device runs on while the host goes on, so a freed block waits for
the streams that used it. `pinned_free` records one event on each of them and returns. Nothing
looks at those events until a request finds no free block: then the queues are read, oldest first,
and a request that still finds nothing asks the system. When the system has nothing either,
the request waits for events one after the other, then gives whole free segments back, and only
then fails.

During a capture no event may be recorded on the capturing stream. A block used by captured work
belongs to the graph: when freed it waits until `pinned_capture_done` names its capture. A block
whose other streams happen to capture when it is freed is marked later.

Locks: PinnedPool.lock only, a spin lock never held over a driver call. Who looks at an event takes
its record out of the queue first, and puts it back at the head when the event is not done.
"""

from libc.stdint cimport int64_t, uint64_t
from libc.stdlib cimport free, malloc
from posix.unistd cimport usleep

from gputensor._alloc.model cimport (
    BLOCK_PENDING,
    UNIT,
    Block,
    StreamUse,
    gt_spin_lock,
    gt_spin_unlock,
)
from gputensor._alloc.pinned_pool cimport (
    PinnedCapture,
    PinnedEvent,
    PinnedPool,
    PinnedQueue,
    pinned_configured,
    pinned_grow,
    pinned_insert_locked,
    pinned_max_cached,
    pinned_pool,
    pinned_pool_detach,
    pinned_pool_of,
    pinned_pool_peek,
    pinned_reserve_segment,
    pinned_take,
    pinned_trim,
)
from gputensor._driver.registry cimport driver_get
from gputensor._driver.table cimport (
    STATUS_INVALID_DEVICE,
    STATUS_INVALID_VALUE,
    STATUS_OK,
    STATUS_OUT_OF_MEMORY,
    Driver,
    status_t,
)

from gputensor._alloc import settings as _settings
from gputensor._driver.registry import before_close
from gputensor.errors import OutOfMemoryError, raise_for_status

cdef extern from "<stdint.h>" nogil:
    uint64_t UINT64_MAX


cdef Block* pinned_malloc(int device, size_t nbytes, status_t* status) noexcept nogil:
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
        pinned_collect(pool)
        block = pinned_take(pool, rounded)
    if block == NULL:
        block = _take_grown(pool, rounded, status)
    if block != NULL:
        block.requested = nbytes
        block.uses = NULL
        status[0] = STATUS_OK
    return block


cdef bint _is_waiting(PinnedPool* pool) noexcept nogil:
    cdef bint is_waiting
    gt_spin_lock(&pool.lock)
    is_waiting = pool.waiting != 0
    gt_spin_unlock(&pool.lock)
    return is_waiting


cdef Block* _take_grown(PinnedPool* pool, size_t rounded, status_t* status) noexcept nogil:
    """Ask the system, and when it has nothing, everything that can help it."""
    cdef Block* block = NULL
    if pinned_reserve_segment() >= rounded and not pool.is_reserved:
        pool.is_reserved = True
        if pinned_grow(pool, pinned_reserve_segment()) == STATUS_OK:
            block = pinned_take(pool, rounded)
            if block != NULL:
                return block
    status[0] = pinned_grow(pool, rounded)
    if status[0] != STATUS_OK:
        while _wait_oldest(pool):
            block = pinned_take(pool, rounded)
            if block != NULL:
                return block
        pinned_trim(pool, 0)
        status[0] = pinned_grow(pool, rounded)
    return pinned_take(pool, rounded)


cdef status_t pinned_use(Block* block, uint64_t stream) noexcept nogil:
    cdef Driver* driver = driver_get(block.device)
    cdef StreamUse* use = block.uses
    cdef int active = 0
    cdef uint64_t capture_id = 0
    driver.capture_info(driver.self, stream, &active, &capture_id)
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
        _give_back(pool, block)
        return
    gt_spin_lock(&pool.lock)
    block.state = BLOCK_PENDING
    pool.waiting += 1
    gt_spin_unlock(&pool.lock)
    _mark(pool, block)


cdef void _give_back(PinnedPool* pool, Block* block) noexcept nogil:
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


cdef void _mark(PinnedPool* pool, Block* block) noexcept nogil:
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
        _give_back(pool, block)


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
        _mark(pool, block)
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


cdef bint _wait_oldest(PinnedPool* pool) noexcept nogil:
    """Wait for one event; False when nothing waits any more."""
    cdef Driver* driver = driver_get(pool.device)
    cdef PinnedEvent* mark = _borrow(pool, NULL)
    cdef int64_t borrowed
    if mark == NULL:
        gt_spin_lock(&pool.lock)
        borrowed = pool.borrowed
        gt_spin_unlock(&pool.lock)
        if borrowed:
            # Another thread waits for it; what it frees may be enough for both.
            usleep(50)
        return borrowed != 0
    if driver.event_synchronize(driver.self, mark.event) != STATUS_OK:
        driver.synchronize(driver.self)
    _done(pool, mark)
    return True


cdef void pinned_capture_done(int device, uint64_t capture_id) noexcept nogil:
    cdef PinnedPool* pool = pinned_pool_peek(device)
    cdef PinnedCapture** record
    cdef PinnedCapture* gone
    cdef Block** link
    cdef Block* block
    cdef Block* released = NULL
    if pool == NULL:
        return
    gt_spin_lock(&pool.lock)
    record = _capture_locked(pool, capture_id)
    gone = record[0]
    if gone != NULL:
        record[0] = gone.next
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
    free(gone)
    while released != NULL:
        block = released
        released = block.link_next
        _leave(pool, block)


cdef void pinned_empty_cache(int device) noexcept nogil:
    cdef PinnedPool* pool = pinned_pool_peek(device)
    if pool != NULL and driver_get(device) != NULL:
        pinned_collect(pool)
        pinned_trim(pool, 0)


cdef void pinned_close(int device) noexcept nogil:
    cdef PinnedPool* pool = pinned_pool_peek(device)
    cdef Driver* driver = driver_get(device)
    cdef PinnedEvent* mark
    if pool == NULL or driver == NULL:
        return
    pinned_collect(pool)
    while _wait_oldest(pool):
        pass
    pinned_trim(pool, 0)
    pinned_pool_detach(pool)
    while pool.spare != NULL:
        mark = pool.spare
        pool.spare = mark.next
        driver.event_destroy(driver.self, mark.event)
        free(mark)


def _before_close(int device):
    with nogil:
        pinned_close(device)


before_close(_before_close)


cdef int raise_for_pinned(int device, size_t nbytes, status_t status) except -1:
    cdef PinnedPool* pool = pinned_pool_peek(device)
    if status == STATUS_INVALID_VALUE:
        _settings.current()     # raises when the environment variable is bad
        raise ValueError(f"nbytes: got {nbytes}, allowed: an integer above 0")
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
