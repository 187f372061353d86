"""The topmost slot of open devices, which notifies tests of a device's events."""

cdef list watchers = []


@contextlib.contextmanager
def watched(function):
    """Call ``function("close", device)`` and ``function("release", device, capture_id)``."""
    watchers.append(function)
    try:
        yield
    finally:
        watchers.remove(function)


cdef int _close(int device) except -1:
    for function in watchers:
        function("close", device)
    return 0


cdef int _release(int device, uint64_t capture_id) except -1:
    for function in watchers:
        function("release", device, capture_id)
    return 0


cdef Slot slot
slot.close = _close
slot.release = _release
register_slot(&slot)
