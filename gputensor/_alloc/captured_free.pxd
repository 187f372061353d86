# Blocks freed during a capture that the graph itself gives back. Needs the device lock.

from libc.stdint cimport uint64_t

from gputensor._alloc.model cimport Block, BlockPool, DeviceAllocator

# A block with uses was freed during a capture and is in a.deferred: notes what has to come before
# its next use, when the option is on and the capture can tell.
cdef void captured_free_note(DeviceAllocator* a, Block* block) noexcept nogil
# Gives the blocks of the pool back that the next work of `stream` comes after all uses of; whether
# there were any.
cdef bint captured_frees_collect(DeviceAllocator* a, BlockPool* pool,
                                 uint64_t stream) noexcept nogil
# The captures are over: events tell from now on.
cdef void captured_frees_forget(DeviceAllocator* a) noexcept nogil
