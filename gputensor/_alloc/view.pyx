# distutils: language = c++
"""Views (bring-up: none is opened yet)."""
from libc.stdint cimport uint64_t

from gputensor._alloc.model cimport Block, BlockPool, DeviceAllocator


cdef Block* view_open(DeviceAllocator* a, BlockPool* pool, uint64_t stream,
                      size_t nbytes) noexcept nogil:
    return NULL


cdef void view_close(DeviceAllocator* a, Block* block) noexcept nogil:
    pass


cdef void views_drop_idle(DeviceAllocator* a) noexcept nogil:
    pass
