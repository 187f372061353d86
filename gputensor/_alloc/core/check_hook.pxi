"""The hook that a debug build calls after each change of an allocator's records.

A build with GPUTENSOR_BUILD_DEBUG=1 defines GPUTENSOR_CHECK. The rooms that change the records use
only this file; the checker, which imports them all, registers itself here when it is imported. Its
own lock lets one check run at a time; it is taken with no other lock held but that of an ending
thread (thread_cache.pxi), and the device lock is taken under it.
"""

# Written under the check lock, by the checker's import.
cdef int32_t check_lock = 0
cdef check_function _function = NULL
cdef uint64_t _every = 1
cdef uint64_t _changes = 0

IS_CHECKED = bool(GT_IS_CHECKED)


cdef void check_install(check_function function, uint64_t every) noexcept nogil:
    global _function, _every
    cdef SpinHeld held
    held.take(&check_lock)
    _function = function
    _every = every


cdef void check_run(int device, const char* change) noexcept nogil:
    global _changes
    cdef SpinHeld held
    held.take(&check_lock)
    _changes += 1
    if _function != NULL and _changes % _every == 0:
        _function(device, change)


cdef void checks_stop() noexcept nogil:
    gt_spin_lock(&check_lock)


cdef void checks_resume() noexcept nogil:
    gt_spin_unlock(&check_lock)
