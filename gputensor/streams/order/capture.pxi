"""The active captures, and the streams that take part in each.

A stream joins a capture by waiting for an event of it, and the driver cannot list the members. The
allocator needs the list, because memory of a joined stream comes from the capture's pool. The
ordering of replays needs it too, since it starts from these streams (graph_streams.pxi). Captures
of other libraries are not listed here.

A capturing stream cannot wait, and others cannot wait for it: both would concern the graph. Others
wait for a mark that follows its work from before the capture; its own waits are owed until the
capture ends. Then it also waits for the earlier work and the owed waits of the capture's other
streams. A private stream needs neither: its waits are in its record (graph_streams.pxi).
"""

cdef extern from "gputensor/streams/order/spin_lock.h":
    void spin_acquire(int* capture_lock) noexcept nogil
    void spin_release(int* capture_lock) noexcept nogil
    int count_read(const int* count) noexcept nogil
    void count_change(int* count, int by) noexcept nogil

# One stream's part in a capture.
cdef struct Part:
    uint64_t stream
    uint64_t joined             # the moment; stamps of uses before are not later (waited.pxi)
    Mark* before                # its work when it joined; NULL: not known, or it is private
    Mark** owed                 # the replays to wait for when the capture is over
    int owed_count

cdef struct Capture:
    int device
    uint64_t id
    uint64_t pool_id
    Part* parts                 # the first is of the stream on which the capture began
    int count
    int capacity
    Captured* captured          # bodies and conditions
    CaptureMemory* memory       # graph_memory.pxi
    PoolHold* holds             # of bodies
    Capture* next

cdef Capture* captures = NULL       # guarded by capture_lock, with everything reachable from it
cdef int capture_lock = 0

# What uses of memory have to look at, read without a lock: 1 if any thread has chosen to check
# (check.pxi), and 2 for each capture in that list.
cdef int watched = 0


cdef int captures_active() noexcept nogil:
    return count_read(&watched) >> 1


cdef int capture_started(int device, uint64_t capture_id, uint64_t pool_id, uint64_t stream,
                         Mark* before) except -1:
    global captures
    cdef Capture* capture = <Capture*>malloc(sizeof(Capture))
    if capture == NULL:
        raise MemoryError
    capture[0] = Capture(device, capture_id, pool_id, NULL, 0, 0, NULL, NULL, NULL, NULL)
    if add_part(capture, stream, before) < 0 or not graph_stream_retain(device, stream):
        free(capture.parts)
        free(capture)
        mark_drop(device, before)
        raise MemoryError
    capture.captured = new Captured()
    capture.memory = new CaptureMemory(capture_id, pool_id)
    spin_acquire(&capture_lock)
    live_captures(device).insert(capture_id)
    capture.next = captures
    captures = capture
    count_change(&watched, 2)
    spin_release(&capture_lock)
    return 0


# ---- streams that join ----

cdef status_t capture_joining(int device, uint64_t stream, Mark** before) noexcept nogil:
    cdef uint64_t capture_id
    before[0] = NULL
    # The default stream never captures.
    if stream == 0 or capture_of_stream(device, stream, &capture_id):
        return STATUS_OK
    return mark_before(device, stream, before)


cdef status_t mark_before(int device, uint64_t stream, Mark** before) noexcept nogil:
    before[0] = NULL
    return (STATUS_OK if graph_stream_is_private(device, stream)
            else mark_behind(device, stream, before))


cdef void capture_joined(int device, uint64_t stream, Mark* before) noexcept nogil:
    cdef Capture* capture = NULL
    cdef uint64_t capture_id
    cdef uint64_t pool_id = 0
    cdef int added = 0
    if capture_of_stream(device, stream, &capture_id):
        spin_acquire(&capture_lock)
        capture = find_capture(device, capture_id)
        if capture != NULL:
            # Without memory for the entry, the program has to order this stream and keep its
            # memory.
            added = add_part(capture, stream, before)
            pool_id = capture.pool_id
        spin_release(&capture_lock)
    if added <= 0:
        mark_drop(device, before)
    if added > 0:
        graph_stream_retain(device, stream)
        pool_begin(device, pool_id, stream)


cdef bint capture_of_stream(int device, uint64_t stream, uint64_t* capture_id) noexcept nogil:
    cdef Driver* driver = driver_get(device)
    cdef int is_capturing = 0
    capture_id[0] = 0
    return (driver.capture_info(driver.self, stream, &is_capturing, capture_id) == STATUS_OK
            and is_capturing)


# The caller holds the lock.
cdef Capture* find_capture(int device, uint64_t capture_id) noexcept nogil:
    cdef Capture* capture = captures
    while capture != NULL and (capture.device != device or capture.id != capture_id):
        capture = capture.next
    return capture


# Returns 1: added, 0: the stream was there, -1: no memory.
cdef int add_part(Capture* capture, uint64_t stream, Mark* before) noexcept nogil:
    cdef Part* parts
    cdef int i
    for i in range(capture.count):
        if capture.parts[i].stream == stream:
            return 0
    if capture.count == capture.capacity:
        parts = <Part*>realloc(capture.parts, (capture.count + 8) * sizeof(Part))
        if parts == NULL:
            return -1
        capture.parts = parts
        capture.capacity = capture.count + 8
    capture.parts[capture.count] = Part(stream, wait_begun(), before, NULL, 0)
    capture.count += 1
    return 1


# ---- order with work outside ----

cdef Part* find_part(int device, uint64_t stream) noexcept nogil:
    cdef Capture* capture = captures
    cdef int i
    while capture != NULL:
        for i in range(capture.count):
            if capture.device == device and capture.parts[i].stream == stream:
                return &capture.parts[i]
        capture = capture.next
    return NULL


# Whether a use on a stream was before the capture that the stream takes part in now. Replays of the
# capture's graph come after all such work of its streams.
cdef bint is_before_capture(int device, uint64_t stream, uint64_t used) noexcept nogil:
    cdef Part* part
    cdef bint is_before
    spin_acquire(&capture_lock)
    part = find_part(device, stream)
    is_before = part != NULL and used <= part.joined
    spin_release(&capture_lock)
    return is_before


cdef status_t capture_wait_before(int device, uint64_t waiter, uint64_t other) noexcept nogil:
    cdef vector[Mark*] marks
    cdef Part* part
    cdef bint is_complete = True
    cdef int i
    if graph_stream_is_private(device, other):
        return wait_for_private(device, waiter, other)
    spin_acquire(&capture_lock)
    part = find_part(device, other)
    if part != NULL:
        if part.before != NULL:
            is_complete = waits_add_one(marks, part.before, waiter)
        for i in range(part.owed_count):
            is_complete = is_complete and waits_add_one(marks, part.owed[i], waiter)
    spin_release(&capture_lock)
    return wait_for_marks(device, waiter, marks,
                          STATUS_OK if is_complete else STATUS_OUT_OF_MEMORY)


cdef status_t capture_owe(int device, uint64_t other, Mark* mark) noexcept nogil:
    cdef Mark* former = NULL
    cdef status_t status
    replay_came(device, other)
    spin_acquire(&capture_lock)
    status = add_owed(find_part(device, other), mark, &former)
    spin_release(&capture_lock)
    mark_drop(device, former)
    return status


cdef status_t add_owed(Part* part, Mark* mark, Mark** former) noexcept nogil:
    # A later mark of the same stream replaces an earlier one, which is returned in `former`.
    cdef Mark** owed
    cdef int i
    if part == NULL:
        return STATUS_OK        # another library's capture: the program orders it
    for i in range(part.owed_count):
        if part.owed[i].stream == mark.stream:
            former[0] = part.owed[i]
            mark_hold(mark)
            part.owed[i] = mark
            return STATUS_OK
    owed = <Mark**>realloc(part.owed, (part.owed_count + 1) * sizeof(Mark*))
    if owed == NULL:
        return STATUS_OUT_OF_MEMORY
    part.owed = owed
    mark_hold(mark)
    owed[part.owed_count] = mark
    part.owed_count += 1
    return STATUS_OK


# ---- bodies of conditions: captures of their own, on streams of their own ----

cdef uint64_t capture_pool(int device, uint64_t stream, uint64_t* capture_id) noexcept nogil:
    cdef Capture* capture
    cdef uint64_t pool_id = 0
    if capture_of_stream(device, stream, capture_id):
        spin_acquire(&capture_lock)
        capture = find_capture(device, capture_id[0])
        if capture != NULL:
            pool_id = capture.pool_id
        spin_release(&capture_lock)
    return pool_id


cdef int capture_add_condition(int device, uint64_t capture_id, uint64_t condition) except -1:
    cdef Capture* capture
    spin_acquire(&capture_lock)
    capture = find_capture(device, capture_id)
    if capture != NULL:
        capture.captured.conditions.push_back(condition)
    spin_release(&capture_lock)
    return 0


cdef status_t capture_add_inner(int device, uint64_t stream, list members) except? 1:
    # A replay of the capture's graph uses the memory of those graphs, so their streams are its own.
    cdef status_t status = STATUS_OK
    cdef uint64_t capture_id, member
    for member in members:
        if capture_of_stream(device, stream, &capture_id):
            spin_acquire(&capture_lock)
            if not add_inner(find_capture(device, capture_id), member):
                status = STATUS_OUT_OF_MEMORY
            spin_release(&capture_lock)
    return status


cdef bint add_inner(Capture* capture, uint64_t member) noexcept nogil:
    cdef size_t i
    if capture == NULL:
        return True             # another library's capture: the program orders it
    for i in range(capture.captured.inner.size()):
        if capture.captured.inner[i] == member:
            return True
    if not appended(capture.captured.inner, member):
        return False
    if graph_stream_retain(capture.device, member):
        return True
    capture.captured.inner.pop_back()
    return False


cdef status_t capture_body_began(int device, uint64_t capture_id, uint64_t stream,
                                 uint64_t body) except? 1:
    cdef Capture* capture
    cdef uint64_t pool_id = 0
    spin_acquire(&capture_lock)
    capture = find_capture(device, capture_id)
    if capture != NULL:
        pool_id = capture.pool_id
        capture.captured.graphs.push_back(body)
    spin_release(&capture_lock)
    return pool_begin(device, pool_id, stream)


cdef void capture_body_ended(int device, uint64_t capture_id, uint64_t stream) noexcept nogil:
    cdef Capture* capture
    cdef PoolHold* holds = NULL
    cdef PoolHold** end
    cdef uint64_t pool_id = 0
    spin_acquire(&capture_lock)
    capture = find_capture(device, capture_id)
    if capture != NULL:
        pool_id = capture.pool_id
    spin_release(&capture_lock)
    pool_end(device, pool_id, stream, &holds)
    # The graph still holds the pool.
    pool_release_capture(device, pool_id)
    spin_acquire(&capture_lock)
    capture = find_capture(device, capture_id)
    if capture != NULL:
        end = &capture.holds
        while end[0] != NULL:
            end = &end[0].next
        end[0] = holds
    spin_release(&capture_lock)


# ---- the end ----

cdef Capture* take(int device, uint64_t capture_id) noexcept nogil:
    # Takes the capture off the list; an id of 0 takes any capture of the device. NULL: none.
    cdef Capture** link = &captures
    cdef Capture* capture
    spin_acquire(&capture_lock)
    while link[0] != NULL and (link[0].device != device
                               or (capture_id and link[0].id != capture_id)):
        link = &link[0].next
    capture = link[0]
    if capture != NULL:
        link[0] = capture.next
        count_change(&watched, -2)
    spin_release(&capture_lock)
    return capture


cdef list capture_finished(int device, uint64_t capture_id, status_t* waits, PoolHold** holds,
                           Captured* captured):
    cdef Capture* capture = take(device, capture_id)
    cdef list streams = []
    cdef status_t status
    cdef int i
    waits[0] = STATUS_OK
    if capture == NULL:
        return streams
    for i in range(capture.count):
        streams.append(capture.parts[i].stream)
        if i > 0:
            # pool_begin counted this stream as a holder; only the graph stays one.
            pool_end(device, capture.pool_id, capture.parts[i].stream, holds)
            pool_release_capture(device, capture.pool_id)
        status = pay(device, capture, i)
        if status != STATUS_OK:
            waits[0] = status
    if not capture.memory.finish(capture.captured[0]):
        waits[0] = STATUS_OUT_OF_MEMORY
    captured[0] = capture.captured[0]
    streams += list(captured.inner)
    while holds[0] != NULL:
        holds = &holds[0].next
    holds[0] = capture.holds
    drop(capture)
    return streams


cdef status_t pay(int device, Capture* capture, int at) noexcept nogil:
    # Logs take the edges of the capture for waits of its streams. So each stream waits for its own
    # owed replays, and for the others' earlier work and owed replays.
    cdef uint64_t stream = capture.parts[at].stream
    cdef uint64_t capture_id
    cdef vector[Mark*] marks
    cdef status_t status = STATUS_OK
    cdef Part* part
    cdef bint is_complete = True
    cdef int i, j
    for i in range(capture.count):
        part = &capture.parts[i]
        if i != at:
            if graph_stream_is_private(device, part.stream):
                status = private_marks(device, part.stream, stream, marks)
            elif part.before != NULL and not is_over(device, part.before):
                is_complete = waits_add_one(marks, part.before, stream) and is_complete
        for j in range(part.owed_count):
            is_complete = waits_add_one(marks, part.owed[j], stream) and is_complete
        if status != STATUS_OK or not is_complete:
            drop_all(device, marks)
            return STATUS_OUT_OF_MEMORY
    if not marks.size():
        return STATUS_OK
    replay_came(device, stream)
    if graph_stream_is_private(device, stream):
        for i in range(<int>marks.size()):
            if status == STATUS_OK:
                status = private_follows(device, stream, marks[i])
        drop_all(device, marks)
    elif capture_of_stream(device, stream, &capture_id):
        drop_all(device, marks)     # a capture that the driver did not end is left intact
    else:
        status = wait_for_marks(device, stream, marks, status)
    return status


cdef bint is_over(int device, Mark* mark) noexcept nogil:
    cdef Driver* driver = driver_get(device)
    return driver.event_query(driver.self, mark.event) == STATUS_OK


cdef void drop(Capture* capture) noexcept nogil:
    cdef int i, j
    for i in range(capture.count):
        for j in range(capture.parts[i].owed_count):
            mark_drop(capture.device, capture.parts[i].owed[j])
        mark_drop(capture.device, capture.parts[i].before)
        free(capture.parts[i].owed)
    free(capture.parts)
    if order_checked():
        check_forget_capture(capture.device, capture.id)
    del capture.memory
    del capture.captured
    free(capture)


# Drops the captures of a device that closes.
cdef void forget_captures(int device) noexcept nogil:
    cdef Capture* capture = take(device, 0)
    while capture != NULL:
        drop(capture)
        capture = take(device, 0)
    forget_live_captures(device)


cdef void captures_fork() noexcept nogil:
    # The captures are the parent's; the list may have been in the middle of a change.
    global captures, watched, capture_lock
    cdef int i
    for i in range(MAX_DEVICES):
        live_tables[i] = NULL
    captures = NULL
    watched &= 1
    capture_lock = 0
