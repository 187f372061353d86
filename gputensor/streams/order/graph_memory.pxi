"""The order in a capture between replays of other graphs and uses of their memory.

A replay uses memory without updating the UseLogs of that memory. Outside captures, it is ordered by
streams (graph_streams.pxi). In a capture this would put branches in an order that only have a
stream in common. So a capture keeps an order for each piece of memory that a replay may use: the
memory of a pool, and what another capture used outside of its own pool. A replay is a write there,
and a use by other work of the capture a read. A log lists the captures that used its memory.
DESIGN.md has the rules.
"""

# The captures under way on a device, and those of graphs that exist. Guarded by capture_lock.
cdef LiveCaptures* live_tables[MAX_DEVICES]


cdef LiveCaptures* live_captures(int device) noexcept nogil:
    cdef LiveCaptures** table = &live_tables[device + HOST_DEVICES]
    if table[0] == NULL:
        table[0] = new LiveCaptures()
    return table[0]


cdef void capture_released(int device, uint64_t capture_id) noexcept nogil:
    spin_acquire(&capture_lock)
    live_captures(device).erase(capture_id)
    spin_release(&capture_lock)


cdef void forget_live_captures(int device) noexcept nogil:
    cdef LiveCaptures** table = &live_tables[device + HOST_DEVICES]
    del table[0]
    table[0] = NULL


# The memory in the capture that a stream takes part in; NULL: none of this library. The caller
# holds the lock.
cdef CaptureMemory* memory_of(int device, uint64_t stream) noexcept nogil:
    cdef Capture* capture = captures
    cdef int i
    while capture != NULL:
        if capture.device == device:
            for i in range(capture.count):
                if capture.parts[i].stream == stream:
                    return capture.memory
        capture = capture.next
    return NULL


# Called before each use while `watched` is not 0.
cdef status_t watched_use(UseLog* log, Block* block, uint64_t stream,
                          bint is_write) noexcept nogil:
    cdef bint is_checked = order_checked() and manual_ordering() == CHECKED
    cdef CaptureMemory* memory
    cdef CaptureUses* uses
    cdef uint64_t capture_id = 0
    cdef vector[uint64_t] waits, names
    cdef bint is_complete = True
    cdef status_t status = STATUS_OK
    spin_acquire(&capture_lock)
    memory = memory_of(log.device, stream)
    uses = uses_in(memory, log, block)
    if uses != NULL and (is_checked or not memory.is_known(uses[0], stream, is_write)):
        is_complete = memory.use_waits(uses[0], stream, is_write, waits,
                                       live_captures(log.device)[0])
        if is_checked:
            capture_id = memory.capture_id
            memory.names_of(uses[0], is_write, names)
        if is_complete and (not waits.size() or manual_ordering()):
            is_complete = memory.use_ordered(uses[0], stream, is_write)
            waits.clear()
    spin_release(&capture_lock)
    if not is_complete:
        return STATUS_OUT_OF_MEMORY
    if is_checked:
        return check_use(log, stream, is_write, capture_id, names)
    if not waits.size():
        return STATUS_OK
    status = wait_for_streams(log.device, stream, waits)
    if status == STATUS_OK:
        spin_acquire(&capture_lock)
        memory = memory_of(log.device, stream)
        uses = uses_in(memory, log, block)
        if uses != NULL and not memory.use_ordered(uses[0], stream, is_write):
            status = STATUS_OUT_OF_MEMORY
        spin_release(&capture_lock)
    return status


# The captures that used the memory of a log. Only memory outside of the capture's own pool needs
# its own record.
cdef CaptureUses* uses_in(CaptureMemory* memory, UseLog* log, Block* block) noexcept nogil:
    cdef uint64_t pool_id = 0
    if memory == NULL:
        return NULL
    if log.captures == NULL:
        # A pool with a block in use is not freed, and its numbers do not change.
        if block != NULL and block.pool != NULL and block.pool.owner != NULL:
            pool_id = block.pool.owner.graph_id
        if pool_id == memory.pool_id:
            return &memory.pool_uses
        log.captures = new CaptureUses(pool_id)
    return log.captures


cdef status_t wait_for_streams(int device, uint64_t waiter,
                               vector[uint64_t]& others) noexcept nogil:
    cdef status_t status = STATUS_OK
    cdef size_t i
    for i in range(others.size()):
        if status == STATUS_OK:
            status = stream_wait_stream(device, waiter, others[i])
    return status


cdef status_t captured_replay_waits(int device, uint64_t stream,
                                    const Captured& graph) noexcept nogil:
    cdef CaptureMemory* memory
    cdef vector[uint64_t] waits
    cdef uint64_t capture_id = 0
    cdef bint is_complete = True
    spin_acquire(&capture_lock)
    memory = memory_of(device, stream)
    if memory != NULL:
        is_complete = memory.replay_waits(graph, stream, waits)
        capture_id = memory.capture_id
    spin_release(&capture_lock)
    if memory == NULL or not is_complete:
        return STATUS_OK if is_complete else STATUS_OUT_OF_MEMORY
    if order_checked() and manual_ordering() == CHECKED:
        return check_replay(device, stream, capture_id, graph)
    return STATUS_OK if manual_ordering() else wait_for_streams(device, stream, waits)


cdef void captured_replay_queued(int device, uint64_t stream,
                                 const Captured& graph) noexcept nogil:
    cdef CaptureMemory* memory
    spin_acquire(&capture_lock)
    memory = memory_of(device, stream)
    if memory != NULL:
        memory.replay_queued(graph, stream)
    spin_release(&capture_lock)
