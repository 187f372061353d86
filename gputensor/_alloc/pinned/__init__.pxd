# What other rooms may call of _alloc/pinned; each section is named after its part.

from libc.stdint cimport int32_t, int64_t, uint32_t, uint64_t

from gputensor._alloc.core cimport Block
from gputensor._alloc.model cimport Bins, Block, Segment, Stat
from gputensor._driver.table cimport status_t

# ---- pool

# The free pinned memory of one device: bins of blocks, the segments they tile, and the statistics.
# Functions ending in _locked need PinnedPool.lock; the others take it themselves and make their
# driver calls without it.

# Work on a stream that a freed block waits for.
cdef struct PinnedEvent:
    uint64_t event
    Block* block
    PinnedEvent* next

# The waits on one stream, oldest first: when the head is not done, the others are not either.
cdef struct PinnedQueue:
    uint64_t stream
    PinnedEvent* head
    PinnedEvent* tail
    PinnedQueue* next

# A capture that used pinned memory.
cdef struct PinnedCapture:
    uint64_t capture_id
    bint is_gone                # its graph was given up; launches may still run
    PinnedCapture* next

# Times of a driver call in microseconds.
cdef struct CallTimes:
    int64_t total, largest, smallest, count

cdef enum:                      # in the order of STAT_NAMES (memory.pxi); bytes follow their count
    PINNED_SEGMENTS = 0
    PINNED_BLOCKS = 2           # with callers, or waiting for streams

cdef struct PinnedFigures:
    Stat[4] stats
    CallTimes[2] times          # of making and of returning segments
    int64_t[2] calls

cdef struct PinnedPool:
    int32_t lock
    int device
    bint is_closed              # the device was closed: what comes back is only forgotten
    bint is_reserved            # the segment of pinned_reserve_segment_size_mb has been made
    Segment* segments           # of these only first, stack and the links are used
    Bins bins                   # free blocks; whole segments among them
    size_t free_nbytes          # sum over the bins
    int64_t borrowed            # events that a thread has taken out of a queue to look at
    PinnedQueue* queues
    PinnedEvent* spare          # records whose event can be recorded again
    Block* deferred             # freed while a stream that used it captures; link_next
    Block* captured             # used by a graph (block.epoch: its capture), freed; link_next
    PinnedCapture* captures
    PinnedFigures figures

# The pool of a device, or NULL when it has none yet.
cdef PinnedPool* pinned_pool_peek(int device) noexcept nogil


# ---- allocator

# Pinned host memory for copies between host and device. No function needs the GIL. The model is in
# allocator.pxi.

# At least `nbytes` (> 0) of host memory that `device` copies to and from at full speed; block.ptr
# is a host address, aligned to 512 bytes. NULL and a status when there is none. The device is open.
cdef Block* pinned_malloc(int device, size_t nbytes, status_t* status) noexcept nogil
# Never waits. The memory is reused once the work queued so far on streams that used it is done.
cdef void pinned_free(Block* block) noexcept nogil
# Work queued on `stream` of the block's device reads or writes the block. Call it at any time
# before pinned_free.
cdef status_t pinned_use(Block* block, uint64_t stream) noexcept nogil
# Whether a program holds this memory as pinned: a PinnedMemory, whose block it is, or memory that
# it registered; then the block is NULL.
cdef bint pinned_holds(uint64_t ptr, size_t nbytes, Block** block) noexcept nogil
# Turns a failed pinned_malloc into its exception.
cdef int raise_for_pinned(int device, size_t nbytes, status_t status) except -1
