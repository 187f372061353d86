# What is known of how far the device has come on each stream. Needs the device lock.

from libc.stdint cimport uint64_t

from gputensor._alloc.model cimport DeviceAllocator, StreamState
from gputensor._driver.table cimport status_t

# The state of a stream, made at first use; NULL when there is no host memory.
cdef StreamState* progress_of(DeviceAllocator* a, uint64_t stream) noexcept nogil
# Whether work queued before the end of `epoch` is known to be done.
cdef bint progress_is_done(DeviceAllocator* a, StreamState* state, uint64_t epoch) noexcept nogil
# On a miss of `stream`, giving the lock up for it: looks at the events recorded before, and ends
# the current epochs of that stream and of those that last with new ones.
cdef void progress_advance(DeviceAllocator* a, uint64_t stream) noexcept nogil
# Everything queued so far on the stream is done: its caller synchronised.
cdef void progress_caught_up(StreamState* state, uint64_t epoch) noexcept nogil
# Waits for the whole device, with the lock given up: then every stream has caught up with what was
# queued before the wait began. During a capture only the driver is called, and nothing is noted.
cdef status_t progress_synchronize(DeviceAllocator* a) noexcept nogil
# Events to record into, kept for reuse. event_take may give the lock up.
cdef status_t event_take(DeviceAllocator* a, uint64_t* event) noexcept nogil
cdef void event_give(DeviceAllocator* a, uint64_t event) noexcept nogil
