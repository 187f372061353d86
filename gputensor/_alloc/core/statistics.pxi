"""Exact statistics from sharded counters; the idea is in DESIGN.md, *Counting*.

Each thread cache, and the allocator itself for work under the device lock, is a shard.

Invariants, with the device lock held and the caches stopped:
    current(type) == sum over shards of (came - gone)
    sum over shards of budgets[f] <= peak - current   for the values that flow f feeds, of each
                                                      pool and of both together
`active` is `allocated` plus the blocks that wait for streams, so one budget serves both;
`requested` needs its own, since a block's next request may be larger than its last.
"""

# The statistic of each flow; and the one that also counts blocks waiting for streams, if any.
cdef int[5] TYPE_OF = [STAT_ALLOCATED_BYTES, STAT_ALLOCATION, STAT_REQUESTED_BYTES,
                       STAT_INACTIVE_SPLIT_BYTES, STAT_INACTIVE_SPLIT]
cdef int[5] TYPE_WITH_PENDING = [STAT_ACTIVE_BYTES, STAT_ACTIVE, -1, -1, -1]


cdef inline void _come(Counters* c, int flow, size_t amount) noexcept nogil:
    gt_add(&c.came[flow], amount)
    c.budgets[flow] -= <int64_t>amount


cdef inline void _go(Counters* c, int flow, size_t amount) noexcept nogil:
    gt_add(&c.gone[flow], amount)
    c.budgets[flow] += <int64_t>amount


# A caller receives `nbytes` for a request of `requested` bytes; a caller gives them back. False: a
# budget is exceeded, so a peak may have been passed, and the statistics have to be settled.
cdef inline bint counters_give(Counters* c, size_t nbytes, size_t requested) noexcept nogil:
    _come(c, FLOW_COUNT, 1)
    _come(c, FLOW_BYTES, nbytes)
    _come(c, FLOW_REQUESTED, requested)
    return (c.budgets[FLOW_BYTES] >= 0 and c.budgets[FLOW_COUNT] >= 0
            and c.budgets[FLOW_REQUESTED] >= 0)


cdef inline void counters_take(Counters* c, size_t nbytes, size_t requested) noexcept nogil:
    _go(c, FLOW_COUNT, 1)
    _go(c, FLOW_BYTES, nbytes)
    _go(c, FLOW_REQUESTED, requested)


# A free split block is created or removed.
cdef inline bint counters_split_in(Counters* c, size_t nbytes) noexcept nogil:
    _come(c, FLOW_SPLIT_COUNT, 1)
    _come(c, FLOW_SPLIT_BYTES, nbytes)
    return c.budgets[FLOW_SPLIT_BYTES] >= 0 and c.budgets[FLOW_SPLIT_COUNT] >= 0


cdef inline void counters_split_out(Counters* c, size_t nbytes) noexcept nogil:
    _go(c, FLOW_SPLIT_COUNT, 1)
    _go(c, FLOW_SPLIT_BYTES, nbytes)


cdef void caches_stop(DeviceAllocator* a) noexcept nogil:
    cdef ThreadCache* cache
    for cache in each(a.caches):
        gt_spin_lock(&cache.lock)


cdef void caches_resume(DeviceAllocator* a) noexcept nogil:
    cdef ThreadCache* cache
    for cache in each(a.caches):
        gt_spin_unlock(&cache.lock)


# One type of a pool kind, and the sum of both kinds once the large one, the second, is set.
cdef void _set_type(Stat* row, int kind, uint64_t came, uint64_t gone) noexcept nogil:
    cdef int i
    row[2 - kind].allocated = <int64_t>came
    row[2 - kind].freed = <int64_t>gone
    row[0].allocated = row[1].allocated + row[2].allocated
    row[0].freed = row[1].freed + row[2].freed
    for i in range(3 if kind == POOL_LARGE else 0):
        row[i].current = row[i].allocated - row[i].freed
        row[i].peak = max(row[i].peak, row[i].current)


# How far the values that a budget guards are below their peaks, in pool column `i`.
cdef int64_t _room(DeviceAllocator* a, int flow, int i) noexcept nogil:
    cdef Stat* stat = &a.stats[TYPE_OF[flow]][i]
    cdef Stat* other = stat if TYPE_WITH_PENDING[flow] < 0 else &a.stats[TYPE_WITH_PENDING[flow]][i]
    return min(stat.peak - stat.current, other.peak - other.current)


# How much more room `active` has below its peak than `allocated`, in pool column `i`.
cdef int64_t _lead(DeviceAllocator* a, int flow, int i) noexcept nogil:
    cdef Stat* stat = &a.stats[TYPE_OF[flow]][i]
    cdef Stat* other = &a.stats[TYPE_WITH_PENDING[flow]][i]
    return other.peak - other.current - stat.peak + stat.current


# Adds `amount` to one budget of every shard, which counts as 0 when it is negative; returns the sum
# before the addition.
cdef int64_t _hand_out(DeviceAllocator* a, int kind, int flow, int64_t amount) noexcept nogil:
    cdef ThreadCache* cache
    cdef Counters* c = &a.counters[kind]
    cdef int64_t before, total = max(c.budgets[flow], 0)
    c.budgets[flow] = total + amount
    for cache in each(a.caches):
        before = max(cache.counters[kind].budgets[flow], 0)
        cache.counters[kind].budgets[flow] = before + amount
        total += before
    return total


# Takes from the richest shard, at least half of what it has, until all together have at most
# `limit`; returns their sum. No budget may be negative.
cdef int64_t _shed(DeviceAllocator* a, int kind, int flow, int64_t held,
                   int64_t limit) noexcept nogil:
    cdef ThreadCache* cache
    cdef int64_t taken
    while held > limit and held > 0:
        richest = &a.counters[kind]
        for cache in each(a.caches):
            if cache.counters[kind].budgets[flow] > richest.budgets[flow]:
                richest = &cache.counters[kind]
        taken = min(max(held - limit, richest.budgets[flow] // 2), richest.budgets[flow])
        richest.budgets[flow] -= taken
        held -= taken
    return held


# Each shard keeps what it has, as far as the sum fits under the peaks, and gets an equal part of
# half of the rest. Keeping matters: a thread that frees and allocates in turn lives on its own
# refunds. So a shard without room takes from one other; taking from all would make all of them
# settle again.
cdef void _budget(DeviceAllocator* a, int flow) noexcept nogil:
    cdef int64_t shards = gt_load(&a.cache_count) + 1
    cdef int64_t both = _room(a, flow, 0)
    cdef int64_t small = _room(a, flow, 2)
    cdef int64_t large = _room(a, flow, 1)
    cdef int64_t small_held = _shed(a, 0, flow, _hand_out(a, 0, flow, 0), small)
    cdef int64_t large_held = _shed(a, 1, flow, _hand_out(a, 1, flow, 0), large)
    if small_held + large_held > both:
        large_held = _shed(a, 1, flow, large_held, both - min(small_held, both))
        small_held = _shed(a, 0, flow, small_held, both - large_held)
    both = (both - small_held - large_held) // 2
    _hand_out(a, 0, flow, min(small - small_held, both) // shards)
    _hand_out(a, 1, flow, min(large - large_held, both) // shards)


cdef void _settle_flow(DeviceAllocator* a, int flow) noexcept nogil:
    cdef ThreadCache* cache
    cdef uint64_t came, gone
    cdef int kind
    cdef bint is_paired = TYPE_WITH_PENDING[flow] >= 0
    for kind in range(2):
        came = a.counters[kind].came[flow]
        gone = a.counters[kind].gone[flow]
        for cache in each(a.caches):
            came += cache.counters[kind].came[flow]
            gone += cache.counters[kind].gone[flow]
        _set_type(a.stats[TYPE_OF[flow]], kind, came, gone)
        if is_paired:
            _set_type(a.stats[TYPE_WITH_PENDING[flow]], kind, came,
                      gone - a.pending_sums[flow][kind])
    _budget(a, flow)
    for kind in range(2 if is_paired else 0):
        a.leads[flow][kind] = max(min(_lead(a, flow, 2 - kind), _lead(a, flow, 0) // 2), 0)


cdef bint _is_exceeded(DeviceAllocator* a, int flow) noexcept nogil:
    cdef ThreadCache* cache
    cdef int64_t least = min(a.counters[0].budgets[flow], a.counters[1].budgets[flow])
    for cache in each(a.caches):
        least = min(least, min(cache.counters[0].budgets[flow], cache.counters[1].budgets[flow]))
    return least < 0


cdef void stats_settle(DeviceAllocator* a, bint exceeded_only=False) noexcept nogil:
    cdef int flow
    for flow in range(FLOWS):
        if not exceeded_only or _is_exceeded(a, flow):
            _settle_flow(a, flow)


cdef void stats_update(DeviceAllocator* a, bint exceeded_only=False) noexcept nogil:
    caches_stop(a)
    stats_settle(a, exceeded_only)
    caches_resume(a)


cdef void account_give(DeviceAllocator* a, int kind, size_t nbytes,
                       size_t requested) noexcept nogil:
    if not counters_give(&a.counters[kind], nbytes, requested):
        stats_update(a, True)


cdef void account_take(DeviceAllocator* a, int kind, size_t nbytes,
                       size_t requested) noexcept nogil:
    counters_take(&a.counters[kind], nbytes, requested)


cdef void account_pending(DeviceAllocator* a, Block* block, int sign) noexcept nogil:
    cdef int64_t amount, apart
    cdef int flow
    for flow in range(2):
        amount = sign * (<int64_t>block.nbytes if flow == FLOW_BYTES else 1)
        a.pending_sums[flow][block.kind] += amount
        # A block that waits leaves room below the peak of `allocated`, and one that is done below
        # that of `active`. Budgets hold the room that both have; the lead says which has more.
        apart = min(a.leads[flow][block.kind], 0)
        a.leads[flow][block.kind] -= amount
        a.counters[block.kind].budgets[flow] += min(a.leads[flow][block.kind], 0) - apart


cdef void stat_change(Stat* stat, int64_t amount) noexcept nogil:
    # Written under the lock; current and peak are also read without it.
    gt_store(&stat.current, stat.current + amount)
    if amount > 0:
        stat.allocated += amount
        gt_store(&stat.peak, max(stat.peak, stat.current))
    else:
        stat.freed -= amount


# A row of three stats: all, large, small.
cdef inline void _change_both(Stat* row, int kind, int64_t amount) noexcept nogil:
    stat_change(&row[0], amount)
    stat_change(&row[2 - kind], amount)


cdef void account_segment(DeviceAllocator* a, int kind, int count) noexcept nogil:
    _change_both(a.stats[STAT_SEGMENT], kind, count)


cdef void account_reserved(DeviceAllocator* a, int kind, int64_t nbytes) noexcept nogil:
    _change_both(a.stats[STAT_RESERVED_BYTES], kind, nbytes)


cdef void account_pool_reserved(DeviceAllocator* a, BlockPool* pool, int64_t nbytes) noexcept nogil:
    account_reserved(a, pool.kind, nbytes)
    if pool.owner != NULL:
        _change_both(pool.owner.account.reserved, pool.kind, nbytes)


cdef void account_reserved_moved(DeviceAllocator* a, BlockPool* source, BlockPool* target,
                                 int64_t nbytes) noexcept nogil:
    cdef int from_kind = POOL_LARGE if source == NULL else source.kind
    cdef int to_kind = POOL_LARGE if target == NULL else target.kind
    if from_kind != to_kind:
        stat_change(&a.stats[STAT_RESERVED_BYTES][2 - from_kind], -nbytes)
        stat_change(&a.stats[STAT_RESERVED_BYTES][2 - to_kind], nbytes)
    if source != NULL and source.owner != NULL:
        _change_both(source.owner.account.reserved, from_kind, -nbytes)
    if target != NULL and target.owner != NULL:
        _change_both(target.owner.account.reserved, to_kind, nbytes)


cdef inline uint64_t _held_in(const Counters* counters) noexcept nogil:
    cdef uint64_t gone = gt_load(&counters[0].gone[FLOW_BYTES])
    gone += gt_load(&counters[1].gone[FLOW_BYTES])
    return (gt_load(&counters[0].came[FLOW_BYTES]) + gt_load(&counters[1].came[FLOW_BYTES]) - gone)


cdef int64_t stats_allocated(DeviceAllocator* a) noexcept nogil:
    cdef ThreadCache* cache
    cdef uint64_t total = _held_in(a.counters)
    for cache in each(gt_load(&a.caches)):
        total += _held_in(cache.counters)
    return <int64_t>total


cdef uint64_t stats_used(DeviceAllocator* a) noexcept nogil:
    cdef ThreadCache* cache
    cdef uint64_t total = gt_load(&a.counters[POOL_LARGE].came[FLOW_BYTES])
    for cache in each(gt_load(&a.caches)):
        total += gt_load(&cache.counters[POOL_LARGE].came[FLOW_BYTES])
    return total - gt_load(&a.used_before)
