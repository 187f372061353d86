"""Statistics and raw snapshots of the allocator, for Python.

Values are collected under the device lock with the caches stopped, so that they are consistent;
the code under the lock formats nothing and allocates no host memory.
"""

cdef enum:
    VALUES = 123
    PRIVATE_VALUES = 13         # the pool's number and its counters


cdef void _settle(DeviceAllocator* a) noexcept nogil:
    caches_stop(a)
    stats_settle(a)
    caches_resume(a)


cdef void _fill(DeviceAllocator* a, int64_t* values) noexcept nogil:
    cdef int64_t* cell = values
    cdef int i
    cdef Stat* stat = &a.stats[0][0]
    for i in range(STAT_TYPES * 3):
        cell[0] = stat[i].current
        cell[1] = stat[i].peak
        cell[2] = stat[i].allocated
        cell[3] = stat[i].freed
        cell += 4
    for i in range(2):
        stat = &a.oversize_allocations if i == 0 else &a.oversize_segments
        cell[0] = stat.current
        cell[1] = stat.peak
        cell[2] = stat.allocated
        cell[3] = stat.freed
        cell += 4
    cell[0] = a.num_alloc_retries
    cell[1] = a.num_ooms
    cell[2] = a.num_sync_all_streams
    cell[3] = a.num_device_alloc
    cell[4] = a.num_device_free
    cell[5] = a.num_oom_rejections
    cell[6] = -1 if a.config.max_split_size == SIZE_MAX else <int64_t>a.config.max_split_size


def stats_values(int device):
    """Return the counters of a device as a tuple in the order of ``STATISTICS_KEYS``."""
    return all_values(device)[0]


# Writes a private pool's counters: all, large, small, each with its four fields.
cdef void _fill_private(PrivatePool* private, int64_t* cell) noexcept nogil:
    cdef int i
    for i in range(3):
        cell[0] = private.reserved[i].current
        cell[1] = private.reserved[i].peak
        cell[2] = private.reserved[i].allocated
        cell[3] = private.reserved[i].freed
        cell += 4


cdef inline bint _is_shown(PrivatePool* private) noexcept nogil:
    return private.account == private and (private.holders > 0
                                           or private.reserved[0].current != 0)


cdef int _count_private(DeviceAllocator* a) noexcept nogil:
    cdef PrivatePool* private = a.private_pools
    cdef int count = 0
    while private != NULL:
        count += _is_shown(private)
        private = private.next
    return count


cdef void _fill_all_private(DeviceAllocator* a, int64_t* cells) noexcept nogil:
    cdef PrivatePool* private = a.private_pools
    while private != NULL:
        if _is_shown(private):
            cells[0] = <int64_t>private.pool_id
            _fill_private(private, &cells[1])
            cells += PRIVATE_VALUES
        private = private.next


def all_values(int device):
    """Return ``(stats_values(device), {pool_id: values})``, both of one moment.

    The values of a private pool are its reserved bytes: all, large and small, each with the four
    fields. Retired pools without memory are left out.
    """
    cdef DeviceAllocator* a = allocator_find(device)
    cdef int64_t[VALUES] values
    cdef int64_t* cells = NULL
    cdef int i, j, count = 0
    cdef int room = 0
    memset(values, 0, sizeof(values))
    while a != NULL:
        device_lock(a)
        _settle(a)
        _fill(a, values)
        count = _count_private(a)
        if count <= room:
            _fill_all_private(a, cells)
        device_unlock(a)
        check_after(device, "statistics")       # which settle budgets and peaks
        if count <= room:
            break
        # Room is made without the lock; new records may need more by then.
        free(cells)
        room = count + 8
        cells = <int64_t*>malloc(room * PRIVATE_VALUES * sizeof(int64_t))
        if cells == NULL:
            raise MemoryError("no host memory for the statistics of pools")
    found = {}
    try:
        for i in range(count):
            j = i * PRIVATE_VALUES
            found[cells[j]] = tuple([cells[j + 1 + k] for k in range(12)])
    finally:
        free(cells)
    return tuple([values[i] for i in range(VALUES)]), found


def allocated_nbytes(int device):
    """Return the bytes that callers hold now: one load for each thread that allocates."""
    cdef DeviceAllocator* a = allocator_find(device)
    return 0 if a == NULL else stats_allocated(a)


def reserved_nbytes(int device):
    """Return the bytes of device memory held now."""
    cdef DeviceAllocator* a = allocator_find(device)
    return 0 if a == NULL else stat_read(&a.stats[STAT_RESERVED_BYTES][0].current)


def peak_allocated_nbytes(int device):
    """Return the most bytes that callers held at one time since the last reset."""
    cdef DeviceAllocator* a = allocator_find(device)
    if a == NULL:
        return 0
    device_lock(a)
    _settle(a)
    device_unlock(a)
    check_after(device, "statistics")
    return a.stats[STAT_ALLOCATED_BYTES][0].peak


def peak_requested_nbytes(int device):
    """Return the most bytes that callers asked for at one time since the last reset."""
    cdef DeviceAllocator* a = allocator_find(device)
    if a == NULL:
        return 0
    device_lock(a)
    _settle(a)
    device_unlock(a)
    check_after(device, "statistics")
    return a.stats[STAT_REQUESTED_BYTES][0].peak


def peak_reserved_nbytes(int device):
    """Return the most bytes of device memory held at one time since the last reset."""
    cdef DeviceAllocator* a = allocator_find(device)
    return 0 if a == NULL else stat_read(&a.stats[STAT_RESERVED_BYTES][0].peak)


cdef void _reset_peaks(DeviceAllocator* a) noexcept nogil:
    cdef int i
    cdef Stat* stat = &a.stats[0][0]
    cdef PrivatePool* private = a.private_pools
    for i in range(STAT_TYPES * 3):
        stat[i].peak = stat[i].current
    while private != NULL:
        for i in range(3):
            private.reserved[i].peak = private.reserved[i].current
        private = private.next
    a.oversize_allocations.peak = a.oversize_allocations.current
    a.oversize_segments.peak = a.oversize_segments.current


def reset_peak(int device):
    """Set every peak to the current value."""
    cdef DeviceAllocator* a = allocator_find(device)
    if a == NULL:
        return
    device_lock(a)
    caches_stop(a)
    stats_settle(a)
    _reset_peaks(a)
    stats_settle(a)         # no room is left under any peak: the budgets follow
    caches_resume(a)
    device_unlock(a)
    check_after(device, "reset_peak")


def empty_cache(int device):
    """Give everything free back to the driver; waits for the device first. Returns the bytes."""
    cdef DeviceAllocator* a = allocator_find(device)
    cdef size_t released = 0
    if a == NULL:
        return 0
    stack_capture_if_enabled(device)        # of the segments that go
    with nogil:
        device_lock(a)
        caches_drain(a)             # first: cached blocks are done after the wait, too
        synchronize_all(a)
        if a.pending != NULL:
            pending_poll(a)
        uncached_release(a)
        released = release_all(a)
        retired_pools_settle(a)
        device_unlock(a)
        check_after(device, "empty_cache")
    return released


cdef inline int _record_state(Block* block) noexcept nogil:
    if block.state == BLOCK_ALLOCATED:
        return RECORD_ALLOCATED
    if block.state == BLOCK_PENDING:
        return RECORD_PENDING_FREE
    return RECORD_INACTIVE


cdef inline void _record_block(BlockRecord* record, Block* block) noexcept nogil:
    memset(record, 0, sizeof(BlockRecord))
    record.address = block.ptr
    record.nbytes = block.nbytes
    record.requested = block.requested
    record.state = _record_state(block)
    if record.state != RECORD_INACTIVE:         # a free block has the stack of who had it before
        record.stack = <uint32_t>gt_load_int(<const int32_t*>&block.stack)


# Writes the segments of a pool, a record for each mapped range; counts only when NULL is given.
cdef void _collect(BlockPool* pool, SegmentRecord* segments, BlockRecord* blocks,
                   size_t* segment_count, size_t* block_count) noexcept nogil:
    cdef Segment* segment = pool.segments
    cdef Block* block
    cdef SegmentRecord* record = NULL
    while segment != NULL:
        record = NULL
        block = segment.first
        while block != NULL:
            if not block_is_mapped(block) or block.is_part:
                record = NULL
            else:
                if segments == NULL:
                    if record == NULL:
                        segment_count[0] += 1
                        record = <SegmentRecord*>1
                else:
                    if record == NULL:
                        record = &segments[segment_count[0]]
                        memset(record, 0, sizeof(SegmentRecord))
                        segment_count[0] += 1
                        record.address = block.ptr
                        record.stream = segment.stream
                        record.pool_id = pool.pool_id
                        record.stack = segment.stack
                        record.device = pool.allocator.device
                        record.is_large = pool.kind == POOL_LARGE
                        record.is_expandable = segment.is_virtual
                    record.nbytes += block.nbytes
                    record.n_blocks += 1
                    _record_block(&blocks[block_count[0]], block)
                block_count[0] += 1
            block = block.next
        segment = segment.next


# Writes a list of blocks each of which is a segment of its own: those that callers hold in a view,
# in place of the tiles that they stand for, and those that bypass the pools.
cdef void _collect_single(DeviceAllocator* a, Block* block, SegmentRecord* segments,
                          BlockRecord* blocks, size_t* segment_count,
                          size_t* block_count) noexcept nogil:
    cdef SegmentRecord* record
    while block != NULL:
        if segments != NULL:
            record = &segments[segment_count[0]]
            memset(record, 0, sizeof(SegmentRecord))
            record.address = block.ptr
            record.nbytes = block.nbytes
            record.stream = block.stream
            record.device = a.device
            record.is_large = block.kind == POOL_LARGE
            record.is_expandable = block.view != NULL
            record.n_blocks = 1
            _record_block(&blocks[block_count[0]], block)
        segment_count[0] += 1
        block_count[0] += 1
        block = block.next


cdef void _collect_all(DeviceAllocator* a, SegmentRecord* segments, BlockRecord* blocks,
                       size_t* segment_count, size_t* block_count) noexcept nogil:
    cdef PrivatePool* private = a.private_pools
    cdef View* view = a.views
    _collect(&a.pools[0], segments, blocks, segment_count, block_count)
    _collect(&a.pools[1], segments, blocks, segment_count, block_count)
    _collect_single(a, a.uncached, segments, blocks, segment_count, block_count)
    while view != NULL:
        _collect_single(a, view.blocks, segments, blocks, segment_count, block_count)
        view = view.next
    while private != NULL:
        _collect(&private.pools[0], segments, blocks, segment_count, block_count)
        _collect(&private.pools[1], segments, blocks, segment_count, block_count)
        private = private.next


def collect_segments(int device, bint with_page_pool=False):
    """Return ``(segments, blocks)``, arrays of ``SEGMENT_DTYPE`` and ``BLOCK_DTYPE``, of one
    moment.

    Segments come by rising address, blocks in the same order. The pages of the page pool have no
    address; `with_page_pool` shows them as one free segment at address 0, so that the sizes add up
    to what is reserved.
    """
    cdef DeviceAllocator* a = allocator_find(device)
    cdef size_t segment_count = 0
    cdef size_t block_count = 0
    cdef size_t segments_filled = 0
    cdef size_t blocks_filled = 0
    cdef size_t pooled = 0
    cdef size_t segment_room = 0
    cdef size_t block_room = 0
    cdef bint fits = False
    cdef SegmentRecord* segments = NULL
    cdef BlockRecord* blocks = NULL
    if a == NULL:
        return np.empty(0, SEGMENT_DTYPE), np.empty(0, BLOCK_DTYPE)
    with nogil:
        while True:
            device_lock(a)
            caches_stop(a)
            pooled = a.page_pool_nbytes
            segment_count = block_count = 0
            _collect_all(a, NULL, NULL, &segment_count, &block_count)
            fits = segment_count < segment_room and block_count < block_room
            if fits:
                _collect_all(a, segments, blocks, &segments_filled, &blocks_filled)
            caches_resume(a)
            device_unlock(a)
            if fits:
                break
            # Room is made without the lock; new records may need more by then.
            free(segments)
            free(blocks)
            segment_room = segment_count + segment_count // 8 + 64
            block_room = block_count + block_count // 8 + 256
            segments = <SegmentRecord*>malloc(segment_room * sizeof(SegmentRecord))
            blocks = <BlockRecord*>malloc(block_room * sizeof(BlockRecord))
            if segments == NULL or blocks == NULL:
                break
    try:
        if segments == NULL or blocks == NULL:
            raise MemoryError("no host memory for a snapshot")
        ordered = _in_order((<char*>segments)[:segment_count * sizeof(SegmentRecord)],
                            (<char*>blocks)[:block_count * sizeof(BlockRecord)])
    finally:
        free(segments)
        free(blocks)
    return _before_all(device, pooled, ordered) if with_page_pool and pooled else ordered


def _before_all(int device, size_t nbytes, ordered):
    segment = np.zeros(1, SEGMENT_DTYPE)
    block = np.zeros(1, BLOCK_DTYPE)
    segment["nbytes"] = block["nbytes"] = nbytes
    segment["device"], segment["n_blocks"] = device, 1
    segment["is_large"] = segment["is_expandable"] = 1
    return np.concatenate([segment, ordered[0]]), np.concatenate([block, ordered[1]])


def _in_order(bytes segment_bytes, bytes block_bytes):
    segments = np.frombuffer(segment_bytes, SEGMENT_DTYPE)
    blocks = np.frombuffer(block_bytes, BLOCK_DTYPE)
    order = np.argsort(segments["address"], kind="stable")
    counts = segments["n_blocks"].astype(np.int64)
    starts = np.cumsum(counts) - counts
    picks = [np.arange(starts[i], starts[i] + counts[i]) for i in order]
    index = np.concatenate(picks) if picks else np.empty(0, np.int64)
    return segments[order].copy(), blocks[index].copy()


def page_pool_nbytes(int device):
    """Return the bytes of pages that are reserved but back no segment."""
    cdef DeviceAllocator* a = allocator_find(device)
    return 0 if a == NULL else a.page_pool_nbytes


assert VALUES == len(STATISTICS_KEYS) and OVERSIZE_FIRST == STAT_TYPES * 12
assert SCALAR_FIRST == OVERSIZE_FIRST + 8
