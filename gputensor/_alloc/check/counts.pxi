"""Checks the counts: caches, pending frees, current values, peaks and budgets.

The check settles nothing: it adds up the shards itself, so that it finds a budget that is too large
before a peak is missed. The device lock is held and the caches are stopped.
"""

# By StatType.
cdef list encoded_names = [name.replace("_", " ").encode() for name in TYPES]
cdef const char* type_names[9]
cdef bytes encoded

for place, encoded in enumerate(encoded_names):
    type_names[place] = encoded


cdef void _check_caches(DeviceAllocator* a, Walk* walk) noexcept nogil:
    cdef ThreadCache* cache
    cdef Block* block
    cdef int64_t count = 0, nbytes = 0
    cdef int64_t here, here_count
    cdef int i, listed
    for cache in each(a.caches):
        here = here_count = 0
        for i in range(CACHE_SLOTS):
            listed = 0
            for block in linked(cache.slots[i].head):
                if (block.state != BLOCK_CACHED or block.nbytes != cache.slots[i].nbytes
                        or block.stream != cache.slots[i].stream or block.home != cache
                        or block.pool.owner != NULL):
                    gt_fault(walk.faults, "block %#lx+%zu (state %d) is in a cache's slot that is "
                             "not its own", block.ptr, block.nbytes, block.state)
                here += block.nbytes
                listed += 1
            here_count += listed
            if listed > 0 and listed != cache.slots[i].count:
                gt_fault(walk.faults, "a slot of a cache holds %d blocks and says %d", listed,
                         cache.slots[i].count)
        if (here_count != cache.cached_count
                or here != <int64_t>(cache.cached_nbytes[0] + cache.cached_nbytes[1])):
            gt_fault(walk.faults, "a cache holds %ld blocks of %ld bytes and says %d of %zu",
                     here_count, here, cache.cached_count,
                     cache.cached_nbytes[0] + cache.cached_nbytes[1])
        count += here_count
        nbytes += here
    figures_check(walk, "cached tiles and those in caches", walk.cached_count, count)
    figures_check(walk, "bytes of cached tiles and in caches", walk.cached_nbytes, nbytes)


# A block waits once for each entry of a queue. A thread that records or queries events has some
# of them in flight.
cdef void _check_pending(DeviceAllocator* a, Walk* walk) noexcept nogil:
    cdef PendingQueue* queue
    cdef StreamUse* entry
    cdef StreamUse* last
    cdef Block* block
    cdef int64_t entries = 0, deferred = 0
    for queue in each(a.pending):
        last = NULL
        for entry in each(queue.head):
            if entry.block.state != BLOCK_PENDING:
                gt_fault(walk.faults, "block %#lx (state %d) waits for a stream and is not "
                         "pending", entry.block.ptr, entry.block.state)
            entries += 1
            last = entry
        if last != NULL and queue.tail != last:
            gt_fault(walk.faults, "the queue of stream %#lx does not end with its last wait",
                     queue.stream)
    for block in linked(a.deferred):
        if block.state != BLOCK_PENDING:
            gt_fault(walk.faults, "block %#lx (state %d) waits for a capture's end and is not "
                     "pending", block.ptr, block.state)
        deferred += 1
    if a.pending_in_flight == 0 and a.driver_requests == 0:
        figures_check(walk, "waits of pending blocks and those in queues", walk.waits, entries)
        figures_check(walk, "blocks that wait for a capture's end", walk.unqueued, deferred)


cdef void _check_page_pool(DeviceAllocator* a, Walk* walk) noexcept nogil:
    cdef Page* page
    cdef size_t nbytes = 0
    for page in each(a.page_pool):
        if page.va != 0 or page.view_count != 0:
            gt_fault(walk.faults, "a page of the page pool is mapped at %#lx and in %d views",
                     page.va, page.view_count)
        nbytes += page.nbytes
    # A thread that creates, maps or returns pages has some of them in flight.
    if nbytes > a.page_pool_nbytes or (a.in_flight == 0 and nbytes != a.page_pool_nbytes):
        gt_fault(walk.faults, "the page pool holds %zu bytes and says %zu", nbytes,
                 a.page_pool_nbytes)
    if a.moving_us > 500.0 + 1.5 * a.making_us:
        gt_fault(walk.faults, "moving pages has cost %.1f us, and making them %.1f", a.moving_us,
                 a.making_us)
    if a.in_flight == 0 and a.making_nbytes != 0:
        gt_fault(walk.faults, "nobody makes memory, and %zu bytes are claimed for it",
                 a.making_nbytes)


# Checks memory that is cached, waits for streams, bypasses the pools or backs nothing: invariant 3.
cdef void lists_check(DeviceAllocator* a, Walk* walk) noexcept nogil:
    cdef Block* block
    _check_caches(a, walk)
    _check_pending(a, walk)
    _check_page_pool(a, walk)
    for block in each(a.uncached):
        walk.sums[block.kind][STAT_RESERVED_BYTES] += block.nbytes
        walk.sums[block.kind][STAT_SEGMENT] += 1
        block_count(walk, block)


# The statistic that a flow feeds, in the order of Flow.
cdef int[5] FED = [STAT_ALLOCATED_BYTES, STAT_ALLOCATION, STAT_REQUESTED_BYTES,
                   STAT_INACTIVE_SPLIT_BYTES, STAT_INACTIVE_SPLIT]


cdef void _add_shard(const Counters* c, int64_t* current) noexcept nogil:
    cdef int flow
    for flow in range(FLOWS):
        current[FED[flow]] += <int64_t>(c.came[flow] - c.gone[flow])


# The current values of a kind, from the shards and the counters under the lock.
cdef void _sum_up(DeviceAllocator* a, int kind, int64_t* current) noexcept nogil:
    cdef ThreadCache* cache
    memset(current, 0, sizeof(int64_t) * STAT_TYPES)
    _add_shard(&a.counters[kind], current)
    for cache in each(a.caches):
        _add_shard(&cache.counters[kind], current)
    current[STAT_ACTIVE] = current[STAT_ALLOCATION] + a.pending_sums[FLOW_COUNT][kind]
    current[STAT_ACTIVE_BYTES] = current[STAT_ALLOCATED_BYTES] + a.pending_sums[FLOW_BYTES][kind]
    current[STAT_SEGMENT] = a.stats[STAT_SEGMENT][2 - kind].current
    current[STAT_RESERVED_BYTES] = a.stats[STAT_RESERVED_BYTES][2 - kind].current


cdef int64_t _budgets_of(DeviceAllocator* a, Walk* walk, int kind, int budget) noexcept nogil:
    cdef int64_t total = a.counters[kind].budgets[budget]
    cdef ThreadCache* cache
    for cache in each(a.caches):
        total += cache.counters[kind].budgets[budget]
        # Its thread left it with a hit or a free, and is about to move the peaks.
        walk.is_settling |= cache.counters[kind].budgets[budget] < 0
    return total


# The room of a column that only one of `allocated` (sign -1) and `active` (1) has.
cdef int64_t _apart(const int64_t* leads, int column, int sign) noexcept nogil:
    cdef int64_t small = 0 if column == 1 else max(sign * leads[0], 0)
    return small + (0 if column == 2 else max(sign * leads[1], 0))


# How far the values that a budget guards are below their peaks; `current` is of that column.
cdef int64_t _room(DeviceAllocator* a, int budget, int column,
                   const int64_t* current) noexcept nogil:
    cdef int first = FED[budget]
    cdef int second = STAT_ACTIVE if budget == FLOW_COUNT else STAT_ACTIVE_BYTES
    cdef int64_t room = a.stats[first][column].peak - current[first]
    if budget != FLOW_BYTES and budget != FLOW_COUNT:
        return room
    return min(room - _apart(a.leads[budget], column, -1),
               a.stats[second][column].peak - current[second] - _apart(a.leads[budget], column, 1))


# Columns of the statistics: all, large, small.
cdef void _check_column(DeviceAllocator* a, Walk* walk, int column, const int64_t* current,
                        const int64_t* budgets) noexcept nogil:
    cdef int64_t room
    cdef int i
    for i in range(STAT_TYPES):
        if current[i] < 0 or (current[i] > a.stats[i][column].peak and not walk.is_settling):
            gt_fault(walk.faults, "%s, column %d: now %ld, at most %ld", type_names[i], column,
                     current[i], a.stats[i][column].peak)
    for i in range(FLOWS):
        room = _room(a, i, column, current)
        if budgets[i] > room:
            gt_fault(walk.faults, "%s, column %d: the budgets are %ld and the peak is %ld away",
                     type_names[FED[i]], column, budgets[i], room)


# The sums of the walk are the statistics, and no peak can be passed unseen: invariants 5 and 6.
cdef void statistics_check(DeviceAllocator* a, Walk* walk) noexcept nogil:
    cdef int64_t[3][9] current      # by column: all, large, small
    cdef int64_t[3][5] budgets
    cdef int kind, i
    walk.sums[POOL_LARGE][STAT_RESERVED_BYTES] += <int64_t>a.page_pool_nbytes
    for kind in range(2):
        _sum_up(a, kind, &current[2 - kind][0])
        for i in range(STAT_TYPES):
            figures_check(walk, type_names[i], walk.sums[kind][i], current[2 - kind][i])
        for i in range(FLOWS):
            budgets[2 - kind][i] = _budgets_of(a, walk, kind, i)
    for i in range(STAT_TYPES):
        current[0][i] = current[1][i] + current[2][i]
    figures_check(walk, "reserved bytes of both kinds", current[0][STAT_RESERVED_BYTES],
                  a.stats[STAT_RESERVED_BYTES][0].current)
    figures_check(walk, "segments of both kinds", current[0][STAT_SEGMENT],
                  a.stats[STAT_SEGMENT][0].current)
    figures_check(walk, "oversize blocks", walk.oversize_count, a.oversize_allocations.current)
    figures_check(walk, "oversize segments", walk.oversize_segments, a.oversize_segments.current)
    for i in range(FLOWS):
        budgets[0][i] = budgets[1][i] + budgets[2][i]
    for i in range(3):
        _check_column(a, walk, i, &current[i][0], &budgets[i][0])
