"""Checks the counts: caches, pending frees, current values, peaks and budgets.

The check settles nothing: it adds up the shards itself, so that it finds a budget that is too large
before a peak is missed. The device lock is held and the caches are stopped.
"""

ctypedef unsigned long long counts_ull

cdef extern from *:
    """
    // In the order of StatType and of Flow (model.pxd).
    static const char* const gt_type_names[] = {
        "allocations", "active blocks", "segments", "inactive split blocks", "allocated bytes",
        "active bytes", "requested bytes", "reserved bytes", "inactive split bytes"};
    static const char* const gt_flow_names[] = {
        "allocated bytes", "allocations", "requested bytes", "split bytes", "split blocks"};
    """
    const char** gt_type_names
    const char** gt_flow_names


cdef void _check_caches(DeviceAllocator* a, Walk* walk) noexcept nogil:
    cdef ThreadCache* cache = a.caches
    cdef int64_t count = 0
    cdef int64_t nbytes = 0
    cdef int64_t here, here_count
    cdef int i, listed
    while cache != NULL:
        here = here_count = 0
        for i in range(CACHE_SLOTS):
            block = cache.slots[i].head
            listed = 0
            while block != NULL:
                if (block.state != BLOCK_CACHED or block.nbytes != cache.slots[i].nbytes
                        or block.stream != cache.slots[i].stream or block.home != cache
                        or block.pool.owner != NULL):
                    gt_fault(walk.faults, "block %#llx+%zu (state %d) is in a cache's slot that is "
                             "not its own", <counts_ull>block.ptr, block.nbytes, <int>block.state)
                here += block.nbytes
                listed += 1
                block = block.link_next
            here_count += listed
            if listed > 0 and listed != cache.slots[i].count:
                gt_fault(walk.faults, "a slot of a cache holds %d blocks and says %d", listed,
                         cache.slots[i].count)
        if (here_count != cache.cached_count
                or here != <int64_t>(cache.cached_nbytes[0] + cache.cached_nbytes[1])):
            gt_fault(walk.faults, "a cache holds %lld blocks of %lld bytes and says %d of %zu",
                     <long long>here_count, <long long>here, cache.cached_count,
                     cache.cached_nbytes[0] + cache.cached_nbytes[1])
        count += here_count
        nbytes += here
        cache = cache.next
    figures_check(walk, "cached tiles and those in caches", walk.cached_count, count)
    figures_check(walk, "bytes of cached tiles and in caches", walk.cached_nbytes, nbytes)


# A block waits once for each entry of a queue. A thread that records or queries events has some
# of them in flight.
cdef void _check_pending(DeviceAllocator* a, Walk* walk) noexcept nogil:
    cdef PendingQueue* queue = a.pending
    cdef PendingEvent* last
    cdef Block* block = a.deferred
    cdef int64_t entries = 0
    cdef int64_t deferred = 0
    while queue != NULL:
        entry = queue.head
        last = NULL
        while entry != NULL:
            if entry.block.state != BLOCK_PENDING:
                gt_fault(walk.faults, "block %#llx (state %d) waits for a stream and is not "
                         "pending", <counts_ull>entry.block.ptr, <int>entry.block.state)
            entries += 1
            last = entry
            entry = entry.next
        if last != NULL and queue.tail != last:
            gt_fault(walk.faults, "the queue of stream %#llx does not end with its last wait",
                     <counts_ull>queue.stream)
        queue = queue.next
    while block != NULL:
        if block.state != BLOCK_PENDING:
            gt_fault(walk.faults, "block %#llx (state %d) waits for a capture's end and is not "
                     "pending", <counts_ull>block.ptr, <int>block.state)
        deferred += 1
        block = block.link_next
    if a.pending_in_flight == 0 and a.driver_requests == 0:
        figures_check(walk, "waits of pending blocks and those in queues", walk.waits, entries)
        figures_check(walk, "blocks that wait for a capture's end", walk.unqueued, deferred)


cdef void _check_page_pool(DeviceAllocator* a, Walk* walk) noexcept nogil:
    cdef Page* page = a.page_pool
    cdef size_t nbytes = 0
    while page != NULL:
        if page.va != 0 or page.view_count != 0:
            gt_fault(walk.faults, "a page of the page pool is mapped at %#llx and in %d views",
                     <counts_ull>page.va, page.view_count)
        nbytes += page.nbytes
        page = page.next
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


# What lies in caches, waits for streams, bypasses the pools or backs nothing: invariant 3.
cdef void lists_check(DeviceAllocator* a, Walk* walk) noexcept nogil:
    cdef Block* block = a.uncached
    _check_caches(a, walk)
    _check_pending(a, walk)
    _check_page_pool(a, walk)
    while block != NULL:
        walk.mapped[block.kind] += block.nbytes
        walk.segments[block.kind] += 1
        block_count(walk, block)
        block = block.next


# The statistic that a flow feeds.
cdef int _type_of(int flow) noexcept nogil:
    if flow == FLOW_BYTES:
        return STAT_ALLOCATED_BYTES
    if flow == FLOW_COUNT:
        return STAT_ALLOCATION
    if flow == FLOW_REQUESTED:
        return STAT_REQUESTED_BYTES
    return STAT_INACTIVE_SPLIT_BYTES if flow == FLOW_SPLIT_BYTES else STAT_INACTIVE_SPLIT


cdef void _add_shard(const Counters* c, int64_t* current) noexcept nogil:
    cdef int flow
    for flow in range(FLOWS):
        current[_type_of(flow)] += <int64_t>(c.came[flow] - c.gone[flow])


# The current values of a kind, from the shards and the counters under the lock.
cdef void _sum_up(DeviceAllocator* a, int kind, int64_t* current) noexcept nogil:
    cdef ThreadCache* cache = a.caches
    memset(current, 0, sizeof(int64_t) * STAT_TYPES)
    _add_shard(&a.counters[kind], current)
    while cache != NULL:
        _add_shard(&cache.counters[kind], current)
        cache = cache.next
    current[STAT_ACTIVE] = current[STAT_ALLOCATION] + a.pending_sums[FLOW_COUNT][kind]
    current[STAT_ACTIVE_BYTES] = (current[STAT_ALLOCATED_BYTES]
                                  + a.pending_sums[FLOW_BYTES][kind])
    current[STAT_SEGMENT] = a.stats[STAT_SEGMENT][2 - kind].current
    current[STAT_RESERVED_BYTES] = a.stats[STAT_RESERVED_BYTES][2 - kind].current


cdef void _check_walk(DeviceAllocator* a, Walk* walk, int kind,
                      const int64_t* current) noexcept nogil:
    cdef int64_t[9] walked
    cdef int i
    walked[STAT_ALLOCATION] = walk.given_count[kind]
    walked[STAT_SEGMENT] = walk.segments[kind]
    walked[STAT_ACTIVE] = walk.given_count[kind] + walk.pending_count[kind]
    walked[STAT_INACTIVE_SPLIT] = walk.split_count[kind]
    walked[STAT_ALLOCATED_BYTES] = walk.given_nbytes[kind]
    walked[STAT_RESERVED_BYTES] = walk.mapped[kind]
    if kind == POOL_LARGE:
        walked[STAT_RESERVED_BYTES] += <int64_t>a.page_pool_nbytes
    walked[STAT_ACTIVE_BYTES] = walk.given_nbytes[kind] + walk.pending_nbytes[kind]
    walked[STAT_INACTIVE_SPLIT_BYTES] = walk.split_nbytes[kind]
    walked[STAT_REQUESTED_BYTES] = walk.given_requested[kind]
    for i in range(STAT_TYPES):
        figures_check(walk, gt_type_names[i], walked[i], current[i])


cdef int64_t _budgets_of(DeviceAllocator* a, int kind, int budget) noexcept nogil:
    cdef int64_t total = a.counters[kind].budgets[budget]
    cdef ThreadCache* cache = a.caches
    while cache != NULL:
        total += cache.counters[kind].budgets[budget]
        cache = cache.next
    return total


# The refund of a column of pending blocks to the budgets when they are done.
cdef int64_t _refund(const int64_t* by_kind, int column) noexcept nogil:
    return by_kind[0] + by_kind[1] if column == 0 else by_kind[2 - column]


# How far the values that a budget guards are below their peaks; `current` is of that column.
cdef int64_t _room(DeviceAllocator* a, int budget, int column,
                   const int64_t* current) noexcept nogil:
    cdef int first = _type_of(budget)
    cdef int second = STAT_ACTIVE if budget == FLOW_COUNT else STAT_ACTIVE_BYTES
    cdef int64_t room = a.stats[first][column].peak - current[first]
    if budget != FLOW_BYTES and budget != FLOW_COUNT:
        return room
    return min(room - _refund(a.refunds[budget], column),
               a.stats[second][column].peak - current[second])


# Columns of the statistics: all, large, small.
cdef void _check_column(DeviceAllocator* a, Walk* walk, int column, const int64_t* current,
                        const int64_t* budgets) noexcept nogil:
    cdef int64_t room
    cdef int i
    for i in range(STAT_TYPES):
        if current[i] < 0 or current[i] > a.stats[i][column].peak:
            gt_fault(walk.faults, "%s, column %d: now %lld, at most %lld", gt_type_names[i], column,
                     <long long>current[i], <long long>a.stats[i][column].peak)
    for i in range(FLOWS):
        room = _room(a, i, column, current)
        if budgets[i] > room:
            gt_fault(walk.faults, "%s, column %d: the budgets are %lld and the peak is %lld away",
                     gt_flow_names[i], column, <long long>budgets[i], <long long>room)


# The sums of the walk are the statistics, and no peak can be passed unseen: invariants 5 and 6.
cdef void statistics_check(DeviceAllocator* a, Walk* walk) noexcept nogil:
    cdef int64_t[3][9] current      # by column: all, large, small
    cdef int64_t[3][5] budgets
    cdef int kind, i
    for kind in range(2):
        _sum_up(a, kind, &current[2 - kind][0])
        _check_walk(a, walk, kind, &current[2 - kind][0])
        for i in range(FLOWS):
            budgets[2 - kind][i] = _budgets_of(a, kind, i)
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
