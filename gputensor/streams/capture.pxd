# Which streams take part in the captures that are under way.

from libc.stdint cimport uint64_t

# How many captures of this library are under way, on all devices.
cdef int captures_active() noexcept nogil
# The caller has called pool_begin for `stream`, and calls pool_end for it. `is_private`: nobody
# queues work on the stream but captures.
cdef int capture_started(int device, uint64_t capture_id, uint64_t pool_id, uint64_t stream,
                         bint is_private) except -1
# To call after `stream` was made to wait for something: notes it when that made it join a capture,
# and sends its allocations to the capture's pool.
cdef void capture_joined(int device, uint64_t stream) noexcept nogil
# Forgets the capture and gives the handles of the streams that took part, the first one first;
# the caller calls graph_stream_release for each.
cdef list capture_finished(int device, uint64_t capture_id)
