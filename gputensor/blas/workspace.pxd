# Scratch memory that a library call may use while it runs: one block for each (device, stream).

from libc.stdint cimport uint64_t

from gputensor._alloc.block cimport Block
from gputensor._driver.table cimport status_t

# What a call may use. `lent` is not NULL when the block is this call's alone (the stream is
# capturing); workspace_return gives it back once the call is queued.
cdef struct Workspace:
    uint64_t ptr
    size_t nbytes
    Block* lent

# At most `nbytes` of scratch memory; 0 bytes asks nothing of anybody.
cdef status_t workspace_take(int device, uint64_t stream, size_t nbytes,
                             Workspace* out) noexcept nogil
# Raises now what taking one would raise, before anything is queued.
cdef int workspace_ask(int device, uint64_t stream, size_t nbytes) except -1
cdef void workspace_return(Workspace* workspace) noexcept nogil
# The size that a new workspace of the device gets.
cdef size_t workspace_nbytes(int device) noexcept nogil
# Finds that size; with the GIL, before the first use of a device.
cdef int workspace_configure(int device) except -1
