"""The pool of driver events behind waits between streams.

An event is taken for one wait and returned at once, because a queued wait keeps the record that was
the latest when it was queued. So a program needs only a handful of events, and makes no driver call
for them after its first waits. They carry no time stamps; event.pxi makes and destroys events with
time stamps. Idle events of a device are destroyed before it closes.
"""

cdef extern from "gputensor/streams/order/spin_lock.h":
    void spin_acquire(int* lock) noexcept nogil
    void spin_release(int* lock) noexcept nogil

cdef struct EventPool:
    uint64_t* events
    int count
    int capacity
    int lock


cdef status_t event_take(int device, uint64_t* event) noexcept nogil:
    cdef EventPool* pool = &order_of(device).events
    cdef Driver* driver
    spin_acquire(&pool.lock)
    if pool.count:
        pool.count -= 1
        event[0] = pool.events[pool.count]
        spin_release(&pool.lock)
        return STATUS_OK
    spin_release(&pool.lock)
    driver = driver_get(device)
    return driver.event_create(driver.self, event, 0)


cdef void event_return(int device, uint64_t event) noexcept nogil:
    cdef EventPool* pool = &order_of(device).events
    cdef uint64_t* events
    cdef Driver* driver
    cdef int capacity
    spin_acquire(&pool.lock)
    if pool.count == pool.capacity:
        capacity = 2 * pool.capacity + 16
        events = <uint64_t*>realloc(pool.events, capacity * sizeof(uint64_t))
        if events == NULL:
            spin_release(&pool.lock)
            driver = driver_get(device)
            driver.event_destroy(driver.self, event)
            return
        pool.events = events
        pool.capacity = capacity
    pool.events[pool.count] = event
    pool.count += 1
    spin_release(&pool.lock)


cdef status_t event_behind(int device, uint64_t stream, uint64_t* event) noexcept nogil:
    cdef Driver* driver = driver_get(device)
    cdef status_t status
    event[0] = 0
    status = event_take(device, event)
    if status != STATUS_OK:
        return status
    status = driver.event_record(driver.self, event[0], stream)
    if status != STATUS_OK:
        event_return(device, event[0])
        event[0] = 0
    return status


def release_events(int device):
    """Destroy the idle events of a device."""
    cdef Driver* driver = driver_get(device)
    cdef uint64_t event
    while driver != NULL and order_of(device).events.count:
        if event_take(device, &event) == STATUS_OK:
            driver.event_destroy(driver.self, event)
