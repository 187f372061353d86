# Which streams take part in the captures that are under way.

from libc.stdint cimport uint64_t

# How many captures of this library are under way, on all devices.
cdef int captures_active() noexcept nogil
cdef int capture_started(int device, uint64_t capture_id, uint64_t stream) except -1
# To call after `stream` was made to wait for something: notes it when that made it join a capture.
cdef void capture_joined(int device, uint64_t stream) noexcept nogil
# Forgets the capture and gives the handles of the streams that took part, the first one first.
cdef list capture_finished(int device, uint64_t capture_id)
