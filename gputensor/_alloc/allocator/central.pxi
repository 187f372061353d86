"""Allocation under the device lock: rounding, choosing the pool, taking, giving back.

`central_take` is the common path: best fit in the pool, one split, counters.
`central_miss` runs the steps of a miss (miss.pxi), which may drop the lock.
"""

cdef size_t round_size(DeviceAllocator* a, size_t nbytes) noexcept nogil:
    cdef uint32_t divisions
    cdef size_t step
    if nbytes <= UNIT:
        return UNIT
    divisions = config_roundup(&a.config, nbytes)
    if divisions > 1 and nbytes > UNIT * divisions:
        # Between two powers of two there are `divisions` steps.
        step = (<size_t>1 << gt_highest_bit(nbytes)) // divisions
        return (nbytes + step - 1) // step * step
    return (nbytes + UNIT - 1) // UNIT * UNIT


cdef inline BlockPool* _choose_pool(DeviceAllocator* a, size_t rounded,
                                    uint64_t stream) noexcept nogil:
    pools = &a.pools[0] if a.scope_count == 0 else scope_pools(a, stream)
    return pool_for(pools, rounded)


# A HELD block, or NULL, goes to its caller.
cdef Block* _hand_out(DeviceAllocator* a, Block* block, size_t nbytes) noexcept nogil:
    if block == NULL:
        return NULL
    if not block_map_insert(block):
        block_return(a, block)
        return NULL
    block.state = BLOCK_ALLOCATED
    block.requested = nbytes
    block.home = NULL
    account_give(a, block.kind, block.nbytes, nbytes)
    if block.nbytes >= a.config.max_split_size:
        block.is_oversize = True        # the option may have changed when the block is freed
        stat_change(&a.oversize_allocations, 1)
    return block


# Serves a request from the pools; NULL on a miss. Makes no driver call but queries.
cdef Block* central_take(DeviceAllocator* a, size_t nbytes, size_t rounded,
                         uint64_t stream) noexcept nogil:
    cdef Held held
    device_lock_counted(a, &held)
    if a.pending != NULL:
        pending_poll(a)
    if rounded >= MIDDLE and gt_load(&a.caches_in_use) > 1:
        caches_drain(a, MIDDLE)
    pool = _choose_pool(a, rounded, stream)
    if a.capture_reuses != NULL:
        capture_reuse_collect(a, pool, stream)
    return _hand_out(a, pool_take(pool, stream, rounded), nbytes)


# After a miss. NULL and a status if every step failed.
cdef Block* central_miss(DeviceAllocator* a, size_t nbytes, size_t rounded, uint64_t stream,
                         status_t* status) noexcept nogil:
    cdef Held held
    held.take(&a.lock)
    pool = _choose_pool(a, rounded, stream)
    if pool.owner != NULL:
        pool.owner.pins += 1
    block = _hand_out(a, miss_serve(a, pool, stream, rounded, status), nbytes)
    if pool.owner != NULL:
        pool.owner.pins -= 1
    if block == NULL and status[0] == STATUS_OK:
        status[0] = STATUS_OUT_OF_MEMORY
    return block


cdef void central_free(DeviceAllocator* a, Block* block) noexcept nogil:
    cdef Held held
    device_lock_counted(a, &held)
    if block.nbytes >= MIDDLE and a.contention == 0 and gt_load(&a.caches_in_use) > 1:
        caches_drain(a, MIDDLE)                 # it may be a neighbour of a cached block
        if block.home != NULL and block.uses == NULL and cache_keep(block.home, block):
            return
    a.frees += 1
    block_map_remove(block)
    account_take(a, block.kind, block.nbytes, block.requested)
    if block.is_oversize:
        block.is_oversize = False
        stat_change(&a.oversize_allocations, -1)
    block.requested = 0
    block.home = NULL
    block.epoch = a.epoch
    if block.uses != NULL:
        pending_add(a, block)
    else:
        block_return(a, block)
