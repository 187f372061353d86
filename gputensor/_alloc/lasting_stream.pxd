# Streams that stay valid as long as their device is open. Any thread, no lock needed.

from libc.stdint cimport uint64_t

# The stream is never destroyed while the device is open: those of this library are not.
cdef void stream_lasts(int device, uint64_t stream) noexcept nogil
cdef bint stream_is_lasting(int device, uint64_t stream) noexcept nogil
