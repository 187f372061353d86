"""History events of blocks: allocated, freed, free to be used again.

A block of a view (view.pxi) has its own addresses, and the memory under it is that of its parts.
Events and snapshots agree about it, as viewers require: while the block is in use its parts are
unmapped at home, and mapped as one segment at the caller's address.
"""

cdef inline gt_record _record(int action, Block* block, uint32_t stack) noexcept nogil:
    cdef uint64_t pool_id = block.pool.pool_id if block.pool != NULL else 0
    return record_of(action, block.ptr, block.nbytes, block.stream, stack, pool_id)


# Pinned memory has a history of its own.
cdef inline int _ring(Block* block) noexcept nogil:
    return PINNED_RING if block.pool != NULL and block.pool.allocator.is_pinned else DEVICE_RING


cdef void block_event_alloc(Block* block, uint32_t stack) noexcept nogil:
    cdef gt_record record = _record(HISTORY_ALLOC, block, stack)
    record.requested = block.requested
    record_add(block.device, _ring(block), &record)


cdef void block_event_free(Block* block, uint32_t stack, bint is_completed) noexcept nogil:
    cdef uint32_t keep = gt_load(&kept_actions)
    cdef gt_record record
    if keep == 0:
        return
    record = _record(HISTORY_FREE_REQUESTED, block, stack)
    record.time_ns = gt_now_ns()    # half of a record's cost: both share it
    if (keep >> HISTORY_FREE_REQUESTED) & 1:
        record_add_timed(block.device, _ring(block), &record)
    if is_completed and (keep >> HISTORY_FREE_COMPLETED) & 1:
        record.action = HISTORY_FREE_COMPLETED
        record_add_timed(block.device, _ring(block), &record)


cdef void block_event_completed(Block* block) noexcept nogil:
    cdef gt_record record = _record(HISTORY_FREE_COMPLETED, block, 0)
    record_add(block.device, _ring(block), &record)


cdef void _events_of_parts(Block* block, int action) noexcept nogil:
    cdef Block* tile
    for tile in linked(block.parts):
        history_segment(action, tile.segment, tile.ptr, tile.nbytes, 0)


cdef void view_event_open(Block* block) noexcept nogil:
    cdef gt_record record = _record(HISTORY_SEGMENT_MAP, block, 0)
    _events_of_parts(block, HISTORY_SEGMENT_UNMAP)
    record_add(block.device, DEVICE_RING, &record)


cdef void view_event_close(Block* block) noexcept nogil:
    cdef gt_record record = _record(HISTORY_SEGMENT_UNMAP, block, 0)
    record_add(block.device, DEVICE_RING, &record)
    _events_of_parts(block, HISTORY_SEGMENT_MAP)
