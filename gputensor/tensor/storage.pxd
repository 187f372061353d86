# A Storage owns the memory that tensors view: a block of the allocator, or memory of a foreign
# owner. Views share one Storage, so they share its UseLog and are ordered against each other.

from libc.stdint cimport uint64_t

from gputensor._alloc.block cimport Block
from gputensor.streams.ordering cimport UseLog

cdef class Storage:
    cdef Block* block           # NULL: foreign memory, or no bytes at all
    cdef UseLog uses            # who wrote and read it last, by stream
    cdef uint64_t ptr           # address of the first byte; 0 when nbytes is 0
    cdef size_t nbytes
    cdef int device             # device number (see _driver/table.pxd)
    cdef int generation         # of the device: another one has the number when it has changed
    cdef bint is_readonly       # foreign memory that must not be written
    cdef object owner           # keeps foreign memory alive; None when the block is ours

# New memory of `nbytes` on the device's current stream. Raises OutOfMemoryError and creates
# nothing when the device has not enough.
cdef Storage storage_new(int device, size_t nbytes)
# Memory of somebody else, alive as long as `owner` is. Work queued on `stream` may use it without
# a wait.
cdef Storage storage_foreign(int device, uint64_t ptr, size_t nbytes, object owner,
                             bint is_readonly, uint64_t stream)
# Raises DeviceError when the device of the storage was closed. Another device may have the number
# by now. Callers ask first whether the number is below `closable`: only host devices below -1 can
# be closed, and in a forked process all that its parent had open are.
cdef int storage_check_open(Storage storage) except -1
cdef int closable
