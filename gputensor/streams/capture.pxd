# Which streams take part in the captures that are under way, and what they must be ordered with.

from libc.stdint cimport uint64_t

from gputensor._alloc.model cimport PoolHold
from gputensor._driver.table cimport status_t

# How many captures of this library are under way, on all devices.
cdef int captures_active() noexcept nogil
# The caller has called pool_begin for `stream`, and calls pool_end for it. `before`: an event
# behind what the stream held when the capture began, taken over. `is_private`: nobody queues work
# on the stream but captures.
cdef int capture_started(int device, uint64_t capture_id, uint64_t pool_id, uint64_t stream,
                         uint64_t before, bint is_private) except -1
# To call before and after `stream` is made to wait for something while captures are active. When
# that makes it join a capture, the second call notes it, and sends its allocations to the capture's
# pool. `before` goes from the first to the second.
cdef status_t capture_joining(int device, uint64_t stream, uint64_t* before) noexcept nogil
cdef void capture_joined(int device, uint64_t stream, uint64_t before) noexcept nogil
# For a stream `other` that captures. Needs the GIL, which keeps the capture from ending meanwhile.
# Orders `waiter` after what `other` held before its capture, and after what it owes a wait.
cdef status_t capture_wait_before(int device, uint64_t waiter, uint64_t other) noexcept nogil
# `other` will wait, when its capture is over, for what `stream` holds now.
cdef status_t capture_owe(int device, uint64_t other, uint64_t stream) noexcept nogil
# Forgets the capture, lets its streams wait for what they owe, and gives their handles, the first
# one first; the caller calls graph_stream_release for each. `waits` is the status of the waits;
# `holds` gets the pools that streams which joined took memory from (pool_end).
cdef list capture_finished(int device, uint64_t capture_id, status_t* waits, PoolHold** holds)
