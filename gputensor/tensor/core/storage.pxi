"""Storage: the memory behind tensors, and the record of its uses.

A Storage owns either one Block of the allocator or a reference to a foreign owner, never both.
Views share it. Freeing never waits. A block returns to the allocator, which holds it until the
streams reported by `order_read` and `order_write` are done. A foreign owner is released at once if
no queued work uses its memory; otherwise it is kept in `retired`, with one event for each stream,
and later imports and drops check these events. All of this runs with the GIL held.
"""

# Owners of foreign memory that queued work may still use: [owner, device, streams, events]. The
# events are None until they can be recorded; that is not possible while this thread captures a
# graph or one of the streams takes part in any thread's capture.
cdef list retired = []

cdef int closable = HOST_DEVICE
cdef int closable_untraced = HOST_DEVICE    # its value while no function is traced
cdef int traces = 0


@cython.final
@cython.no_gc
@cython.freelist(64)
cdef class Storage:
    """Memory on one device. Internal: users reach it through a Tensor."""

    def __dealloc__(self):
        # A closed host device has freed its memory, and another one may have its number.
        cdef bint is_closed = self.generation != device_generation(self.device)
        if self.owner is not None and not is_closed:
            retire(self)
        use_log_drop(&self.uses)
        if self.block is not NULL and not is_closed:
            allocator_free(self.block)


# New memory of `nbytes` for a stream. Raises OutOfMemoryError and creates nothing if the device has
# not enough.
cdef Storage storage_new(int device, size_t nbytes, uint64_t stream):
    cdef Storage storage = Storage.__new__(Storage)
    cdef status_t status = STATUS_OK
    storage.device = device
    storage.generation = device_generation(device)
    use_log_init(&storage.uses, device, stream)
    if nbytes:
        storage.block = allocator_malloc(device, nbytes, stream, &status)
        if storage.block is NULL:
            raise_for_malloc(device, nbytes, stream, status)
        storage.ptr = storage.block.ptr
        storage.nbytes = nbytes
    return storage


cdef Storage storage_foreign(int device, uint64_t ptr, size_t nbytes, object owner,
                             bint is_readonly, uint64_t stream):
    cdef Storage storage = Storage.__new__(Storage)
    release_retired()
    if is_tracing():
        device = current_tracer().outside(device)
    storage.device = device
    storage.generation = device_generation(device)
    use_log_init(&storage.uses, device, stream)
    storage.ptr = ptr
    storage.nbytes = nbytes
    storage.owner = owner
    storage.is_readonly = is_readonly
    return storage


cdef int storage_check_open(Storage storage) except -1:
    if storage.generation != device_generation(storage.device):
        raise_closed(storage.device, storage.generation, "tensor")
    return 0


cdef int retire(Storage storage) except -1:
    """Keep the owner of foreign memory until the queued work on every stream of its log is done."""
    cdef UseLog* log = &storage.uses
    cdef list streams = [log.writer]
    cdef int i
    if log.uses is NULL:
        streams.append(log.only)
    else:
        for i in range(log.count):
            streams.append(log.uses[i].stream)
    retired.append([storage.owner, log.device, streams, None])
    return release_retired()


cdef int release_retired() except -1:
    """Release the owners whose memory no queued work uses any more."""
    global retired
    cdef list kept
    if not retired:
        return 0
    kept = [entry for entry in retired if is_in_use(entry)]
    dropped, retired = retired, kept
    del dropped
    return 0


cdef bint is_in_use(list entry) except -1:
    """Return whether queued work may still use the memory; the first call records its events."""
    cdef int device = entry[1]
    cdef Driver* driver = driver_get(device)
    cdef list events
    cdef uint64_t event, stream
    if stream_captures(device, current_handle(device)):
        return True
    if entry[3] is None:
        for stream in entry[2]:
            if stream_captures(device, stream):
                return True
        entry[3] = marks(driver, device, entry[2])
    events = entry[3]
    while events:
        event = events[len(events) - 1]
        if driver.event_query(driver.self, event) != STATUS_OK:
            return True
        event_return(device, event)
        events.pop()
    return False


cdef list marks(Driver* driver, int device, list streams):
    """Return an event behind the work queued so far on each stream that is not idle.

    A stream of captures is idle until it gets its waits for replays, which use the memory too.
    """
    cdef list events = []
    cdef uint64_t event
    cdef uint64_t stream
    for one in set(streams):
        stream = one
        event = 0
        graph_stream_give(device, stream)
        if driver.stream_query(driver.self, stream) == STATUS_OK:
            continue
        if event_take(device, &event) != STATUS_OK:
            continue
        if driver.event_record(driver.self, event, stream) == STATUS_OK:
            events.append(event)
        else:
            event_return(device, event)
    return events


def forget_retired(int device):
    """Release all owners of foreign memory used on a device that closes, where no work runs."""
    global retired
    dropped = [entry for entry in retired if entry[1] == device]
    retired = [entry for entry in retired if entry[1] != device]
    del dropped


cdef int _close(int device) except -1:
    forget_retired(device)
    return 0


cdef void _fork() noexcept nogil:
    global closable, closable_untraced
    closable = closable_untraced = MAX_DEVICES - HOST_DEVICES


cdef Slot slot
slot.close = _close
slot.fork = _fork
slot.reopen = _close
register_slot(&slot)
