# Moving free pages from pool to pool before a pool grows.

from libc.stdint cimport uint64_t

from gputensor._alloc.model cimport BlockPool, DeviceAllocator

# Puts whole free pages of other pools into the page pool, as many as the request needs and as the
# bound on driver time allows. Needs the device lock, gives it up; not for use during a capture.
cdef void pages_bring(DeviceAllocator* a, BlockPool* pool, uint64_t stream,
                      size_t nbytes) noexcept nogil
