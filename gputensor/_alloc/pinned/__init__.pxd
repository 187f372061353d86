# The functions of _alloc/pinned for other rooms; each section is named after its part.

from libc.stdint cimport int64_t, uint64_t

from gputensor._alloc.model cimport Block, DeviceAllocator
from gputensor._driver.table cimport status_t

# ---- pool

# A capture that used pinned memory.
cdef struct PinnedCapture:
    uint64_t capture_id
    int state                   # a CaptureState (allocator.pxi)
    PinnedCapture* next

# Times of a driver call in microseconds.
cdef struct CallTimes:
    int64_t total, max, min, count

# The pinned memory of one device: an allocator that has one pool, of the small kind and for stream
# 0, and plain segments from the system. Its `deferred` blocks are those that a graph keeps.
cdef struct PinnedPool:
    DeviceAllocator a           # first, so that a block leads to it
    bint is_closed              # the device was closed: blocks that are freed are only forgotten
    bint is_reserved            # the segment of pinned_reserve_segment_size_mb has been made
    PinnedCapture* captures
    CallTimes[2] times          # of making and of returning segments

# The pool of a device, or NULL when it has none yet.
cdef PinnedPool* pinned_pool_peek(int device) noexcept nogil


# ---- allocator

# Pinned host memory for copies between host and device. Only pinned_holds needs the GIL. The model
# is in allocator.pxi.

# At least `nbytes` (> 0) of host memory that `device` copies to and from at full speed; block.ptr
# is a host address, aligned to 512 bytes. NULL and a status when there is none. Needs an open
# device.
cdef Block* pinned_malloc(int device, size_t nbytes, status_t* status) noexcept nogil
# Never waits. The memory is reused once the work queued so far on streams that used it is done.
cdef void pinned_free(Block* block) noexcept nogil
# Work queued on `stream` of the block's device reads or writes the block. Call it at any time
# before pinned_free.
cdef status_t pinned_use(Block* block, uint64_t stream) noexcept nogil
# Whether all of this memory is pinned: in a block in use, or memory that the program registered;
# then the block is NULL. Needs the GIL.
cdef bint pinned_holds(uint64_t ptr, size_t nbytes, Block** block)
# Turns a failed pinned_malloc into its exception.
cdef int raise_for_pinned(int device, object nbytes, status_t status) except -1
