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


cdef PinnedPool* pinned_pool_peek(int device) noexcept nogil:
    cell = <void**>device_slot(device, pinned_slot)
    return <PinnedPool*>(NULL if cell == NULL else gt_load(cell))


# The pool of an open device, made at first use; NULL: no host memory for it.
cdef PinnedPool* pinned_pool(int device) noexcept nogil:
    cdef SpinHeld held
    pool = pinned_pool_peek(device)
    if pool != NULL:
        return pool
    held.take(&pools_lock)
    pool = pinned_pool_peek(device)
    if pool == NULL:
        pool = <PinnedPool*>calloc(1, sizeof(PinnedPool))
        if pool != NULL:
            pool.device = device
            gt_store(<void**>device_slot(device, pinned_slot), pool)
    return pool


# Takes the pool out of the device's place; blocks that are still out know it.
cdef void pinned_pool_detach(PinnedPool* pool) noexcept nogil:
    cdef SpinHeld held
    held.take(&pool.lock)
    pool.is_closed = True
    gt_store(<void**>device_slot(pool.device, pinned_slot), NULL)


cdef inline void _bins_put(PinnedPool* pool, Block* block) noexcept nogil:
    block.state = BLOCK_FREE
    pool.free_nbytes += block.nbytes
    bins_insert(&pool.bins, block)


cdef inline void _bins_get(PinnedPool* pool, Block* block) noexcept nogil:
    bins_remove(&pool.bins, block)
    pool.free_nbytes -= block.nbytes


cdef void _count(PinnedPool* pool, int what, Block* block, int sign) noexcept nogil:
    stat_change(&pool.figures.stats[what], sign)
    stat_change(&pool.figures.stats[what + 1], sign * <int64_t>block.nbytes)


# Cuts a block that is in no bin to size and counts it as in use.
cdef void _hand_out_locked(PinnedPool* pool, Block* block, size_t nbytes) noexcept nogil:
    tail = block_split(block, nbytes) if block.nbytes > nbytes else <Block*>NULL
    if tail != NULL:
        _bins_put(pool, tail)
    block.state = BLOCK_ALLOCATED
    _count(pool, PINNED_BLOCKS, block, 1)


# The smallest free block that fits, cut to `nbytes` (a multiple of 512) and counted as in use.
cdef Block* pinned_take(PinnedPool* pool, size_t nbytes) noexcept nogil:
    cdef SpinHeld held
    held.take(&pool.lock)
    block = bins_best_fit(&pool.bins, nbytes)
    if block != NULL:
        _bins_get(pool, block)
        _hand_out_locked(pool, block, nbytes)
    return block


cdef inline bint _is_free(Block* neighbour) noexcept nogil:
    return neighbour != NULL and neighbour.state == BLOCK_FREE


# A block without remaining waits joins its free neighbours; cached memory beyond the limit goes.
cdef void pinned_give_back(PinnedPool* pool, Block* block) noexcept nogil:
    history_record_pinned(pool.device, HISTORY_FREE_COMPLETED, block.ptr, block.nbytes,
                          block.nbytes, 0)
    gt_spin_lock(&pool.lock)
    _count(pool, PINNED_BLOCKS, block, -1)
    block.requested = 0
    block.epoch = 0
    if _is_free(block.next):
        _bins_get(pool, block.next)
        block_join_next(block)
    if _is_free(block.previous):
        block = block.previous
        _bins_get(pool, block)
        block_join_next(block)
    _bins_put(pool, block)
    gt_spin_unlock(&pool.lock)
    pinned_trim(pool, config.pinned_max_cached)


# A call that made a segment (which: 0) or returned one (1).
cdef void _count_call(PinnedPool* pool, int which, int64_t started_ns) noexcept nogil:
    cdef int64_t spent = max((<int64_t>gt_now_ns() - started_ns) // 1000, 0)
    times = &pool.figures.times[which]
    times.total += spent
    times.largest = max(times.largest, spent)
    times.smallest = spent if times.count == 0 else min(times.smallest, spent)
    times.count += 1
    pool.figures.calls[which] += 1


cdef status_t _segment_from_system(PinnedPool* pool, Block* block) noexcept nogil:
    cdef status_t status
    driver = driver_get(pool.device)
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
    cdef status_t status
    driver = driver_get(pool.device)
    if not block.kind:
        return driver.pinned_free(driver.self, block.ptr)
    status = driver.pinned_unregister(driver.self, block.ptr)
    if status == STATUS_OK:
        gt_drop_pages(block.ptr, block.nbytes)
    return status


# A block of `nbytes` cut from a new segment; the rest of the segment goes into the bins.
cdef Block* pinned_grow(PinnedPool* pool, size_t segment_nbytes, size_t nbytes, uint32_t stack,
                        status_t* status) noexcept nogil:
    cdef int64_t started = gt_now_ns()
    cdef SpinHeld held
    segment = <Segment*>calloc(1, sizeof(Segment))
    block = block_new() if segment != NULL else <Block*>NULL
    status[0] = STATUS_OUT_OF_MEMORY
    if block != NULL:
        block.nbytes = (segment_nbytes + SEGMENT_STEP - 1) // SEGMENT_STEP * SEGMENT_STEP
        block.device = pool.device
        block.pool = <BlockPool*>pool
        block.segment = segment
        status[0] = _segment_from_system(pool, block)
        if status[0] != STATUS_OK:
            block_drop(block)
    if status[0] != STATUS_OK:
        free(segment)
        return NULL
    segment.first = block
    segment.stack = stack
    history_record_pinned(pool.device, HISTORY_SEGMENT_ALLOC, block.ptr, block.nbytes, block.nbytes,
                          stack)
    held.take(&pool.lock)
    row_push(&pool.segments, segment)
    _count_call(pool, 0, started)
    _count(pool, PINNED_SEGMENTS, block, 1)
    _hand_out_locked(pool, block, nbytes)
    return block


# The largest free block that is a whole segment.
cdef Block* _largest_whole_locked(PinnedPool* pool) noexcept nogil:
    cdef Block* block
    cdef Block* largest = NULL
    head = bins_largest(&pool.bins)
    while head != NULL and largest == NULL:
        for block in linked(head):
            if (block.previous == NULL and block.next == NULL
                    and (largest == NULL or block.nbytes > largest.nbytes)):
                largest = block
        head = bins_below(&pool.bins, head)
    return largest


# Gives the largest of the whole free segments back if more than `keep` bytes are free.
cdef bint _trim_one(PinnedPool* pool, size_t keep) noexcept nogil:
    cdef Block* block = NULL
    cdef int64_t started
    cdef bint is_back
    cdef SpinHeld held
    gt_spin_lock(&pool.lock)
    if pool.free_nbytes > keep:
        block = _largest_whole_locked(pool)
    if block != NULL:
        _bins_get(pool, block)
    gt_spin_unlock(&pool.lock)
    if block == NULL:
        return False
    started = gt_now_ns()
    is_back = _segment_to_system(pool, block) == STATUS_OK
    held.take(&pool.lock)
    if not is_back:
        _bins_put(pool, block)          # the system keeps it, so it stays usable
        return False
    _count_call(pool, 1, started)
    _count(pool, PINNED_SEGMENTS, block, -1)
    history_record_pinned(pool.device, HISTORY_SEGMENT_FREE, block.ptr, block.nbytes, block.nbytes,
                          0)
    row_remove(&pool.segments, block.segment)
    free(block.segment)
    block_drop(block)
    return True


# Whole free segments go back to the system, largest first, until at most `keep` bytes are free.
cdef void pinned_trim(PinnedPool* pool, size_t keep) noexcept nogil:
    while _trim_one(pool, keep):
        pass
