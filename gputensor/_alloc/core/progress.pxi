"""Progress of the device on each stream, learned on misses only.

A freed block carries the epoch of its free. An epoch ends when an event is recorded on any stream;
once that event is complete, every block that was freed on its stream in that epoch or before is
done and may change its stream or lose its pages without a wait. Events are recorded when a request
misses, so programs that hit pay nothing. A stream that a query finds idle has caught up at once, so
idle streams strand no memory.

Driver calls run without the lock: on a deferred host device any such call may run host functions,
and one that frees memory enters this module again. `is_queried` reserves a stream's ring for one
thread meanwhile.

Passing a destroyed stream to the driver is undefined, and a foreign stream may be destroyed. So a
stream is queried and recorded on only while it is known to exist: if it is owned
(owned_streams.pxi), or is the stream of the request. For other streams only events recorded earlier
are queried; later work is done after a wait for the whole device.

While a capture is active no event is recorded and no stream is queried: both would become part of
the capture or invalidate it. So the allocator has to find out beforehand: every wait for the whole
device, whichever thread requests it, shows that all streams have caught up.
"""

# The state of a stream, made at first use; NULL when there is no host memory.
cdef StreamState* progress_of(DeviceAllocator* a, uint64_t stream) noexcept nogil:
    cdef StreamState* state
    for state in each(a.streams):
        if state.handle == stream:
            return state
    state = <StreamState*>calloc(1, sizeof(StreamState))
    if state != NULL:
        state.handle = stream
        state.is_owned = stream_is_owned(a.device, stream)
        state.bit = 1 if a.streams == NULL else a.streams.bit << 1 | a.streams.bit >> 63
        row_push(&a.streams, state)
    return state


cdef bint progress_is_done(StreamState* state, uint64_t epoch) noexcept nogil:
    return epoch < state.completed


cdef status_t event_take(DeviceAllocator* a, uint64_t* event) noexcept nogil:
    cdef status_t status
    if a.spare_event_count > 0:
        a.spare_event_count -= 1
        event[0] = a.spare_events[a.spare_event_count]
        return STATUS_OK
    device_unlock(a)
    status = a.driver.event_create(a.driver.self, event, 0)
    device_lock(a)
    return status


cdef void event_give(DeviceAllocator* a, uint64_t event) noexcept nogil:
    cdef int capacity
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


# Everything queued on the stream up to the end of `epoch` is known to be done.
cdef void progress_caught_up(StreamState* state, uint64_t epoch) noexcept nogil:
    state.completed = max(state.completed, epoch + 1)


# Queries a stream and its events, without the lock, and records the end of the epoch on it.
cdef void _advance(DeviceAllocator* a, StreamState* state, bint is_there) noexcept nogil:
    cdef bint[EVENT_RING] is_complete
    cdef bint is_idle, is_recorded
    # Blocks freed from now on belong to the next epoch, whatever the driver says about this one.
    cdef uint64_t ended = a.epoch
    cdef uint64_t event = 0
    cdef int i, kept = 0
    if state.newest < state.completed or (not is_there and state.ring_count == 0):
        return                          # there is nothing to learn
    a.epoch += is_there
    state.is_queried = True
    a.driver_requests += 1
    if is_there and event_take(a, &event) != STATUS_OK:
        event = 0
    device_unlock(a)
    driver = a.driver
    is_idle = is_there and driver.stream_query(driver.self, state.handle) == STATUS_OK
    for i in range(state.ring_count):
        is_complete[i] = is_idle or (driver.event_query(driver.self, state.ring[i].event)
                                     == STATUS_OK)
    is_recorded = (event != 0 and not is_idle and driver.event_record(
        driver.self, event, state.handle) == STATUS_OK)
    device_lock(a)
    a.driver_requests -= 1
    state.is_queried = False
    state.was_idle = is_idle
    if is_idle:
        progress_caught_up(state, ended)
    for i in range(state.ring_count):
        if is_complete[i]:
            progress_caught_up(state, state.ring[i].epoch)
            event_give(a, state.ring[i].event)
        else:
            state.ring[kept] = state.ring[i]
            kept += 1
    if is_recorded and kept < EVENT_RING:
        state.ring[kept] = StreamEvent(event, ended)
        kept += 1
    elif event != 0:
        event_give(a, event)
    state.ring_count = kept


cdef status_t progress_synchronize(DeviceAllocator* a) noexcept nogil:
    cdef StreamState* state
    cdef uint64_t ended = a.epoch
    cdef bint is_noted = not a.capturing
    cdef status_t status
    # Work queued from here on belongs to the next epoch; and no capture begins meanwhile.
    a.epoch += is_noted
    a.driver_requests += is_noted
    device_unlock(a)
    status = a.driver.synchronize(a.driver.self)
    device_lock(a)
    a.driver_requests -= is_noted
    if is_noted and status == STATUS_OK:
        a.waited = max(a.waited, ended)
        for state in each(a.streams):
            progress_caught_up(state, ended)
    return status


cdef void progress_advance(DeviceAllocator* a, uint64_t stream) noexcept nogil:
    cdef StreamState* state
    for state in each(a.streams):
        if a.capturing:
            return
        if state.handle == stream and not state.is_owned:
            # A new stream of ours may have the handle of another library's old one.
            state.is_owned = stream_is_owned(a.device, stream)
        if not state.is_queried:
            _advance(a, state, state.is_owned or state.handle == stream)
