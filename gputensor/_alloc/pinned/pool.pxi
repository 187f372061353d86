"""The free pinned memory of a device: best fit in the core's bins, split and merge.

Pinned memory is slow to make (the system touches and locks every page), so a segment is at least
2 MiB and is kept when it is free. A request costs its size rounded up to 512 bytes, never to a
power of two. Blocks tile their segment, and two neighbours are never both free, so a segment is
whole when its block has no neighbours: only such a block can go back to the system.

A block's `kind` says how its segment was made: 0 by the driver, 1 by registering ordinary pages.
"""

# The pool of a block.
cdef inline PinnedPool* pinned_pool_of(const Block* block) noexcept nogil:
    return <PinnedPool*>block.pool


cdef extern from "gputensor/_alloc/pinned/prefault.h" nogil:
    uint64_t gt_touched_pages(size_t nbytes, int threads)
    void gt_drop_pages(uint64_t ptr, size_t nbytes)

cdef extern from "gputensor/_alloc/history/ring.h" nogil:
    uint64_t gt_now_ns()

cdef enum:
    SEGMENT_STEP = 2 << 20

cdef int32_t pools_lock = 0
cdef AllocatorConfig config
cdef bint is_configured = False


cdef bint _configure() noexcept with gil:
    global is_configured
    try:
        with _settings.unchanged():
            if not is_configured:
                config_current(&config)
                _settings.on_change(_take_over)
                is_configured = True
    except ValueError:
        # The environment variable is bad: raise_for_pinned says so.
        return False
    return True


def _take_over(settings):
    settings_to_struct(settings, &config)


# Whether the settings could be read; they are read on the first call and after each change.
cdef bint pinned_configured() noexcept nogil:
    return is_configured or _configure()


cdef size_t pinned_max_cached() noexcept nogil:
    return config.pinned_max_cached


cdef size_t pinned_reserve_segment() noexcept nogil:
    return config.pinned_reserve_segment


cdef PinnedPool* pinned_pool_peek(int device) noexcept nogil:
    cdef void** cell = <void**>device_slot(device, pinned_slot)
    if cell == NULL:
        return NULL
    return <PinnedPool*>gt_load_pointer(cell)


# The pool of an open device, made at first use; NULL: no host memory for it.
cdef PinnedPool* pinned_pool(int device) noexcept nogil:
    cdef PinnedPool* pool = pinned_pool_peek(device)
    if pool != NULL:
        return pool
    gt_spin_lock(&pools_lock)
    pool = pinned_pool_peek(device)
    if pool == NULL:
        pool = <PinnedPool*>calloc(1, sizeof(PinnedPool))
        if pool != NULL:
            pool.device = device
            gt_store_pointer(<void**>device_slot(device, pinned_slot), pool)
    gt_spin_unlock(&pools_lock)
    return pool


# Takes the pool out of the device's place; blocks that are still out know it.
cdef void pinned_pool_detach(PinnedPool* pool) noexcept nogil:
    gt_spin_lock(&pool.lock)
    pool.is_closed = True
    gt_spin_unlock(&pool.lock)
    gt_store_pointer(<void**>device_slot(pool.device, pinned_slot), NULL)


cdef inline void _bins_put(PinnedPool* pool, Block* block) noexcept nogil:
    block.state = BLOCK_FREE
    pool.free_nbytes += block.nbytes
    bins_insert(&pool.bins, block)


cdef inline void _bins_get(PinnedPool* pool, Block* block) noexcept nogil:
    bins_remove(&pool.bins, block)
    pool.free_nbytes -= block.nbytes


cdef void _hand_out_locked(PinnedPool* pool, Block* block, size_t nbytes) noexcept nogil:
    """Cut a block that is in no bin to size and count it as in use."""
    cdef Block* tail
    if block.nbytes > nbytes:
        tail = block_split(block, nbytes)
        if tail != NULL:
            _bins_put(pool, tail)
    block.state = BLOCK_ALLOCATED
    stat_change(&pool.active_requests, 1)
    stat_change(&pool.active_bytes, <int64_t>block.nbytes)


# The smallest free block that fits, cut to `nbytes` (a multiple of 512) and counted as in use.
cdef Block* pinned_take(PinnedPool* pool, size_t nbytes) noexcept nogil:
    cdef Block* block
    gt_spin_lock(&pool.lock)
    block = bins_best_fit(&pool.bins, nbytes)
    if block != NULL:
        _bins_get(pool, block)
        _hand_out_locked(pool, block, nbytes)
    gt_spin_unlock(&pool.lock)
    return block


# A block comes back: it joins its free neighbours.
cdef void pinned_insert_locked(PinnedPool* pool, Block* block) noexcept nogil:
    cdef Block* neighbour = block.next
    if history_enabled(pool.device):
        history_record_pinned(pool.device, HISTORY_FREE_COMPLETED, block.ptr, block.nbytes,
                              block.nbytes, 0)
    stat_change(&pool.active_requests, -1)
    stat_change(&pool.active_bytes, -<int64_t>block.nbytes)
    block.requested = 0
    block.epoch = 0
    if neighbour != NULL and neighbour.state == BLOCK_FREE:
        _bins_get(pool, neighbour)
        block_join_next(block)
    neighbour = block.previous
    if neighbour != NULL and neighbour.state == BLOCK_FREE:
        _bins_get(pool, neighbour)
        block_join_next(neighbour)
        block = neighbour
    _bins_put(pool, block)


cdef void _count_call(CallTimes* times, int64_t started_ns) noexcept nogil:
    cdef int64_t spent = (<int64_t>gt_now_ns() - started_ns) // 1000
    if spent < 0:
        spent = 0
    times.total += spent
    times.largest = spent if spent > times.largest else times.largest
    times.smallest = spent if times.count == 0 or spent < times.smallest else times.smallest
    times.count += 1


cdef status_t _segment_from_system(PinnedPool* pool, Block* block) noexcept nogil:
    cdef Driver* driver = driver_get(pool.device)
    cdef status_t status
    block.kind = config.pinned_register != 0
    if not block.kind:
        return driver.pinned_alloc(driver.self, &block.ptr, block.nbytes)
    block.ptr = gt_touched_pages(block.nbytes, config.pinned_register_threads)
    if block.ptr == 0:
        return STATUS_OUT_OF_MEMORY
    status = driver.pinned_register(driver.self, block.ptr, block.nbytes)
    if status != STATUS_OK:
        gt_drop_pages(block.ptr, block.nbytes)
    return status


cdef status_t _segment_to_system(PinnedPool* pool, Block* block) noexcept nogil:
    cdef Driver* driver = driver_get(pool.device)
    cdef status_t status
    if not block.kind:
        return driver.pinned_free(driver.self, block.ptr)
    status = driver.pinned_unregister(driver.self, block.ptr)
    if status == STATUS_OK:
        gt_drop_pages(block.ptr, block.nbytes)
    return status


# A block of `nbytes` cut from a new segment; the rest of the segment goes into the bins.
cdef Block* pinned_grow(PinnedPool* pool, size_t segment_nbytes, size_t nbytes, uint32_t stack,
                        status_t* status) noexcept nogil:
    cdef Block* block = block_new()
    cdef PinnedSegment* segment = <PinnedSegment*>calloc(1, sizeof(PinnedSegment))
    cdef int64_t started
    if block == NULL or segment == NULL:
        free(segment)
        if block != NULL:
            block_drop(block)
        status[0] = STATUS_OUT_OF_MEMORY
        return NULL
    block.nbytes = (segment_nbytes + SEGMENT_STEP - 1) // SEGMENT_STEP * SEGMENT_STEP
    block.device = pool.device
    block.pool = <BlockPool*>pool
    started = gt_now_ns()
    status[0] = _segment_from_system(pool, block)
    if status[0] != STATUS_OK:
        block_drop(block)
        free(segment)
        return NULL
    segment.first = block
    segment.stack = stack
    if history_enabled(pool.device):
        history_record_pinned(pool.device, HISTORY_SEGMENT_ALLOC, block.ptr, block.nbytes,
                              block.nbytes, stack)
    gt_spin_lock(&pool.lock)
    segment.next = pool.segments
    pool.segments = segment
    _count_call(&pool.alloc_times, started)
    pool.num_host_alloc += 1
    stat_change(&pool.allocations, 1)
    stat_change(&pool.allocated_bytes, <int64_t>block.nbytes)
    _hand_out_locked(pool, block, nbytes)
    gt_spin_unlock(&pool.lock)
    return block


cdef void _forget_segment_locked(PinnedPool* pool, Block* block) noexcept nogil:
    cdef PinnedSegment** cell = &pool.segments
    cdef PinnedSegment* segment
    while cell[0].first != block:
        cell = &cell[0].next
    segment = cell[0]
    cell[0] = segment.next
    free(segment)


cdef Block* _largest_whole_locked(PinnedPool* pool) noexcept nogil:
    """The largest free block that is a whole segment."""
    cdef Block* head = bins_largest(&pool.bins)
    cdef Block* block
    cdef Block* largest = NULL
    while head != NULL and largest == NULL:
        block = head
        while block != NULL:
            if (block.previous == NULL and block.next == NULL
                    and (largest == NULL or block.nbytes > largest.nbytes)):
                largest = block
            block = block.link_next
        head = bins_below(&pool.bins, head)
    return largest


# Whole free segments go back to the system, largest first, until at most `keep` bytes are free.
cdef void pinned_trim(PinnedPool* pool, size_t keep) noexcept nogil:
    cdef Block* block
    cdef int64_t started
    cdef status_t status = STATUS_OK
    while status == STATUS_OK:
        gt_spin_lock(&pool.lock)
        block = _largest_whole_locked(pool) if pool.free_nbytes > keep else NULL
        if block != NULL:
            _bins_get(pool, block)
        gt_spin_unlock(&pool.lock)
        if block == NULL:
            return
        started = gt_now_ns()
        status = _segment_to_system(pool, block)
        gt_spin_lock(&pool.lock)
        if status == STATUS_OK:
            _count_call(&pool.free_times, started)
            pool.num_host_free += 1
            stat_change(&pool.allocations, -1)
            stat_change(&pool.allocated_bytes, -<int64_t>block.nbytes)
            if history_enabled(pool.device):
                history_record_pinned(pool.device, HISTORY_SEGMENT_FREE, block.ptr, block.nbytes,
                                      block.nbytes, 0)
            _forget_segment_locked(pool, block)
            block_drop(block)
        else:
            # The system keeps it, so it stays usable.
            _bins_put(pool, block)
        gt_spin_unlock(&pool.lock)
