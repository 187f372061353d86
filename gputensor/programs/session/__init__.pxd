# The graphs of sessions, for other rooms: a Bound is opaque to them.

from libc.stdint cimport uint64_t

from gputensor._driver.table cimport status_t

# `moving`: the addresses of inputs and outputs.
cdef object captured_bound(binding, dict weights, dict states, program, uint64_t arena,
                           const uint64_t* moving)
cdef status_t queue_captured(void* bound, uint64_t stream, const uint64_t* moving) noexcept nogil
