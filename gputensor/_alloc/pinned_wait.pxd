# Freed pinned blocks and the streams they wait for. No lock may be held by the caller.

from gputensor._alloc.model cimport Block
from gputensor._alloc.pinned_pool cimport PinnedPool

# A block that nobody waits for any more is free; what is cached beyond the limit goes.
cdef void pinned_give_back(PinnedPool* pool, Block* block) noexcept nogil
# Records an event on each stream in block.uses; the block is free when all are done. While one of
# the streams captures, that is put off until the next pinned_collect.
cdef void pinned_await(PinnedPool* pool, Block* block) noexcept nogil
# Looks at the events, oldest first.
cdef void pinned_collect(PinnedPool* pool) noexcept nogil
# Waits for one event; False when nothing waits any more.
cdef bint pinned_wait_oldest(PinnedPool* pool) noexcept nogil
# Gives the spare events back to the driver.
cdef void pinned_drop_events(PinnedPool* pool) noexcept nogil
