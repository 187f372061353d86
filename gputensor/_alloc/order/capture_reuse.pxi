"""Reuse inside a capture of blocks that several streams used (graph_capture_record_stream_reuse).

A block freed during a capture with uses on other streams cannot wait for events: nothing runs yet.
But the graph defines an order. When the block is freed, every stream that used it stands at some
nodes of the graph; all its uses are those nodes or come before them. A request on a stream whose
next work comes after all these nodes may reuse the block: every launch has done its uses by then.

The block must belong to the capture's pool, and all its streams must take part in the capture: the
graph does not order work outside it. Only a miss searches for such blocks, because walking back
through a graph takes time in proportion to its size. Other blocks wait for the end of the capture,
as without the option.
"""

# The capture that a stream takes part in; 0: none, or one that is broken.
cdef uint64_t _capture_of(DeviceAllocator* a, uint64_t stream) noexcept nogil:
    cdef Driver* driver = a.driver
    cdef int active = 0
    cdef uint64_t capture_id = 0
    if driver.capture_info(driver.self, stream, &active, &capture_id) != STATUS_OK or active != 1:
        return 0
    return capture_id


# Adds the nodes that a stream of the capture stands at. False: they are not available.
cdef bint _add_nodes(DeviceAllocator* a, CaptureReuse* record, uint64_t stream) noexcept nogil:
    cdef Driver* driver = a.driver
    cdef uint64_t none = 0
    cdef int count = 0
    cdef int room = 0
    if _capture_of(a, stream) != record.capture_id:
        return False
    if driver.capture_nodes(driver.self, stream, &none, 0, &count) != STATUS_OK:
        return False
    room = count
    nodes = <uint64_t*>realloc(record.nodes, (record.count + room + 1) * sizeof(uint64_t))
    if nodes == NULL:
        return False
    record.nodes = nodes
    if (driver.capture_nodes(driver.self, stream, &nodes[record.count], room, &count)
            != STATUS_OK or count != room):
        return False
    record.count += count
    return True


cdef void _drop(CaptureReuse* record) noexcept nogil:
    free(record.nodes)
    free(record)


# Whether a capture takes memory from these pools.
cdef bint _is_filled(DeviceAllocator* a, PrivatePool* pool) noexcept nogil:
    cdef PoolScope* scope
    for scope in each(a.scopes):
        if not scope.by_thread and scope.pool.graph_id == pool.graph_id:
            return True
    return False


# A block with uses was freed during a capture and is in a.deferred: notes the nodes that have to
# come before its next use, if the option is on and the capture names them.
cdef void capture_reuse_note(DeviceAllocator* a, Block* block) noexcept nogil:
    cdef StreamUse* use
    cdef bint is_known
    if (not a.config.graph_capture_record_stream_reuse or block.pool == NULL
            or block.pool.owner == NULL or not _is_filled(a, block.pool.owner)):
        return
    record = <CaptureReuse*>calloc(1, sizeof(CaptureReuse))
    if record == NULL:
        return
    record.block = block
    record.capture_id = _capture_of(a, block.stream)
    is_known = record.capture_id != 0 and _add_nodes(a, record, block.stream)
    for use in each(block.uses):
        is_known = is_known and _add_nodes(a, record, use.stream)
    if not is_known:
        _drop(record)
        return
    row_push(&a.capture_reuses, record)


# The block is free for the next work of `stream`.
cdef void _give_back(DeviceAllocator* a, Block* block, uint64_t stream) noexcept nogil:
    cdef Block** cell = &a.deferred
    while cell[0] != block:
        cell = &cell[0].link_next
    cell[0] = block.link_next
    block.link_next = NULL
    while block.uses != NULL:
        free(row_pop(&block.uses))
    account_pending(a, block, -1)
    block_event_completed(block)
    block.stream = stream
    block.state = BLOCK_HELD
    pool_give(block)


# Whether a record is of this capture, and its block of the pool's pair.
cdef inline bint _belongs(CaptureReuse* record, BlockPool* pool,
                          uint64_t capture_id) noexcept nogil:
    return record.capture_id == capture_id and record.block.pool.owner == pool.owner


# Sets a byte of `follows` for each node of the records that belong here, in their order: whether
# the next work of the stream comes after it.
cdef bint _capture_reuse_query(DeviceAllocator* a, BlockPool* pool, uint64_t stream,
                               uint64_t capture_id, int count, uint8_t* follows) noexcept nogil:
    cdef CaptureReuse* record
    cdef Driver* driver = a.driver
    cdef uint64_t* nodes = <uint64_t*>malloc((count + 1) * sizeof(uint64_t))
    cdef int i, at = 0
    cdef bint is_answered
    if nodes == NULL:
        return False
    for record in each(a.capture_reuses):
        if _belongs(record, pool, capture_id):
            for i in range(record.count):
                nodes[at] = record.nodes[i]
                at += 1
    nodes[count] = 0
    is_answered = driver.capture_follows(driver.self, stream, nodes, count, follows) == STATUS_OK
    free(nodes)
    return is_answered


cdef bint capture_reuse_collect(DeviceAllocator* a, BlockPool* pool,
                                uint64_t stream) noexcept nogil:
    cdef CaptureReuse** cell = &a.capture_reuses
    cdef CaptureReuse* record
    cdef uint64_t capture_id
    cdef int i, count = 0, at = 0
    cdef bint is_free, found = False
    if a.capture_reuses == NULL or pool.owner == NULL:
        return False
    capture_id = _capture_of(a, stream)
    for record in each(a.capture_reuses):
        count += record.count if _belongs(record, pool, capture_id) else 0
    follows = <uint8_t*>calloc(count + 1, 1)
    if (capture_id == 0 or follows == NULL
            or not _capture_reuse_query(a, pool, stream, capture_id, count, follows)):
        free(follows)
        return False
    while cell[0] != NULL:
        record = cell[0]
        is_free = _belongs(record, pool, capture_id)
        if is_free:
            for i in range(record.count):
                is_free = is_free and follows[at + i]
            at += record.count
        if is_free:
            cell[0] = record.next
            _give_back(a, record.block, stream)
            _drop(record)
            found = True
        else:
            cell = &record.next
    free(follows)
    return found


# The captures are over: events decide from now on.
cdef void capture_reuse_forget(DeviceAllocator* a) noexcept nogil:
    while a.capture_reuses != NULL:
        _drop(row_pop(&a.capture_reuses))
