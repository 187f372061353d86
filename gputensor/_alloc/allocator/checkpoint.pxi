"""The blocks in use of a private pool, and blocks at given places in it.

A graph's replays write to addresses that its capture chose. Who keeps results of a replay beside a
later capture into the same pool has their memory count as in use again meanwhile: it notes which
blocks are in use, and takes those that are free by then again, at their places.
"""

# Writes (address, requested bytes, stream) of each block in use, as far as `capacity` words go;
# gives the number of words that there are.
cdef size_t pool_live(int device, uint64_t pool_id, uint64_t* words,
                      size_t capacity) noexcept nogil:
    cdef DeviceAllocator* a = allocator_find(device)
    cdef PrivatePool* private
    cdef Segment* segment
    cdef Block* block
    cdef size_t count = 0
    cdef int kind
    if a == NULL:
        return 0
    device_lock(a)
    private = a.private_pools
    while private != NULL:
        for kind in range(2):
            segment = private.pools[kind].segments if private.pool_id == pool_id else NULL
            while segment != NULL:
                block = segment.first
                while block != NULL:
                    if gt_load_byte(&block.state) == BLOCK_ALLOCATED:
                        if count + 3 <= capacity:
                            words[count] = block.ptr
                            words[count + 1] = block.requested
                            words[count + 2] = block.stream
                        count += 3
                    block = block.next
                segment = segment.next
        private = private.next
    device_unlock(a)
    return count


# The free tile of a pool that holds a range; NULL: there is none, or work on it is not done.
cdef Block* _free_tile(DeviceAllocator* a, PrivatePool* private, uint64_t ptr, size_t nbytes,
                       uint64_t stream) noexcept nogil:
    cdef Segment* segment
    cdef Block* block
    cdef int kind
    for kind in range(2):
        pool_gather(&private.pools[kind], stream)
        segment = private.pools[kind].segments
        while segment != NULL:
            block = segment.first if segment.va <= ptr < segment.va + segment.nbytes else NULL
            while block != NULL and block.ptr + block.nbytes <= ptr:
                block = block.next
            if block != NULL:
                if (gt_load_byte(&block.state) == BLOCK_FREE and block.stream == stream
                        and ptr + nbytes <= block.ptr + block.nbytes):
                    return block
                return NULL
            segment = segment.next
    return NULL


cdef Block* pool_take_at(int device, uint64_t pool_id, uint64_t ptr, size_t nbytes,
                         uint64_t stream) noexcept nogil:
    cdef DeviceAllocator* a = allocator_find(device)
    cdef PrivatePool* private
    cdef Block* block = NULL
    cdef size_t rounded
    if a == NULL:
        return NULL
    device_lock(a)
    caches_drain(a)
    rounded = round_size(a, nbytes)
    private = a.private_pools
    while private != NULL and block == NULL:
        if private.pool_id == pool_id:
            block = _free_tile(a, private, ptr, rounded, stream)
        private = private.next
    if block != NULL:
        block = pool_cut(block.pool, block, ptr, ptr + rounded)
    if block != NULL:
        block = _finish(a, block, nbytes)
    device_unlock(a)
    if block != NULL and history_enabled(device):
        block_event_alloc(block, 0)
    check_after(device, "a block at its place")
    return block
