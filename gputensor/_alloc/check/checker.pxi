"""Derives every invariant of DESIGN.md and model.pxd again, from the records themselves.

`check(device)` stops the allocator, walks all records, and returns the violations as sentences; an
empty list means that all invariants hold. It is correct at any moment: memory in flight in other
threads shows in its state or in a count. The check shares no code with the allocator and changes
nothing, so it cannot hide a fault; it allocates nothing and runs no Python while it holds the lock.

A debug build calls it after each change (check_hook.pxi), or after each `GPUTENSOR_CHECK_EVERY`-th,
and ends the process at the first violation, as a failed assertion does: a thread that frees a
tensor, or ends, cannot raise, and the next request might overwrite memory in use.
"""

cdef gt_faults _found           # of the hook, which runs in one thread at a time


cdef void _check(DeviceAllocator* a, gt_faults* faults) noexcept nogil:
    cdef Walk walk
    memset(&walk, 0, sizeof(Walk))
    walk.faults = faults
    device_lock(a)
    caches_stop(a)
    tiles_check(a, &walk)
    views_check(a, &walk)
    lists_check(a, &walk)
    statistics_check(a, &walk)
    caches_resume(a)
    device_unlock(a)


# Checks the memory of a device, and its pinned host memory.
cdef void _check_device(int device, gt_faults* faults) noexcept nogil:
    cdef DeviceAllocator* a = allocator_find(device)
    cdef DeviceAllocator* pinned = <DeviceAllocator*>pinned_pool_peek(device)
    faults.count = 0
    if a != NULL:
        _check(a, faults)
    if pinned != NULL:
        _check(pinned, faults)


cdef void _check_or_abort(int device, const char* change) noexcept nogil:
    _check_device(device, &_found)
    if _found.count > 0:
        gt_faults_abort(&_found, device, change)


def check(int device):
    """Return the violated invariants of a device's allocators, as sentences."""
    cdef unique_ptr[gt_faults] faults = make_unique[gt_faults]()
    cdef int i
    with nogil:
        _check_device(device, faults.get())
    return [(<bytes>faults.get().texts[i]).decode()
            for i in range(min(faults.get().count, GT_FAULTS))]


def _every():
    text = os.environ.get("GPUTENSOR_CHECK_EVERY", "").strip() or "1"
    if not text.isdecimal() or not 0 < int(text) < 1 << 63:
        raise ValueError(f"GPUTENSOR_CHECK_EVERY: got {text!r}; expected an integer above 0")
    return int(text)


if GT_IS_CHECKED:
    check_install(_check_or_abort, _every())
