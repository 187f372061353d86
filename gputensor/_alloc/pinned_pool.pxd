# The free pinned memory of one device: bins of blocks, the segments they tile, and the statistics.
# Functions ending in _locked need PinnedPool.lock; the others take it themselves and make their
# driver calls without it.

from libc.stdint cimport int32_t, int64_t, uint32_t, uint64_t

from gputensor._alloc.model cimport Bins, Block, Stat
from gputensor._driver.table cimport status_t

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

# A segment, by its first block: splitting leaves that record in front, and joining keeps it.
cdef struct PinnedSegment:
    Block* first
    uint32_t stack              # where it was made
    PinnedSegment* next

# Times of a driver call in microseconds.
cdef struct CallTimes:
    int64_t total, largest, smallest, count

cdef struct PinnedPool:
    int32_t lock
    int device
    bint is_closed              # the device was closed: what comes back is only forgotten
    bint is_reserved            # the segment of pinned_reserve_segment_size_mb has been made
    PinnedSegment* segments
    Bins bins                   # free blocks; whole segments among them
    size_t free_nbytes          # sum over the bins
    int64_t waiting             # blocks in the queues and in `deferred`, captures that are gone
    int64_t borrowed            # events that a thread has taken out of a queue to look at
    PinnedQueue* queues
    PinnedEvent* spare          # records whose event can be recorded again
    Block* deferred             # freed while a stream that used it captures; link_next
    Block* captured             # used by a graph (block.epoch: its capture), freed; link_next
    PinnedCapture* captures
    Stat allocations            # segments; bytes of segments
    Stat allocated_bytes
    Stat active_requests        # blocks with callers, or waiting for streams
    Stat active_bytes
    CallTimes alloc_times
    CallTimes free_times
    int64_t num_host_alloc
    int64_t num_host_free

# The pool of an open device, made at first use; NULL: no host memory for it.
cdef PinnedPool* pinned_pool(int device) noexcept nogil
# The same without making it.
cdef PinnedPool* pinned_pool_peek(int device) noexcept nogil
# The pool of a block.
cdef inline PinnedPool* pinned_pool_of(const Block* block) noexcept nogil:
    return <PinnedPool*>block.pool

# Takes the pool out of the device's place; blocks that are still out know it.
cdef void pinned_pool_detach(PinnedPool* pool) noexcept nogil
# The smallest free block that fits, cut to `nbytes` (a multiple of 512) and counted as in use.
cdef Block* pinned_take(PinnedPool* pool, size_t nbytes) noexcept nogil
# A block comes back: it joins its free neighbours.
cdef void pinned_insert_locked(PinnedPool* pool, Block* block) noexcept nogil
# A block of `nbytes` cut from a new segment; the rest of the segment goes into the bins.
cdef Block* pinned_grow(PinnedPool* pool, size_t segment_nbytes, size_t nbytes, uint32_t stack,
                        status_t* status) noexcept nogil
# Whole free segments go back to the system, largest first, until at most `keep` bytes are free.
cdef void pinned_trim(PinnedPool* pool, size_t keep) noexcept nogil
# Whether the settings could be read; they are read on the first call and after each change.
cdef bint pinned_configured() noexcept nogil
cdef size_t pinned_max_cached() noexcept nogil
cdef size_t pinned_reserve_segment() noexcept nogil
