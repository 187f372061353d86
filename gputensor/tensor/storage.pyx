"""Storage: the memory behind tensors, and the record of who uses it.

A Storage owns either one Block of the allocator or a reference to a foreign owner, never both.
Views share it. Freeing never waits. A block goes back to the allocator, which holds it until the
streams that `order_read` and `order_write` told it about are done. A foreign owner is let go at
once when no queued work uses its memory, and is otherwise kept in `retired` behind one event for
each stream, which later imports and drops look through. All of this runs with the GIL held.
"""

cimport cython
from libc.stdint cimport uint64_t

from gputensor._alloc.allocator cimport allocator_free, allocator_malloc, raise_for_malloc
from gputensor._driver.registry cimport driver_get
from gputensor._driver.table cimport STATUS_OK, Driver, status_t
from gputensor.streams.current cimport current_stream
from gputensor.streams.ordering cimport (
    UseLog,
    event_return,
    event_take,
    use_log_drop,
    use_log_init,
)

# Owners of foreign memory that queued work still uses: (owner, device, list of events).
cdef list retired = []


@cython.final
@cython.no_gc
@cython.freelist(64)
cdef class Storage:
    """Memory on one device. Not for users: reached through a Tensor."""

    def __dealloc__(self):
        if self.owner is not None:
            retire(self)
        use_log_drop(&self.uses)
        if self.block is not NULL:
            allocator_free(self.block)


cdef Storage storage_new(int device, size_t nbytes):
    cdef Storage storage = Storage.__new__(Storage)
    cdef status_t status = STATUS_OK
    cdef uint64_t stream = current_stream(device)
    storage.device = device
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
    storage.device = device
    use_log_init(&storage.uses, device, stream)
    storage.ptr = ptr
    storage.nbytes = nbytes
    storage.owner = owner
    storage.is_readonly = is_readonly
    return storage


cdef int retire(Storage storage) except -1:
    """Keep the owner of foreign memory until the work queued on every stream of its log is done."""
    cdef UseLog* log = &storage.uses
    cdef list events = []
    cdef int i
    mark_stream(log.device, log.writer, events)
    if log.uses is not NULL:
        for i in range(log.count):
            mark_stream(log.device, log.uses[i].stream, events)
    else:
        mark_stream(log.device, log.only, events)
    retired.append((storage.owner, log.device, events))
    return release_retired()


cdef int mark_stream(int device, uint64_t stream, list events) except -1:
    cdef Driver* driver = driver_get(device)
    cdef uint64_t event = 0
    if driver.stream_query(driver.self, stream) == STATUS_OK:
        return 0
    if event_take(device, &event) == STATUS_OK:
        if driver.event_record(driver.self, event, stream) == STATUS_OK:
            events.append(event)
        else:
            event_return(device, event)
    return 0


cdef int release_retired() except -1:
    """Let go of the owners whose events are all done."""
    global retired
    cdef list kept
    if not retired:
        return 0
    kept = [entry for entry in retired if is_in_use(entry[1], entry[2])]
    dropped, retired = retired, kept
    del dropped
    return 0


cdef bint is_in_use(int device, list events):
    cdef Driver* driver = driver_get(device)
    cdef uint64_t event
    while events:
        event = events[len(events) - 1]
        if driver.event_query(driver.self, event) != STATUS_OK:
            return True
        event_return(device, event)
        events.pop()
    return False
