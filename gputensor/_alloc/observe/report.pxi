"""Statistics and raw snapshots of the allocator, for Python.

Values are collected under the device lock with the caches stopped, so that they are consistent;
the code under the lock formats nothing and allocates no host memory.
"""

cdef enum:
    COUNTED = 122               # from DeviceAllocator.stats on; what follows is a setting
    PRIVATE_VALUES = 13         # of a private pool: its number, and four fields of three statistics

assert COUNTED + 1 == len(STATISTICS_KEYS)

cdef list TYPE_NAMES = list(TYPES)


cdef void _copy_values(DeviceAllocator* a, int64_t* values, vector[int64_t]* cells) noexcept nogil:
    cdef PrivatePool* private
    cdef Held held
    device_hold(a, &held, "statistics")         # reading them settles budgets and peaks
    stats_update(a)
    memcpy(values, a.stats, COUNTED * sizeof(int64_t))
    for private in each(a.private_pools):
        if private.account == private and (private.holders > 0 or private.reserved[0].current != 0):
            cells.push_back(<int64_t>private.pool_id)
            cells.insert(cells.end(), &private.reserved[0].current,
                         &private.reserved[0].current + PRIVATE_VALUES - 1)


cdef tuple _values(DeviceAllocator* a, vector[int64_t]* cells):
    cdef int64_t[COUNTED] values
    cdef int i
    if a == NULL:
        return (0,) * COUNTED + (allocator_settings()["max_split_size"],)
    _copy_values(a, values, cells)
    return (*[values[i] for i in range(COUNTED)], <int64_t>a.config.max_split_size)


def all_values(int device):
    """Return ``(values, {pool_id: values})`` of a device, both of one moment.

    The first are in the order of ``STATISTICS_KEYS``. The values of a private pool are its reserved
    bytes: all, large and small, each with the four fields. Retired pools without memory are left
    out.
    """
    cdef vector[int64_t] cells
    counted = _values(allocator_find(device), &cells)
    flat = tuple(cells)
    return counted, {flat[i]: flat[i + 1:i + PRIVATE_VALUES]
                     for i in range(0, len(flat), PRIVATE_VALUES)}


def allocated_nbytes(int device):
    """Return the bytes that callers hold now: four loads for each thread cache, and no lock."""
    cdef DeviceAllocator* a = allocator_find(device)
    return 0 if a == NULL else stats_allocated(a)


def reserved_nbytes(int device):
    """Return the bytes of device memory held now."""
    cdef DeviceAllocator* a = allocator_find(device)
    return 0 if a == NULL else gt_load(&a.stats[STAT_RESERVED_BYTES][0].current)


def peak_nbytes(int device, str stat):
    """Return the most bytes at one time since the last reset.

    `stat` is a key of ``TYPES`` in statistics_names.py, such as ``"allocated_bytes"``.
    """
    cdef DeviceAllocator* a = allocator_find(device)
    cdef int row = TYPE_NAMES.index(stat)
    cdef Held held
    if a == NULL:
        return 0
    device_hold(a, &held, "statistics")
    stats_update(a)
    return a.stats[row][0].peak


cdef void _reset_peaks(Stat* stats, int count) noexcept nogil:
    cdef int i
    for i in range(count):
        stats[i].peak = stats[i].current


def pinned_values(int device, bint reset_times=False):
    """Return ``(values, times)`` of a device's pinned memory.

    The values are those of :func:`all_values`; the times, a dict each, of the calls that made
    segments and of those that returned them.
    """
    cdef PinnedPool* pool = pinned_pool_peek(device)
    cdef CallTimes[2] times
    cdef vector[int64_t] cells
    if pool == NULL:
        return _values(NULL, &cells), ()
    device_lock(&pool.a)
    times = pool.times
    if reset_times:
        memset(pool.times, 0, sizeof(pool.times))
    device_unlock(&pool.a)
    return _values(&pool.a, &cells), (times[0], times[1])


def reset_peak_pinned():
    """Set every peak of pinned memory to its current value, on all devices."""
    for device in pinned_devices():
        _reset_all_peaks(<DeviceAllocator*>pinned_pool_peek(device))


def reset_peak(int device):
    """Set every peak to the current value."""
    _reset_all_peaks(allocator_find(device))


cdef void _reset_all_peaks(DeviceAllocator* a) noexcept nogil:
    cdef PrivatePool* private
    cdef Held held
    if a == NULL:
        return
    device_hold(a, &held, "reset_peak")
    caches_stop(a)
    stats_settle(a)
    _reset_peaks(a.stats[0], STAT_TYPES * 3 + 2)
    for private in each(a.private_pools):
        _reset_peaks(private.reserved, 3)
    stats_settle(a)         # no room is left under any peak: the budgets follow
    caches_resume(a)


def empty_cache(int device):
    """Give everything free back to the driver; waits for the device first. Returns the bytes."""
    cdef DeviceAllocator* a = allocator_find(device)
    cdef size_t released
    if a == NULL:
        return 0
    stack_for_request(HISTORY_STACK_FREE)   # of the segments that go
    with nogil:
        released = allocator_empty(a, "empty_cache")
    stack_for_request(0)
    return released


# The records that a snapshot copies under the lock.
cdef struct Records:
    vector[SegmentRecord] segments
    vector[BlockRecord] blocks


# A new segment; its blocks follow.
cdef void _add_segment(Records* records, uint64_t address, uint64_t stream, uint64_t pool_id,
                       uint32_t stack, int device, int kind) noexcept nogil:
    cdef SegmentRecord record
    memset(&record, 0, sizeof(SegmentRecord))
    record.address, record.stream, record.pool_id, record.stack = address, stream, pool_id, stack
    record.device, record.is_large = device, kind == POOL_LARGE
    records.segments.push_back(record)


cdef void _add_block(Records* records, Block* block) noexcept nogil:
    cdef SegmentRecord* segment = &records.segments.back()
    cdef BlockRecord record
    memset(&record, 0, sizeof(BlockRecord))
    record.address, record.nbytes, record.requested = block.ptr, block.nbytes, block.requested
    if block.state == BLOCK_ALLOCATED:
        record.state = RECORD_ALLOCATED
    elif block.state == BLOCK_PENDING:
        record.state = RECORD_PENDING_FREE
    if record.state != RECORD_INACTIVE:         # a free block keeps the stack of its last owner
        record.stack = gt_load(&block.stack)
    segment.nbytes += block.nbytes
    segment.n_blocks += 1
    records.blocks.push_back(record)


# The segments of some pools, a record for each mapped range.
cdef void _add_pools(Records* records, BlockPool* pools) noexcept nogil:
    cdef Segment* segment
    cdef Block* block
    cdef bint is_open
    cdef int place
    for place in range(POOLS):
        for segment in each(pools[place].segments):
            is_open = False
            for block in each(segment.first):
                if not block_is_mapped(block) or block.is_part:
                    is_open = False
                    continue
                if not is_open:
                    _add_segment(records, block.ptr, segment.stream, pools.pool_id,
                                 segment.stack, block.device,
                                 POOL_LARGE if pools.allocator.is_pinned else pools[place].kind)
                    records.segments.back().is_expandable = segment.is_virtual
                    is_open = True
                _add_block(records, block)


# Blocks each of which is a segment of its own: those that callers hold in a view, in place of the
# tiles that they stand for, and those that bypass the pools.
cdef void _add_single(Records* records, Block* blocks) noexcept nogil:
    cdef Block* block
    for block in each(blocks):
        _add_segment(records, block.ptr, block.stream, 0, 0, block.device, block.kind)
        records.segments.back().is_expandable = block.view != NULL
        _add_block(records, block)


cdef void _collect(DeviceAllocator* a, bint with_page_pool, Records* records) noexcept nogil:
    cdef View* view
    cdef PrivatePool* private
    cdef Block pages
    cdef Held held
    held.take(&a.lock)
    caches_stop(a)
    _add_pools(records, a.pools)
    _add_single(records, a.uncached)
    for view in each(a.views):
        _add_single(records, view.blocks)
    for private in each(a.private_pools):
        _add_pools(records, private.pools)
    caches_resume(a)
    if with_page_pool and a.page_pool_nbytes > 0:
        memset(&pages, 0, sizeof(Block))
        pages.nbytes, pages.kind, pages.device = a.page_pool_nbytes, POOL_LARGE, a.device
        _add_single(records, &pages)
        records.segments.back().is_expandable = True


cdef tuple _collected(DeviceAllocator* a, bint with_page_pool):
    cdef Records records
    if a != NULL:
        with nogil:
            _collect(a, with_page_pool, &records)
    segments = np.frombuffer(<bytes>(<char*>records.segments.data())[
        :records.segments.size() * sizeof(SegmentRecord)], SEGMENT_DTYPE)
    blocks = np.frombuffer(<bytes>(<char*>records.blocks.data())[
        :records.blocks.size() * sizeof(BlockRecord)], BLOCK_DTYPE)
    return segments[np.argsort(segments["address"])], blocks[np.argsort(blocks["address"])]


def collect_segments(int device, bint with_page_pool=False):
    """Return ``(segments, blocks)``, arrays of ``SEGMENT_DTYPE`` and ``BLOCK_DTYPE``, of one
    moment.

    Both come by rising address, so that the blocks of a segment follow those of the segments
    before. The pages of the page pool have no address; `with_page_pool` shows them as one free
    segment at address 0, so that the sizes add up to the reserved bytes.
    """
    return _collected(allocator_find(device), with_page_pool)


def collect_pinned(int device):
    """Return the same as :func:`collect_segments`, for a device's pinned memory."""
    return _collected(<DeviceAllocator*>pinned_pool_peek(device), False)


def generation_of(int device):
    """Return a number that changes when a device closes, and in the child of a fork."""
    return device_generation(device)
