# distutils: language = c++
"""What the history says of blocks: allocated, freed, free to be used again.

A block of a view (view.pyx) lies at addresses that belong to no segment, while its memory is that
of its parts, which a snapshot shows as allocated where they are. So the events of such a block are
those of its parts: then events and segments tell one story, which the viewers rely on.
"""

from libc.stdint cimport uint32_t, uint64_t

from gputensor._alloc.history cimport (
    HISTORY_ALLOC,
    HISTORY_FREE_COMPLETED,
    history_record_free,
    history_record_part,
)
from gputensor._alloc.model cimport Block


cdef inline uint64_t _pool_id(Block* block) noexcept nogil:
    return block.pool.pool_id if block.pool != NULL else 0


# What tells a replay which parts were one request.
cdef inline uint64_t _whole(Block* block) noexcept nogil:
    return block.ptr if block.view != NULL else 0


# The blocks that stand for `block`: itself, or its parts, linked by link_next.
cdef inline Block* _first(Block* block) noexcept nogil:
    return block if block.view == NULL else block.parts


cdef inline Block* _next(Block* block, Block* tile) noexcept nogil:
    return <Block*>NULL if block.view == NULL else tile.link_next


cdef void block_event_alloc(Block* block, uint32_t stack) noexcept nogil:
    cdef Block* tile = _first(block)
    while tile != NULL:
        tile.stack = stack
        history_record_part(block.device, HISTORY_ALLOC, tile.ptr, tile.nbytes,
                            tile.requested, block.stream, stack, _pool_id(block), _whole(block))
        tile = _next(block, tile)


cdef void block_event_free(Block* block, uint32_t stack, bint is_completed) noexcept nogil:
    cdef Block* tile = _first(block)
    while tile != NULL:
        history_record_free(block.device, tile.ptr, tile.nbytes, block.stream, stack,
                            _pool_id(block), _whole(block), is_completed)
        tile = _next(block, tile)


cdef void block_event_completed(Block* block) noexcept nogil:
    cdef Block* tile = _first(block)
    while tile != NULL:
        history_record_part(block.device, HISTORY_FREE_COMPLETED, tile.ptr, tile.nbytes,
                            tile.nbytes, block.stream, 0, _pool_id(block), _whole(block))
        tile = _next(block, tile)
