"""Blocks that come back: into their pool, or, for a block in a view, its home tiles into theirs."""

# Whether the device can no longer touch the view's addresses.
cdef bint view_is_done(DeviceAllocator* a, View* view) noexcept nogil:
    cdef StreamState* state
    for state in each(a.streams):
        if state.bit & view.streams and not progress_is_done(state, min(view.epoch, state.newest)):
            return False
    return True


cdef void view_show(Block* block, int state) noexcept nogil:
    cdef Block* tile
    for tile in linked(block.parts):
        tile.state = state


# The home tiles of a view's block return to their pools; the mappings are kept.
cdef void _view_close(DeviceAllocator* a, Block* block) noexcept nogil:
    cdef Block* tile
    cdef View* view = block.view
    if view_is_done(a, view):
        view.streams = 0
    view.streams |= pool_bins(block.pool, block.stream).state.bit
    view.epoch = max(view.epoch, block.epoch)
    if history_enabled(a.device):
        view_event_close(block)
    for tile in linked(block.parts):
        tile.epoch = max(tile.epoch, block.epoch)
        tile.stream = block.stream
    pool_insert_all(block.parts)
    view.use_count -= 1
    row_remove(&view.blocks, block)
    block_drop(block)


cdef void block_return(DeviceAllocator* a, Block* block) noexcept nogil:
    if block.view != NULL:
        _view_close(a, block)
    else:
        block.state = BLOCK_HELD
        pool_insert(block.pool, block)
