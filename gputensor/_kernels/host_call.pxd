# Work on a host device: a Python callable queued on one of its streams.
#
# A host device may run it at once, or later in any order that its streams and events allow. An
# exception inside the callable is kept for its device, and raised by the next host_call or
# raise_pending on that device; on a device that does not defer that is the very same call, or the end
# of the section that it is in.
# Every function needs the GIL.

from libc.stdint cimport uint64_t

from gputensor._kernels.operand cimport Operand

# Queues function(*arguments); holds both until it ran (for captured work: until the capture's
# graph is released).
cdef int host_call(int device, uint64_t stream, object function, tuple arguments) except -1
# Raises the first exception that queued work of this device left, once.
cdef int raise_pending(int device) except -1
# Forgets the callables that were queued while the capture `capture_id` was active.
cdef int host_call_release(int device, uint64_t capture_id) except -1
# A NumPy array over the operand's memory (no copy, owns nothing); for a scalar operand a 0-d array
# of the operand's dtype.
cdef object host_view(Operand* operand)

cdef inline bint is_host(int device) noexcept nogil:
    return device < 0
