# Pinned host memory for copies between host and device. No function needs the GIL. The model is in
# pinned.pyx.

from libc.stdint cimport uint32_t, uint64_t

from gputensor._alloc.block cimport Block
from gputensor._driver.table cimport status_t

# At least `nbytes` (> 0) of host memory that `device` copies to and from at full speed; block.ptr
# is a host address, aligned to 512 bytes. NULL and a status when there is none. The device is open.
cdef Block* pinned_malloc(int device, size_t nbytes, status_t* status) noexcept nogil
# The same with the stack that history and snapshots name (history.pxd); pinned_malloc takes the
# caller's when it holds the GIL.
cdef Block* pinned_malloc_named(int device, size_t nbytes, uint32_t stack,
                                status_t* status) noexcept nogil
# Never waits. The memory is reused once the work queued so far on streams that used it is done.
cdef void pinned_free(Block* block) noexcept nogil
# Work queued on `stream` of the block's device reads or writes the block. Call it at any time
# before pinned_free.
cdef status_t pinned_use(Block* block, uint64_t stream) noexcept nogil
# The graph made by capture `capture_id` is given up: once its launches are done, blocks that it
# used are reused when they are freed.
cdef void pinned_capture_done(int device, uint64_t capture_id) noexcept nogil
# Free blocks whose work is done come back, and free segments go back to the system.
cdef void pinned_empty_cache(int device) noexcept nogil
# Turns a failed pinned_malloc into its exception.
cdef int raise_for_pinned(int device, size_t nbytes, status_t status) except -1
# Gives everything back that is not in use and forgets the device: before the device is closed.
cdef void pinned_close(int device) noexcept nogil
