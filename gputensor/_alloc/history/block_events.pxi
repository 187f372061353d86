"""History events of blocks: allocated, freed, free to be used again.

A block of a view (view.pxi) has its own addresses, and the memory under it is that of its parts.
Events and snapshots agree about it, as viewers require: while the block is in use its parts are
unmapped at home, and mapped as one segment at the caller's address.
"""

cdef inline uint64_t _pool_id(Block* block) noexcept nogil:
    return block.pool.pool_id if block.pool != NULL else 0


cdef void block_event_alloc(Block* block, uint32_t stack) noexcept nogil:
    history_record_block(block.device, HISTORY_ALLOC, block.ptr, block.nbytes, block.requested,
                         block.stream, stack, _pool_id(block))


cdef void block_event_free(Block* block, uint32_t stack, bint is_completed) noexcept nogil:
    history_record_free(block.device, block.ptr, block.nbytes, block.stream, stack,
                        _pool_id(block), is_completed)


cdef void block_event_completed(Block* block) noexcept nogil:
    history_record(block.device, HISTORY_FREE_COMPLETED, block.ptr, block.nbytes, block.stream, 0,
                   _pool_id(block))


cdef void _events_of_parts(Block* block, int action) noexcept nogil:
    cdef Block* tile = block.parts
    while tile != NULL:
        history_record(block.device, action, tile.ptr, tile.nbytes, tile.segment.stream, 0,
                       tile.pool.pool_id)
        tile = tile.link_next


cdef void view_event_open(Block* block) noexcept nogil:
    _events_of_parts(block, HISTORY_SEGMENT_UNMAP)
    history_record(block.device, HISTORY_SEGMENT_MAP, block.ptr, block.nbytes, block.stream, 0,
                   _pool_id(block))


cdef void view_event_close(Block* block) noexcept nogil:
    history_record(block.device, HISTORY_SEGMENT_UNMAP, block.ptr, block.nbytes, block.stream, 0,
                   _pool_id(block))
    _events_of_parts(block, HISTORY_SEGMENT_MAP)
