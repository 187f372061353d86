"""The raw records of pinned host memory for snapshots: its segments and their blocks."""


def pinned_devices():
    """Return the numbers of the open devices that have a pool of pinned memory."""
    return [index - HOST_DEVICES for index in range(MAX_DEVICES)
            if pinned_pool_peek(index - HOST_DEVICES) != NULL]


cdef void _write_block(BlockRecord* record, Block* block) noexcept nogil:
    memset(record, 0, sizeof(BlockRecord))
    record.address = block.ptr
    record.nbytes = block.nbytes
    record.requested = block.requested
    record.stack = block.stack
    record.state = RECORD_ALLOCATED
    if block.state == BLOCK_FREE:
        record.state = RECORD_INACTIVE
    elif block.state == BLOCK_PENDING:
        record.state = RECORD_PENDING_FREE


# Writes at most as many records as there is room for; gives how many there are.
cdef void _walk(PinnedPool* pool, SegmentRecord* segments, BlockRecord* blocks, size_t segment_room,
                size_t block_room, size_t* segment_count, size_t* block_count) noexcept nogil:
    cdef PinnedSegment* segment = pool.segments
    cdef SegmentRecord record
    cdef Block* block
    segment_count[0] = block_count[0] = 0
    while segment != NULL:
        memset(&record, 0, sizeof(SegmentRecord))
        record.address = segment.first.ptr
        record.stack = segment.stack
        record.device = pool.device
        record.is_large = True
        block = segment.first
        while block != NULL:
            record.nbytes += block.nbytes
            record.n_blocks += 1
            if block_count[0] < block_room:
                _write_block(&blocks[block_count[0]], block)
            block_count[0] += 1
            block = block.next
        if segment_count[0] < segment_room:
            segments[segment_count[0]] = record
        segment_count[0] += 1
        segment = segment.next


def collect_pinned(int device):
    """Return ``(segments, blocks)`` of a device's pinned memory, as arrays of one moment.

    Their dtypes are those of :func:`gputensor._alloc.observe.collect_segments`.
    """
    cdef PinnedPool* pool = pinned_pool_peek(device)
    cdef size_t segment_count = 0
    cdef size_t block_count = 0
    cdef size_t segment_room = 0
    cdef size_t block_room = 0
    cdef SegmentRecord* segments = NULL
    cdef BlockRecord* blocks = NULL
    if pool == NULL:
        return np.empty(0, SEGMENT_DTYPE), np.empty(0, BLOCK_DTYPE)
    while True:
        gt_spin_lock(&pool.lock)
        _walk(pool, segments, blocks, segment_room, block_room, &segment_count, &block_count)
        gt_spin_unlock(&pool.lock)
        if segment_count <= segment_room and block_count <= block_room:
            break
        # Room is made without the lock; new records may need more by then.
        free(segments)
        free(blocks)
        segment_room = segment_count + 64
        block_room = block_count + 256
        segments = <SegmentRecord*>malloc(segment_room * sizeof(SegmentRecord))
        blocks = <BlockRecord*>malloc(block_room * sizeof(BlockRecord))
        if segments == NULL or blocks == NULL:
            free(segments)
            free(blocks)
            raise MemoryError("no host memory for a snapshot")
    try:
        return _arrays((<char*>segments)[:segment_count * sizeof(SegmentRecord)],
                       (<char*>blocks)[:block_count * sizeof(BlockRecord)])
    finally:
        free(segments)
        free(blocks)


def _arrays(bytes segments, bytes blocks):
    return (np.frombuffer(segments, SEGMENT_DTYPE).copy(),
            np.frombuffer(blocks, BLOCK_DTYPE).copy())
