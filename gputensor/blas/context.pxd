# The libraries work in the context that is current in the calling thread.

from libc.stdint cimport uint64_t

from gputensor._driver.table cimport status_t

# Makes the device's context current in this thread; `stream` is any stream of the device.
cdef status_t context_bind(int device, uint64_t stream) noexcept nogil
