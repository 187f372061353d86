# What the history says of blocks. Callers test history_enabled() first. No lock is needed: whoever
# calls holds the block.

from libc.stdint cimport uint32_t

from gputensor._alloc.model cimport Block

# A caller received the block; `stack` is kept with it for snapshots.
cdef void block_event_alloc(Block* block, uint32_t stack) noexcept nogil
# The caller gave it back; `is_completed`: no stream has to be waited for.
cdef void block_event_free(Block* block, uint32_t stack, bint is_completed) noexcept nogil
# The streams that a freed block waited for are done.
cdef void block_event_completed(Block* block) noexcept nogil
# A block of a view comes to be, with its parts, or ceases to be.
cdef void view_event_open(Block* block) noexcept nogil
cdef void view_event_close(Block* block) noexcept nogil
