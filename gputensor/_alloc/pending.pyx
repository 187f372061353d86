# distutils: language = c++
"""Frees that wait for other streams.

When a block is freed that other streams used, one event is recorded on each of them, and the block
is PENDING until all are complete. Each stream has a queue, oldest first: events of one stream
complete in order, so a look at the head is enough. Nothing is polled while nothing waits.

When an event cannot be made or recorded, the block waits for the whole stream instead: the queue
holds an entry with event 0, which only a synchronised stream satisfies.

During a capture no event is recorded; blocks are put aside and begin to wait when it ends.
"""

from libc.stdint cimport uint64_t
from libc.stdlib cimport calloc, free

from gputensor._alloc.history cimport (
    HISTORY_FREE_COMPLETED,
    history_enabled,
    history_record,
)
from gputensor._alloc.mutex cimport device_lock, device_unlock
from gputensor._alloc.model cimport (
    BLOCK_PENDING,
    Block,
    DeviceAllocator,
    PendingEvent,
    PendingQueue,
    StreamUse,
)
from gputensor._alloc.pool cimport pool_bins, pool_insert
from gputensor._alloc.progress cimport event_give, event_take
from gputensor._alloc.statistics cimport account_pending
from gputensor._alloc.view cimport view_close
from gputensor._driver.table cimport (
    STATUS_OK,
    STATUS_OUT_OF_MEMORY,
    Driver,
    status_t,
)


cdef status_t use_add(Block* block, uint64_t stream) noexcept nogil:
    cdef StreamUse* use = block.uses
    while use != NULL:
        if use.stream == stream:
            return STATUS_OK
        use = use.next
    use = <StreamUse*>calloc(1, sizeof(StreamUse))
    if use == NULL:
        return STATUS_OUT_OF_MEMORY
    use.stream = stream
    use.next = block.uses
    block.uses = use
    return STATUS_OK


cdef PendingQueue* _queue(DeviceAllocator* a, uint64_t stream) noexcept nogil:
    cdef PendingQueue* queue = a.pending
    while queue != NULL:
        if queue.stream == stream:
            return queue
        queue = queue.next
    queue = <PendingQueue*>calloc(1, sizeof(PendingQueue))
    if queue != NULL:
        queue.stream = stream
        queue.next = a.pending
        a.pending = queue
    return queue


cdef void _append(PendingQueue* queue, PendingEvent* entry) noexcept nogil:
    if queue.tail == NULL:
        queue.head = entry
    else:
        queue.tail.next = entry
    queue.tail = entry


cdef void _wait_for(DeviceAllocator* a, Block* block, uint64_t stream) noexcept nogil:
    cdef Driver* driver = a.driver
    cdef PendingQueue* queue = _queue(a, stream)
    cdef PendingEvent* entry = <PendingEvent*>calloc(1, sizeof(PendingEvent))
    cdef uint64_t event = 0
    if queue == NULL or entry == NULL:
        # Without host memory for the record, wait here and now: correct, and rare.
        free(entry)
        driver.stream_synchronize(driver.self, stream)
        return
    if event_take(a, &event) == STATUS_OK:
        if driver.event_record(driver.self, event, stream) != STATUS_OK:
            event_give(a, event)
            event = 0
    entry.event = event
    entry.block = block
    block.waits += 1
    _append(queue, entry)


cdef void _complete(DeviceAllocator* a, Block* block) noexcept nogil:
    account_pending(a, block, -1)
    block.epoch = pool_bins(block.pool, block.stream).state.epoch
    if history_enabled(a.device):
        history_record(a.device, HISTORY_FREE_COMPLETED, block.ptr, block.nbytes, block.stream, 0,
                       block.pool.pool_id)
    if block.view != NULL:
        view_close(a, block)
    else:
        pool_insert(block.pool, block)


cdef void pending_add(DeviceAllocator* a, Block* block) noexcept nogil:
    cdef StreamUse* use
    block.state = BLOCK_PENDING
    account_pending(a, block, 1)
    if a.capturing:
        block.link_next = a.deferred
        a.deferred = block
        return
    block.waits = 0
    while block.uses != NULL:
        use = block.uses
        block.uses = use.next
        _wait_for(a, block, use.stream)
        free(use)
    if block.waits == 0:
        _complete(a, block)


cdef bint _is_complete(DeviceAllocator* a, PendingQueue* queue, PendingEvent* entry) noexcept nogil:
    cdef Driver* driver = a.driver
    if entry.event != 0:
        return driver.event_query(driver.self, entry.event) == STATUS_OK
    return driver.stream_query(driver.self, queue.stream) == STATUS_OK


cdef void _pop(DeviceAllocator* a, PendingQueue* queue) noexcept nogil:
    cdef PendingEvent* entry = queue.head
    cdef Block* block = entry.block
    queue.head = entry.next
    if queue.head == NULL:
        queue.tail = NULL
    if entry.event != 0:
        event_give(a, entry.event)
    free(entry)
    block.waits -= 1
    if block.waits == 0:
        _complete(a, block)


cdef void pending_poll(DeviceAllocator* a) noexcept nogil:
    cdef PendingQueue* queue = a.pending
    if a.capturing:
        return
    while queue != NULL:
        while queue.head != NULL and _is_complete(a, queue, queue.head):
            _pop(a, queue)
        queue = queue.next


cdef bint pending_wait_one(DeviceAllocator* a) noexcept nogil:
    cdef Driver* driver = a.driver
    cdef PendingQueue* queue = a.pending
    cdef PendingEvent* entry
    cdef uint64_t event
    cdef status_t status
    if a.capturing:
        return False
    while queue != NULL and queue.head == NULL:
        queue = queue.next
    if queue == NULL:
        return False
    entry = queue.head
    queue.head = entry.next             # nobody else may see it complete and reuse its event
    if queue.head == NULL:
        queue.tail = NULL
    event = entry.event
    device_unlock(a)
    if event != 0:
        status = driver.event_synchronize(driver.self, event)
    else:
        status = driver.stream_synchronize(driver.self, queue.stream)
    device_lock(a)
    entry.next = queue.head
    queue.head = entry
    if queue.tail == NULL:
        queue.tail = entry
    if status != STATUS_OK:
        return False
    _pop(a, queue)
    return True


cdef void pending_resume(DeviceAllocator* a) noexcept nogil:
    cdef Block* block = a.deferred
    cdef Block* following
    a.deferred = NULL
    while block != NULL:
        following = block.link_next
        block.link_next = NULL
        account_pending(a, block, -1)
        pending_add(a, block)
        block = following
