# Views: free pages of several places, mapped side by side a second time. See view.pyx.

from libc.stdint cimport uint64_t

from gputensor._alloc.model cimport Block, BlockPool, DeviceAllocator

# Needs the device lock, which it may give up. A HELD block that is a view, or NULL when a view is
# not possible, or not worth its driver calls with an `effort` of VIEW_IF_WORTH.
cdef Block* view_open(DeviceAllocator* a, BlockPool* pool, uint64_t stream,
                      size_t nbytes, int effort) noexcept nogil
# A view's block is free again: its home tiles return to their pools, its mappings are kept.
cdef void view_close(DeviceAllocator* a, Block* block) noexcept nogil
# Gives the home tiles of a view's block its state.
cdef void view_show(Block* block, int state) noexcept nogil
# Unmaps and forgets all views that nobody uses and the device is done with.
cdef void views_drop_idle(DeviceAllocator* a) noexcept nogil
