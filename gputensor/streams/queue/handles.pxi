"""Handles of driver streams, which are kept for reuse when their Stream is dropped.

A driver stream is never destroyed: work queued on it finishes, and memory whose log names the
handle can still be ordered after it. A log may also name a dropped stream as the writer of its
memory, which cannot be used elsewhere while a stream with that handle captures. So captures do not
get a handle that has run work, but one made for captures, the least recently used.
"""

# `priority` is None for a stream that is made to capture on.
cdef uint64_t handle_take(int device, object priority) except? 0:
    cdef Driver* driver = driver_get(device)
    cdef DeviceStreams kept = streams_of(device)
    cdef list handles = kept.reusable.get(priority)
    cdef uint64_t handle = 0
    cdef int number = priority or 0
    cdef status_t status
    if handles:
        return handles.pop(0 if priority is None else -1)
    with nogil:
        status = driver.stream_create(driver.self, &handle, number)
    if status != STATUS_OK:
        raise_for_status(status, "stream_create", f"on {device_text(device)}")
    stream_own(device, handle)        # never destroyed, so the allocator may query it
    if priority is None:
        kept.capture_handles.add(handle)
    return handle


# Keeps the handle of a dropped stream for reuse.
cdef int handle_keep(int device, uint64_t handle, int priority) except -1:
    cdef DeviceStreams kept = streams_of(device)
    key = None if handle in kept.capture_handles else priority
    kept.reusable.setdefault(key, []).append(handle)
    return 0


def stream_for_captures(int device):
    """Return a stream to capture on. For the library itself."""
    cdef Stream made = Stream.__new__(Stream)
    made.handle = handle_take(device, None)
    made.device_number = device
    made.generation = device_generation(device)
    made.is_owned = made.is_private = True
    graph_stream_made(device, made.handle)
    return made
