# The allocator's face for the rest of the library. No call needs the GIL; `stream` is a handle.

from libc.stdint cimport uint64_t

from gputensor._alloc.block cimport Block
from gputensor._driver.table cimport status_t

# Gives a block of at least `nbytes` (> 0) usable in stream order on `stream`, or NULL and a status.
cdef Block* allocator_malloc(int device, size_t nbytes, uint64_t stream,
                             status_t* status) noexcept nogil
# Never waits. The memory is reused once the work queued so far on the block's streams is done.
cdef void allocator_free(Block* block) noexcept nogil
# The block is also used by work queued on `stream`; free() will wait for it by an event.
cdef status_t allocator_record_stream(Block* block, uint64_t stream) noexcept nogil
# Waits for the whole device, as a user asks to, and learns from it that everything freed before is
# done.
cdef status_t allocator_synchronize(int device) noexcept nogil
# The same before a capture, which then finds what is free in the page pool. Not while another one
# is under way, which it would break: STATUS_CAPTURE_UNSUPPORTED.
cdef status_t allocator_settle(int device) noexcept nogil
# Turns a failed malloc into the exception for it (OutOfMemoryError with reason and amounts).
cdef int raise_for_malloc(int device, size_t nbytes, uint64_t stream,
                          status_t status) except -1
