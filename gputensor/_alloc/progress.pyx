# distutils: language = c++
"""How far the device has come on each stream, learnt on misses only.

A freed block carries the epoch of its stream at that time. An epoch ends when an event is recorded
on the stream; when that event is complete, every block freed in that epoch or before is done and
may change its stream or lose its pages without a wait. Events are recorded when a request misses,
so programs that hit pay nothing and nothing is polled when nothing waits. A stream that a query
finds idle ends its epoch at once: idle streams strand nothing.

While a capture is under way no event is recorded and no stream is queried: both would become part
of the capture or invalidate it.
"""

from libc.stdint cimport uint64_t
from libc.stdlib cimport calloc, realloc

from gputensor._alloc.model cimport EVENT_RING, DeviceAllocator, StreamState
from gputensor._driver.table cimport STATUS_OK, Driver, status_t


cdef StreamState* progress_of(DeviceAllocator* a, uint64_t stream) noexcept nogil:
    cdef StreamState* state = a.streams
    while state != NULL:
        if state.handle == stream:
            return state
        state = state.next
    state = <StreamState*>calloc(1, sizeof(StreamState))
    if state != NULL:
        state.handle = stream
        state.epoch = 1
        state.next = a.streams
        a.streams = state
    return state


cdef bint progress_is_done(DeviceAllocator* a, StreamState* state, uint64_t epoch) noexcept nogil:
    return epoch < state.completed


cdef status_t event_take(DeviceAllocator* a, uint64_t* event) noexcept nogil:
    if a.spare_event_count > 0:
        a.spare_event_count -= 1
        event[0] = a.spare_events[a.spare_event_count]
        return STATUS_OK
    return a.driver.event_create(a.driver.self, event, 0)


cdef void event_give(DeviceAllocator* a, uint64_t event) noexcept nogil:
    cdef int capacity
    cdef uint64_t* grown
    if a.spare_event_count == a.spare_event_capacity:
        capacity = a.spare_event_capacity * 2 + 16
        grown = <uint64_t*>realloc(a.spare_events, capacity * sizeof(uint64_t))
        if grown == NULL:
            a.driver.event_destroy(a.driver.self, event)
            return
        a.spare_events = grown
        a.spare_event_capacity = capacity
    a.spare_events[a.spare_event_count] = event
    a.spare_event_count += 1


cdef void progress_caught_up(StreamState* state, uint64_t epoch) noexcept nogil:
    if epoch + 1 > state.completed:
        state.completed = epoch + 1


cdef void _advance(DeviceAllocator* a, StreamState* state) noexcept nogil:
    cdef Driver* driver = a.driver
    cdef uint64_t event = 0
    cdef int i, kept = 0
    if driver.stream_query(driver.self, state.handle) == STATUS_OK:
        for i in range(state.ring_count):
            event_give(a, state.ring[i].event)
        state.ring_count = 0
        state.completed = state.epoch + 1
        state.epoch += 1
        return
    for i in range(state.ring_count):
        if driver.event_query(driver.self, state.ring[i].event) == STATUS_OK:
            progress_caught_up(state, state.ring[i].epoch)
            event_give(a, state.ring[i].event)
        else:
            state.ring[kept] = state.ring[i]
            kept += 1
    state.ring_count = kept
    if kept == EVENT_RING or event_take(a, &event) != STATUS_OK:
        return
    if driver.event_record(driver.self, event, state.handle) != STATUS_OK:
        event_give(a, event)
        return
    state.ring[kept].event = event
    state.ring[kept].epoch = state.epoch
    state.ring_count = kept + 1
    state.epoch += 1


cdef void progress_advance(DeviceAllocator* a) noexcept nogil:
    cdef StreamState* state = a.streams
    if a.capturing:
        return
    while state != NULL:
        _advance(a, state)
        state = state.next
