# Handles of driver streams: a dropped stream's is kept and given out again.

from libc.stdint cimport uint64_t

# `priority` is None for a stream that is made to capture on.
cdef uint64_t handle_take(int device, object priority) except? 0
# Of a stream that is dropped: it is kept, and not destroyed.
cdef int handle_keep(int device, uint64_t handle, int priority) except -1
