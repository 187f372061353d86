"""Marks: events after some work of a stream, which several records share.

A replay is marked once. The graph keeps its mark in order to wait for the replay before it is
released; private streams keep it in place of a wait (graph_streams.pxi); captures keep it for the
time after them. The event goes back to the pool with the last of them, and is never recorded again
before.
"""

# Takes the event, which goes back to the pool if there is no memory for the mark.
cdef Mark* mark_of(int device, uint64_t event, uint64_t stream, uint64_t moment) noexcept nogil:
    cdef Mark* made = <Mark*>malloc(sizeof(Mark))
    if made == NULL:
        event_return(device, event)
    else:
        made[0] = Mark(1, event, stream, moment)
    return made


cdef void mark_drop(int device, Mark* mark) noexcept nogil:
    mark_drop_some(device, mark, 1)


# Drops a mark for several holders.
cdef void mark_drop_some(int device, Mark* mark, int count) noexcept nogil:
    cdef uint64_t event
    if mark != NULL and mark_let_go(mark, count):
        event = mark.event
        free(mark)
        event_return(device, event)


cdef void mark_forget(Mark* mark) noexcept nogil:
    if mark != NULL and mark_let_go(mark):
        free(mark)


cdef status_t mark_behind(int device, uint64_t stream, Mark** mark) noexcept nogil:
    cdef uint64_t event
    cdef status_t status = event_behind(device, stream, &event)
    mark[0] = NULL
    if status == STATUS_OK:
        mark[0] = mark_of(device, event, stream, 0)
        status = STATUS_OK if mark[0] != NULL else STATUS_OUT_OF_MEMORY
    return status


cdef status_t mark_replay(int device, uint64_t stream, Mark** mark) noexcept nogil:
    cdef Driver* driver = driver_get(device)
    cdef uint64_t moment = wait_begun()
    cdef Mark* former = mark[0]
    cdef status_t status
    if former != NULL and not mark_is_shared(former):
        status = driver.event_record(driver.self, former.event, stream)
        if status == STATUS_OK:
            former.stream = stream
            former.moment = moment
        return status
    status = mark_behind(device, stream, mark)
    if status != STATUS_OK:
        mark[0] = former
        return status
    mark[0].moment = moment
    mark_drop(device, former)
    return STATUS_OK
