"""Private pools without a holder.

Programs create pools in a loop: a graph for each shape, a MemPool for each phase. A retired pool
must not strand memory: whole free pages go to the page pool, plain segments that are one free block
join the default pool, unused address space goes back to the driver, and an empty record is freed.
Pages move once the device is known to be done with them. The end of a pool makes no driver call, as
it comes from destructors: the next miss, the wait before a capture, and empty_cache do.

A thread that drops the lock while it works on a pool, or on the list of pools, pins the record.
"""

cdef bint pool_is_retired(PrivatePool* pool) noexcept nogil:
    return pool.use_count == 0 and pool.scopes == 0


cdef void retired_pool_drop(DeviceAllocator* a, PrivatePool* pool) noexcept nogil:
    if (not pool_is_retired(pool) or pool.pins > 0 or pool.pools[0].segments != NULL
            or pool.pools[1].segments != NULL):
        return
    row_remove(&a.private_pools, pool)
    a.retired_pools -= 1
    _pass_account(a, pool)
    pool_clear(&pool.pools[0])
    pool_clear(&pool.pools[1])
    free(pool)


# A record passes its counts for the other records of its pool to one of them.
cdef void _pass_account(DeviceAllocator* a, PrivatePool* pool) noexcept nogil:
    cdef PrivatePool* other
    cdef PrivatePool* heir = NULL
    for other in each(a.private_pools):
        if other.account == pool:
            if heir == NULL:
                heir = other
                heir.holders = pool.holders
                heir.reserved = pool.reserved
            other.account = heir


# A plain segment that is one free block, and done, changes its pool. No driver call. One that a
# user's allocator made goes back there.
cdef void _hand_over(DeviceAllocator* a, PrivatePool* pool) noexcept nogil:
    cdef int kind
    if pool.source != NULL:
        if not a.capturing:
            release_from(a, pool.pools, SIZE_MAX)
        return
    for kind in range(2):
        segment = pool.pools[kind].segments
        while segment != NULL:
            following = segment.next
            if segment_is_done(segment):
                pool_insert(&a.pools[kind], segment_move(segment, &a.pools[kind]))
            segment = following


cdef void retired_pools_settle(DeviceAllocator* a) noexcept nogil:
    cdef size_t pooled = a.page_pool_nbytes
    if a.retired_pools == 0:
        return
    if pages_collect(a, SIZE_MAX, True) > 0 and not a.config.page_reuse:
        page_pool_release(a, pooled)
    pool = a.private_pools
    while pool != NULL:
        pool.pins += 1
        if pool_is_retired(pool):
            _hand_over(a, pool)
            ranges_release(a, pool.pools)
        pool.pins -= 1
        following = pool.next           # only now: the calls above may drop the lock
        retired_pool_drop(a, pool)
        pool = following
