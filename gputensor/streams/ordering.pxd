# Automatic ordering: a use of memory on one stream waits for the uses on other streams that it
# depends on. DESIGN.md describes the model.
#
# Callers are in one section (section_begin of _driver/host.pxd) from the first order_* call of an
# operation until its work is queued: between the two, no other thread may use the same memory. All
# allocations of an operation come before its section.

from libc.stdint cimport uint64_t

from gputensor._alloc.block cimport Block
from gputensor._driver.table cimport status_t

# One stream that has used the memory. is_live: it has read since the last write, and is ordered
# after that write.
cdef struct Use:
    uint64_t stream
    uint64_t is_live
    uint64_t stamp          # wait_clock at its latest use (waited.pxd)

# Embedded in a tensor's storage.
#   only == writer      every use since the last write, and the write, was on this stream
#   only == ~0          other streams have read since; those are the live entries of `uses`
cdef struct UseLog:
    uint64_t only
    uint64_t writer         # the stream of the last write (at first: of the allocation)
    uint64_t stamp          # wait_clock at the latest use on it
    Use* uses               # streams that came after the first one; heap, kept across writes
    int count
    int capacity
    int device
    int writer_reads        # the writer's stream has read since another stream's first read
    int lock
    int held                # reads under way that writes wait for; changed in sections, read in one

# `stream`: where the memory was allocated, or is safe to use without a wait (foreign memory).
cdef void use_log_init(UseLog* log, int device, uint64_t stream) noexcept nogil
# Frees what the log holds; queues nothing.
cdef void use_log_drop(UseLog* log) noexcept nogil
# `block` is NULL for memory that the allocator does not own. Gives a status; raise_for_order makes
# the exception.
cdef status_t order_read(UseLog* log, Block* block, uint64_t stream) noexcept nogil
cdef status_t order_write(UseLog* log, Block* block, uint64_t stream) noexcept nogil
cdef int raise_for_order(int device, uint64_t stream, status_t status) except -1

# A read whose work is queued bit by bit: in its section, after order_read. Until the release (by any
# thread, with or without the GIL) a write of the memory waits in order_write, and so do replays.
cdef void use_log_hold(UseLog* log) noexcept nogil
cdef void use_log_release(UseLog* log) noexcept nogil
# In a section: waits until no memory is held.
cdef void wait_for_held() noexcept nogil

# Whether this thread orders its streams itself.
cdef bint ordering_is_manual() noexcept nogil

# Work queued on `waiter` from now on starts after the work queued on `other` so far. One event
# from the device's pool; no allocation when the pool has one.
cdef status_t stream_wait_stream(int device, uint64_t waiter, uint64_t other) noexcept nogil
# The same for a stream `other` of another device of the same kind, `peer`. Not during captures.
cdef status_t stream_wait_peer(int device, uint64_t waiter, int peer,
                               uint64_t other) noexcept nogil
