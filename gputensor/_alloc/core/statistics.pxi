"""Exact statistics from sharded counters; the idea is in statistics.pxd.

Invariants, with the device lock held and the caches stopped:
    current(type) == sum over shards of (in - out)
    sum over shards of budgets[b] <= peak - current   for the values that budget b guards, of each
                                                      pool and of both together. `active` is
                                                      `allocated` plus what waits for streams, so
one budget serves both; `requested` needs its own, since a block's next request may be larger than
its last.
"""

# A caller receives `nbytes` for a request of `requested` bytes; a caller gives them back.
cdef inline void counters_give(Counters* c, size_t nbytes, size_t requested) noexcept nogil:
    gt_add(&c.count_in, 1)
    gt_add(&c.bytes_in, nbytes)
    gt_add(&c.requested_in, requested)
    c.budgets[UP_BYTES] -= <int64_t>nbytes
    c.budgets[UP_COUNT] -= 1
    c.budgets[UP_REQUESTED] -= <int64_t>requested


cdef inline void counters_take(Counters* c, size_t nbytes, size_t requested) noexcept nogil:
    gt_add(&c.count_out, 1)
    gt_add(&c.bytes_out, nbytes)
    gt_add(&c.requested_out, requested)
    c.budgets[UP_BYTES] += <int64_t>nbytes
    c.budgets[UP_COUNT] += 1
    c.budgets[UP_REQUESTED] += <int64_t>requested


# A free split block is created or removed.
cdef inline void counters_split_in(Counters* c, size_t nbytes) noexcept nogil:
    c.split_count_in += 1
    c.split_bytes_in += nbytes
    c.budgets[DOWN_BYTES] -= <int64_t>nbytes
    c.budgets[DOWN_COUNT] -= 1


cdef inline void counters_split_out(Counters* c, size_t nbytes) noexcept nogil:
    c.split_count_out += 1
    c.split_bytes_out += nbytes
    c.budgets[DOWN_BYTES] += <int64_t>nbytes
    c.budgets[DOWN_COUNT] += 1


cdef void caches_stop(DeviceAllocator* a) noexcept nogil:
    cdef ThreadCache* cache = a.caches
    while cache != NULL:
        gt_spin_lock(&cache.lock)
        cache = cache.next


cdef void caches_resume(DeviceAllocator* a) noexcept nogil:
    cdef ThreadCache* cache = a.caches
    while cache != NULL:
        gt_spin_unlock(&cache.lock)
        cache = cache.next


cdef inline void _sum_into(Counters* total, const Counters* c) noexcept nogil:
    total.count_in += c.count_in
    total.count_out += c.count_out
    total.bytes_in += c.bytes_in
    total.bytes_out += c.bytes_out
    total.requested_in += c.requested_in
    total.requested_out += c.requested_out
    total.split_count_in += c.split_count_in
    total.split_count_out += c.split_count_out
    total.split_bytes_in += c.split_bytes_in
    total.split_bytes_out += c.split_bytes_out


# The stats of one type, from what came in and went out in each pool.
cdef void _set_type(Stat* row, uint64_t small_in, uint64_t small_out, uint64_t large_in,
                    uint64_t large_out) noexcept nogil:
    cdef int i
    row[2].allocated = <int64_t>small_in
    row[2].freed = <int64_t>small_out
    row[1].allocated = <int64_t>large_in
    row[1].freed = <int64_t>large_out
    row[0].allocated = row[1].allocated + row[2].allocated
    row[0].freed = row[1].freed + row[2].freed
    for i in range(3):
        row[i].current = row[i].allocated - row[i].freed
        if row[i].current > row[i].peak:
            row[i].peak = row[i].current


cdef inline int64_t _least(int64_t a, int64_t b) noexcept nogil:
    return a if a < b else b


# How far the values that a budget guards are below their peaks, in pool column `i`.
cdef int64_t _room(DeviceAllocator* a, int budget, int i) noexcept nogil:
    cdef int first = STAT_INACTIVE_SPLIT
    cdef int second = STAT_INACTIVE_SPLIT
    if budget == UP_BYTES:
        first = STAT_ALLOCATED_BYTES
        second = STAT_ACTIVE_BYTES
    elif budget == UP_COUNT:
        first = STAT_ALLOCATION
        second = STAT_ACTIVE
    elif budget == UP_REQUESTED:
        first = second = STAT_REQUESTED_BYTES
    elif budget == DOWN_BYTES:
        first = second = STAT_INACTIVE_SPLIT_BYTES
    return _least(a.stats[first][i].peak - a.stats[first][i].current,
                  a.stats[second][i].peak - a.stats[second][i].current)


# Adds `amount` to one budget of every shard, which counts as 0 when it is below; gives the sum
# before the addition.
cdef int64_t _hand_out(DeviceAllocator* a, int kind, int budget, int64_t amount) noexcept nogil:
    cdef Counters* c = &a.counters[kind]
    cdef ThreadCache* cache = a.caches
    cdef int64_t total = 0
    while True:
        if c.budgets[budget] < 0:
            c.budgets[budget] = 0
        total += c.budgets[budget]
        c.budgets[budget] += amount
        if cache == NULL:
            return total
        c = &cache.counters[kind]
        cache = cache.next


# Takes from the richest shard, at least half of what it has, until all have `limit` together; gives
# their sum. None is below 0.
cdef int64_t _shed(DeviceAllocator* a, int kind, int budget, int64_t held,
                   int64_t limit) noexcept nogil:
    cdef Counters* c
    cdef Counters* richest
    cdef ThreadCache* cache
    cdef int64_t taken
    while held > limit and held > 0:
        richest = c = &a.counters[kind]
        cache = a.caches
        while cache != NULL:
            c = &cache.counters[kind]
            if c.budgets[budget] > richest.budgets[budget]:
                richest = c
            cache = cache.next
        taken = held - limit
        if taken < richest.budgets[budget] // 2:
            taken = richest.budgets[budget] // 2
        taken = _least(taken, richest.budgets[budget])
        richest.budgets[budget] -= taken
        held -= taken
    return held


# Each shard keeps what it has, as far as the sum fits under the peaks, and gets an equal part of
# half of the rest. Keeping matters: a thread that frees and allocates in turn lives on its own
# refunds. So one that has none takes another's; taking from all would make all of them count again.
cdef void _budget(DeviceAllocator* a, int budget) noexcept nogil:
    cdef int64_t shards = gt_load_int(&a.cache_count) + 1
    cdef int64_t both = _room(a, budget, 0)
    cdef int64_t small = _room(a, budget, 2)
    cdef int64_t large = _room(a, budget, 1)
    cdef int64_t small_held = _hand_out(a, 0, budget, 0)
    cdef int64_t large_held = _hand_out(a, 1, budget, 0)
    small_held = _shed(a, 0, budget, small_held, small)
    large_held = _shed(a, 1, budget, large_held, large)
    if small_held + large_held > both:
        large_held = _shed(a, 1, budget, large_held, both - _least(small_held, both))
        small_held = _shed(a, 0, budget, small_held, both - large_held)
    both = (both - small_held - large_held) // 2
    _hand_out(a, 0, budget, _least(small - small_held, both) // shards)
    _hand_out(a, 1, budget, _least(large - large_held, both) // shards)


cdef void stats_settle(DeviceAllocator* a) noexcept nogil:
    cdef Counters total[2]
    cdef ThreadCache* cache
    cdef int kind, i
    for kind in range(2):
        total[kind] = a.counters[kind]
        cache = a.caches
        while cache != NULL:
            _sum_into(&total[kind], &cache.counters[kind])
            cache = cache.next
    _set_type(a.stats[STAT_ALLOCATION], total[0].count_in, total[0].count_out,
              total[1].count_in, total[1].count_out)
    _set_type(a.stats[STAT_ALLOCATED_BYTES], total[0].bytes_in, total[0].bytes_out,
              total[1].bytes_in, total[1].bytes_out)
    _set_type(a.stats[STAT_REQUESTED_BYTES], total[0].requested_in, total[0].requested_out,
              total[1].requested_in, total[1].requested_out)
    _set_type(a.stats[STAT_ACTIVE], total[0].count_in, total[0].count_out - a.pending_count[0],
              total[1].count_in, total[1].count_out - a.pending_count[1])
    _set_type(a.stats[STAT_ACTIVE_BYTES], total[0].bytes_in,
              total[0].bytes_out - a.pending_bytes[0], total[1].bytes_in,
              total[1].bytes_out - a.pending_bytes[1])
    _set_type(a.stats[STAT_INACTIVE_SPLIT], total[0].split_count_in, total[0].split_count_out,
              total[1].split_count_in, total[1].split_count_out)
    _set_type(a.stats[STAT_INACTIVE_SPLIT_BYTES], total[0].split_bytes_in,
              total[0].split_bytes_out, total[1].split_bytes_in, total[1].split_bytes_out)
    for i in range(2):
        a.refund_bytes[i] = 0
        a.refund_count[i] = 0
    for i in range(BUDGETS):
        _budget(a, i)


cdef void _settle_stopped(DeviceAllocator* a) noexcept nogil:
    caches_stop(a)
    stats_settle(a)
    caches_resume(a)


cdef void account_give(DeviceAllocator* a, int kind, size_t nbytes,
                       size_t requested) noexcept nogil:
    cdef Counters* c = &a.counters[kind]
    counters_give(c, nbytes, requested)
    if c.budgets[UP_BYTES] < 0 or c.budgets[UP_COUNT] < 0 or c.budgets[UP_REQUESTED] < 0:
        _settle_stopped(a)


cdef void account_take(DeviceAllocator* a, int kind, size_t nbytes,
                       size_t requested) noexcept nogil:
    counters_take(&a.counters[kind], nbytes, requested)


cdef void account_split_in(DeviceAllocator* a, Block* block) noexcept nogil:
    cdef Counters* c = &a.counters[block.kind]
    counters_split_in(c, block.nbytes)
    if c.budgets[DOWN_BYTES] < 0 or c.budgets[DOWN_COUNT] < 0:
        _settle_stopped(a)


cdef void account_split_out(DeviceAllocator* a, Block* block) noexcept nogil:
    counters_split_out(&a.counters[block.kind], block.nbytes)


cdef void account_pending(DeviceAllocator* a, Block* block, int sign) noexcept nogil:
    cdef int64_t nbytes = <int64_t>block.nbytes
    cdef int64_t count = 1
    a.pending_count[block.kind] += sign
    a.pending_bytes[block.kind] += sign * nbytes
    # A block moves from allocated to pending: its room belongs to no budget while it waits. When it
    # is done, `active` has more room under its peak. So has `allocated`, since the block was freed,
    # unless settle() gave that away meanwhile.
    if sign > 0:
        a.refund_bytes[block.kind] += nbytes
        a.refund_count[block.kind] += 1
    else:
        nbytes = -_least(nbytes, a.refund_bytes[block.kind])
        count = -_least(count, a.refund_count[block.kind])
        a.refund_bytes[block.kind] += nbytes
        a.refund_count[block.kind] += count
    a.counters[block.kind].budgets[UP_BYTES] -= nbytes
    a.counters[block.kind].budgets[UP_COUNT] -= count


cdef void stat_change(Stat* stat, int64_t amount) noexcept nogil:
    # Written under the lock; current and peak are also read without it.
    gt_store(<uint64_t*>&stat.current, <uint64_t>(stat.current + amount))
    if amount > 0:
        stat.allocated += amount
        if stat.current > stat.peak:
            gt_store(<uint64_t*>&stat.peak, <uint64_t>stat.current)
    else:
        stat.freed -= amount


cdef void account_segment(DeviceAllocator* a, int kind, int count) noexcept nogil:
    stat_change(&a.stats[STAT_SEGMENT][0], count)
    stat_change(&a.stats[STAT_SEGMENT][2 - kind], count)


cdef void account_reserved(DeviceAllocator* a, int kind, int64_t nbytes) noexcept nogil:
    stat_change(&a.stats[STAT_RESERVED_BYTES][0], nbytes)
    stat_change(&a.stats[STAT_RESERVED_BYTES][2 - kind], nbytes)


cdef void account_pool_reserved(DeviceAllocator* a, BlockPool* pool,
                                int64_t nbytes) noexcept nogil:
    account_reserved(a, pool.kind, nbytes)
    if pool.owner != NULL:
        stat_change(&pool.owner.account.reserved[0], nbytes)
        stat_change(&pool.owner.account.reserved[2 - pool.kind], nbytes)


# Bytes that stay reserved and change their pool; NULL is the page pool. They count once in the sum.
cdef void account_reserved_moved(DeviceAllocator* a, BlockPool* source, BlockPool* target,
                                 int64_t nbytes) noexcept nogil:
    cdef int from_kind = POOL_LARGE if source == NULL else source.kind
    cdef int to_kind = POOL_LARGE if target == NULL else target.kind
    if from_kind != to_kind:
        stat_change(&a.stats[STAT_RESERVED_BYTES][2 - from_kind], -nbytes)
        stat_change(&a.stats[STAT_RESERVED_BYTES][2 - to_kind], nbytes)
    if source != NULL and source.owner != NULL:
        stat_change(&source.owner.account.reserved[0], -nbytes)
        stat_change(&source.owner.account.reserved[2 - from_kind], -nbytes)
    if target != NULL and target.owner != NULL:
        stat_change(&target.owner.account.reserved[0], nbytes)
        stat_change(&target.owner.account.reserved[2 - to_kind], nbytes)


cdef int64_t stats_allocated(DeviceAllocator* a) noexcept nogil:
    cdef uint64_t total = 0
    cdef ThreadCache* cache
    cdef int kind
    for kind in range(2):
        total -= gt_load(&a.counters[kind].bytes_out)
        total += gt_load(&a.counters[kind].bytes_in)
    cache = <ThreadCache*>gt_load_pointer(<void**>&a.caches)
    while cache != NULL:
        for kind in range(2):
            total -= gt_load(&cache.counters[kind].bytes_out)
            total += gt_load(&cache.counters[kind].bytes_in)
        cache = cache.next
    return <int64_t>total
