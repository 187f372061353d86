# Events without time stamps, shared by the whole library. A returned event may be handed out again
# at once: a queued wait refers to the record that was made before it.

from libc.stdint cimport uint64_t

from gputensor._driver.table cimport status_t

cdef status_t event_take(int device, uint64_t* event) noexcept nogil
cdef void event_return(int device, uint64_t event) noexcept nogil
# An event behind the work that `stream` holds now; 0 when the status is not OK.
cdef status_t event_behind(int device, uint64_t stream, uint64_t* event) noexcept nogil
