"""The active captures, and the streams that take part in each.

A stream joins a capture by waiting for an event of it, and the driver cannot list the members. The
allocator needs the list, because memory of a joined stream comes from the capture's pool. The
ordering of replays needs it too, since it starts from these streams (graph_streams.pxi). Captures
of other libraries are not listed here.

A capturing stream cannot wait, and others cannot wait for it: both would concern the graph. Others
wait for an event that follows its work from before the capture; its own waits are owed until the
capture ends. Then it also waits for the earlier work and the owed waits of the capture's other
streams.
"""

cdef extern from "gputensor/streams/order/spin_lock.h":
    void spin_acquire(int* capture_lock) noexcept nogil
    void spin_release(int* capture_lock) noexcept nogil
    int count_read(const int* count) noexcept nogil
    void count_change(int* count, int by) noexcept nogil

# A wait to make when a capture is over.
cdef struct Owed:
    uint64_t stream             # the stream to wait for
    uint64_t event              # after the latest work to wait for

# One stream's part in a capture.
cdef struct Part:
    uint64_t stream
    uint64_t before             # event after its work when it joined; 0: not known
    Owed* owed
    int owed_count

cdef struct Capture:
    int device
    uint64_t id
    uint64_t pool_id
    Part* parts                 # the first is of the stream on which the capture began
    int count
    int capacity
    Captured* captured          # bodies and conditions
    PoolHold* holds             # of bodies
    Capture* next

cdef Capture* captures = NULL       # guarded by capture_lock, with everything reachable from it
cdef int active = 0                 # the length of that list; read without the capture_lock
cdef int capture_lock = 0

# No stream's handle: the stream waited for several.
cdef uint64_t CAPTURE_SEVERAL = <uint64_t>-1


cdef int captures_active() noexcept nogil:
    return count_read(&active)


cdef int capture_started(int device, uint64_t capture_id, uint64_t pool_id, uint64_t stream,
                         uint64_t before, bint is_private) except -1:
    global captures
    cdef Capture* capture = <Capture*>malloc(sizeof(Capture))
    if capture == NULL:
        raise MemoryError
    capture[0] = Capture(device, capture_id, pool_id, NULL, 0, 0, NULL, NULL, NULL)
    if add_part(capture, stream, before) < 0 or not graph_stream_retain(device, stream, is_private):
        free(capture.parts)
        free(capture)
        raise MemoryError
    capture.captured = new Captured()
    spin_acquire(&capture_lock)
    capture.next = captures
    captures = capture
    count_change(&active, 1)
    spin_release(&capture_lock)
    return 0


# ---- streams that join ----

cdef status_t capture_joining(int device, uint64_t stream, uint64_t* before) noexcept nogil:
    cdef uint64_t capture_id
    before[0] = 0
    # The default stream never captures.
    if stream == 0 or capture_of_stream(device, stream, &capture_id):
        return STATUS_OK
    return event_behind(device, stream, before)


cdef void capture_joined(int device, uint64_t stream, uint64_t before) noexcept nogil:
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
    if added <= 0 and before:
        event_return(device, before)
    if added > 0:
        graph_stream_retain(device, stream, False)
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
cdef int add_part(Capture* capture, uint64_t stream, uint64_t before) noexcept nogil:
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
    capture.parts[capture.count] = Part(stream, before, NULL, 0)
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


cdef status_t capture_wait_before(int device, uint64_t waiter, uint64_t other) noexcept nogil:
    cdef Driver* driver = driver_get(device)
    cdef Part* part
    cdef status_t status = STATUS_OK
    cdef uint64_t event = 0
    cdef int i = -1
    # The index -1 stands for `before`, which precedes the owed events.
    while status == STATUS_OK:
        spin_acquire(&capture_lock)
        part = find_part(device, other)
        if part == NULL or i == part.owed_count:
            spin_release(&capture_lock)
            break
        event = part.before
        if i >= 0:
            event = 0 if part.owed[i].stream == waiter else part.owed[i].event
        spin_release(&capture_lock)
        if event:
            status = driver.stream_wait_event(driver.self, waiter, event)
        i += 1
    return status


cdef status_t capture_owe(int device, uint64_t other, uint64_t stream) noexcept nogil:
    cdef uint64_t event = 0
    cdef status_t status = event_behind(device, stream, &event)
    cdef uint64_t former = event
    replay_came(device, other)
    if status == STATUS_OK:
        spin_acquire(&capture_lock)
        status = add_owed(find_part(device, other), stream, event, &former)
        spin_release(&capture_lock)
    if former:
        event_return(device, former)
    return status


cdef status_t add_owed(Part* part, uint64_t stream, uint64_t event,
                       uint64_t* former) noexcept nogil:
    # A later event of the same stream replaces an earlier one, which is returned in `former`.
    cdef Owed* owed
    cdef int i
    if part == NULL:
        return STATUS_OK        # another library's capture: the program orders it
    for i in range(part.owed_count):
        if part.owed[i].stream == stream:
            former[0] = part.owed[i].event
            part.owed[i].event = event
            return STATUS_OK
    owed = <Owed*>realloc(part.owed, (part.owed_count + 1) * sizeof(Owed))
    if owed == NULL:
        return STATUS_OUT_OF_MEMORY
    part.owed = owed
    owed[part.owed_count] = Owed(stream, event)
    part.owed_count += 1
    former[0] = 0
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
        count_change(&active, -1)
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
    captured[0] = capture.captured[0]
    while holds[0] != NULL:
        holds = &holds[0].next
    holds[0] = capture.holds
    return_events(device, capture)
    drop(capture)
    return streams


cdef status_t pay(int device, Capture* capture, int at) noexcept nogil:
    # Logs take the edges of the capture for waits of its streams. So each stream waits for its own
    # owed events, and for the others' earlier work and owed events.
    cdef Driver* driver = driver_get(device)
    cdef uint64_t stream = capture.parts[at].stream
    cdef uint64_t capture_id
    cdef uint64_t waited_for = stream
    # A capture that the driver did not end is left intact.
    cdef bint goes_on = capture_of_stream(device, stream, &capture_id)
    cdef status_t status = STATUS_OK
    cdef Part* part
    cdef Owed* owed
    cdef int i, j
    for i in range(capture.count):
        part = &capture.parts[i]
        if i != at and part.before and driver.event_query(driver.self, part.before) != STATUS_OK:
            waited_for = CAPTURE_SEVERAL
            if not goes_on and status == STATUS_OK:
                status = driver.stream_wait_event(driver.self, stream, part.before)
        for j in range(part.owed_count):
            owed = &part.owed[j]
            if owed.stream == stream:
                continue
            waited_for = owed.stream if waited_for in (stream, owed.stream) else CAPTURE_SEVERAL
            if not goes_on and status == STATUS_OK:
                status = driver.stream_wait_event(driver.self, stream, owed.event)
    if waited_for != stream:
        graph_stream_waited(device, stream, waited_for)
    return status


cdef void return_events(int device, Capture* capture) noexcept nogil:
    cdef int i, j
    for i in range(capture.count):
        for j in range(capture.parts[i].owed_count):
            event_return(device, capture.parts[i].owed[j].event)
        if capture.parts[i].before:
            event_return(device, capture.parts[i].before)


cdef void drop(Capture* capture) noexcept nogil:
    cdef int i
    for i in range(capture.count):
        free(capture.parts[i].owed)
    free(capture.parts)
    del capture.captured
    free(capture)


# Drops the captures of a device that closes.
cdef void forget_captures(int device) noexcept nogil:
    cdef Capture* capture = take(device, 0)
    while capture != NULL:
        drop(capture)
        capture = take(device, 0)


cdef void captures_fork() noexcept nogil:
    # The captures are the parent's; the list may have been in the middle of a change.
    global captures, active, capture_lock
    captures = NULL
    active = 0
    capture_lock = 0
