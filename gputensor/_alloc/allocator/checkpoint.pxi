"""The blocks in use of a private pool, and blocks at given places in it.

A graph's replays write to addresses that its capture chose. A caller that keeps results of a replay
during a later capture into the same pool must have their memory count as in use meanwhile: it notes
which blocks are in use, and later takes those that have become free, at the same addresses.
"""

cdef void pool_live(int device, uint64_t pool_id, vector[LiveBlock]* found) noexcept nogil:
    cdef DeviceAllocator* a = allocator_find(device)
    cdef Held held
    cdef PrivatePool* private
    cdef Segment* segment
    cdef Block* block
    cdef int kind
    if a == NULL:
        return
    held.take(&a.lock)
    for private in each(a.private_pools):
        for kind in range(2 if private.pool_id == pool_id else 0):
            for segment in each(private.pools[kind].segments):
                for block in each(segment.first):
                    if gt_load(&block.state) == BLOCK_ALLOCATED:
                        found.push_back(LiveBlock(block.ptr, block.requested, block.stream))


# The free tile of a pool that contains a range; NULL: there is none, or work on it is not done.
cdef Block* _free_tile(DeviceAllocator* a, PrivatePool* private, uint64_t ptr, size_t nbytes,
                       uint64_t stream) noexcept nogil:
    cdef Segment* segment
    cdef Block* block
    cdef int kind
    for kind in range(2):
        pool_gather(&private.pools[kind], stream)
        for segment in each(private.pools[kind].segments):
            for block in each(segment.first):
                if (block.ptr <= ptr and ptr + nbytes <= block.ptr + block.nbytes
                        and gt_load(&block.state) == BLOCK_FREE and block.stream == stream):
                    return block
    return NULL


cdef Block* pool_take_at(int device, uint64_t pool_id, uint64_t ptr, size_t nbytes,
                         uint64_t stream) noexcept nogil:
    cdef PrivatePool* private
    cdef DeviceAllocator* a = allocator_find(device)
    cdef Block* block = NULL
    cdef Held held
    cdef size_t rounded
    if a == NULL:
        return NULL
    device_hold(a, &held, "a block at its place")
    caches_drain(a)
    rounded = round_size(a, nbytes)
    for private in each(a.private_pools):
        if private.pool_id == pool_id and block == NULL:
            block = _free_tile(a, private, ptr, rounded, stream)
    if block != NULL:
        block = pool_cut(block.pool, block, ptr, ptr + rounded)
    block = _hand_out(a, block, nbytes)
    if block != NULL and history_enabled(device):
        block_event_alloc(block, 0)
    return block
