# Where a debug build checks the books: each operation that changes an allocator calls `check_after`
# as its last step, with no lock held. In other builds that is no instruction.

from libc.stdint cimport uint64_t

cdef extern from *:
    """
    #ifdef GPUTENSOR_CHECK
    #define GT_IS_CHECKED 1
    #else
    #define GT_IS_CHECKED 0
    #endif
    """
    enum: GT_IS_CHECKED

ctypedef void (*check_function)(int device, const char* change) noexcept nogil

# `function` is called after every `every`-th change from now on. It takes the device lock.
cdef void check_install(check_function function, uint64_t every) noexcept nogil
cdef void check_run(int device, const char* change) noexcept nogil
# No check runs between these two: around the moment when an allocator ceases to be.
cdef void checks_stop() noexcept nogil
cdef void checks_resume() noexcept nogil


cdef inline void check_after(int device, const char* change) noexcept nogil:
    if GT_IS_CHECKED:
        check_run(device, change)
