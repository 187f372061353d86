# Which work is known to be done because a thread of this process waited for it.

from libc.stdint cimport uint64_t

# How many waits have begun, and replays been queued. Read without a lock: a use of memory is
# stamped with it, in the section that queues the use.
cdef uint64_t wait_clock

# A wait begins (with the GIL, no use being queued) at the moment that is returned; when it succeeds
# the work queued before on `stream`, or on all streams of the device, is done.
cdef uint64_t wait_begun() noexcept nogil
cdef void wait_succeeded(int device, uint64_t stream, uint64_t moment) noexcept nogil
cdef void wait_succeeded_for_all(int device, uint64_t moment) noexcept nogil
# A replay waits on `stream`, or is waited for there: it uses memory whose stamps do not show it.
cdef void replay_came(int device, uint64_t stream) noexcept nogil
# Whether the uses on `stream` of memory stamped `stamp` there are done, replays included.
cdef bint is_waited_for(int device, uint64_t stream, uint64_t stamp) noexcept nogil
