# The functions of _alloc/history for other rooms; each section is named after its part.

from libc.stdint cimport uint32_t, uint64_t

from gputensor._alloc.model cimport Block, Segment

# ---- stacks

# Turns ids into lists of frame dicts for one snapshot; equal stacks share one list.
cdef class StackFormatter:
    cdef list _lists            # by id: the list of a stack already formatted, or None
    cdef dict _frames           # (code address, offset) -> frame dict
    cdef list _empty            # what id 0 gets
    cdef list frames_of(self, uint32_t stack)

# For the tests' extension. stacks_walk_directly: whether the interpreter's frame records are read
# directly (frames.h says when). stacks_choose_walk: use only CPython's public functions, or read
# the records directly again where that works.
cdef bint stacks_walk_directly() noexcept
cdef void stacks_choose_walk(bint is_public) noexcept


# ---- history

# No function here waits or allocates host memory; any lock may be held.

cdef enum:
    HISTORY_ALLOC = 0
    HISTORY_FREE_REQUESTED = 1
    HISTORY_FREE_COMPLETED = 2
    HISTORY_SEGMENT_ALLOC = 3
    HISTORY_SEGMENT_FREE = 4
    HISTORY_SEGMENT_MAP = 5
    HISTORY_SEGMENT_UNMAP = 6
    HISTORY_SNAPSHOT = 7
    HISTORY_OOM = 8             # ptr carries the bytes free on the device
    HISTORY_ACTIONS = 9

cdef enum:
    HISTORY_TRACE = 1           # events go to the ring: call history_record
    HISTORY_STACK_ALLOC = 2     # stacks of allocations (the block keeps it), segments and OOMs
    HISTORY_STACK_FREE = 4      # stacks of frees

# The HISTORY_* bits in force; 0 while history is off. One load of a global.
cdef int history_enabled(int device) noexcept nogil
# Adds one record (nothing when HISTORY_TRACE is off). Lock-free.
cdef void history_record(int device, int action, uint64_t ptr, size_t nbytes, uint64_t stream,
                         uint32_t stack, uint64_t pool_id) noexcept nogil
# Adds a record of a segment, or of a part of one. (Pinned memory has a history of its own.)
cdef void history_segment(int action, Segment* segment, uint64_t ptr, size_t nbytes,
                          uint32_t stack) noexcept nogil
# The id of the caller's Python stack when `wanted` (HISTORY_STACK_ALLOC or HISTORY_STACK_FREE) is
# on and the thread holds the GIL, else 0. Call it before taking the allocator's lock.
cdef uint32_t stack_capture_if(int wanted) noexcept nogil
# The same; until the next call, events of segments that this thread causes have this stack. A
# request ends with stack_for_request(0).
cdef uint32_t stack_for_request(int wanted) noexcept nogil
cdef uint32_t stack_of_request() noexcept nogil
# The entries of a device, or of its pinned memory, for a snapshot: oldest first, a list of dicts in
# PyTorch's schema.
cdef list history_entries(int device, object formatter, bint is_pinned)


# ---- block_events

# The history events of blocks. Fast paths test history_enabled() first. No lock is needed, because
# the caller holds the block.

# A caller received the block; `stack` is kept with it for snapshots.
cdef void block_event_alloc(Block* block, uint32_t stack) noexcept nogil
# The caller gave it back; `is_completed`: there is no stream to wait for.
cdef void block_event_free(Block* block, uint32_t stack, bint is_completed) noexcept nogil
# The streams that a freed block waited for are done.
cdef void block_event_completed(Block* block) noexcept nogil
# A block of a view is created, with its parts, or removed.
cdef void view_event_open(Block* block) noexcept nogil
cdef void view_event_close(Block* block) noexcept nogil
