"""The streams that have to be ordered with the replays of a graph.

A replay reads and writes memory without updating the UseLogs of that memory. But the logs of all
memory that the capture used name a stream of the graph. So every other stream that later uses such
memory finds that name at its first use, since the fast path of the log does not apply, and is noted
here as a user. Each replay starts after the work of the graph's streams and their users, its peers,
and the peers wait for it. DESIGN.md proves that this suffices.

A private stream was made for captures, and nothing else is queued on it. So a wait for one and a
wait on one make no driver call: its record keeps the marks of the replays that it would wait for,
and a stream that would wait for it waits for those of them that other streams ran.
"""

cdef extern from "gputensor/streams/order/spin_lock.h":
    void spin_acquire(int* graph_streams_lock) noexcept nogil
    void spin_release(int* graph_streams_lock) noexcept nogil
    int count_read(const int* count) noexcept nogil
    void count_change(int* count, int by) noexcept nogil

# The records of each device and everything reachable from them are guarded by graph_streams_lock.
# The counts are read without the lock.
cdef StreamTable* stream_tables[MAX_DEVICES]
cdef int member_count = 0           # the records of streams that take part in a graph or capture
cdef int member_changes = 0         # how often a stream became one of them
cdef int private_count = 0
cdef uint64_t visits = 0
cdef int graph_streams_lock = 0


# The number of streams of graphs; callers skip the rest when it is 0.
cdef int graph_streams_count() noexcept nogil:
    return count_read(&member_count)


# The caller holds the lock.
cdef GraphStream* graph_stream_find(int device, uint64_t stream) noexcept nogil:
    cdef StreamTable* table = stream_tables[device + HOST_DEVICES]
    if table == NULL:
        return NULL
    return table.find(stream)


# The same, with a new record if there is none. NULL without memory.
cdef GraphStream* graph_stream_record(int device, uint64_t stream) noexcept nogil:
    cdef StreamTable** table = &stream_tables[device + HOST_DEVICES]
    if table[0] == NULL:
        table[0] = new StreamTable()
    return table[0].make(stream)


# Returns False without memory.
cdef bint graph_stream_retain(int device, uint64_t stream) noexcept nogil:
    cdef GraphStream* found
    spin_acquire(&graph_streams_lock)
    found = graph_stream_record(device, stream)
    if found != NULL:
        if found.graphs == 0:
            count_change(&member_count, 1)
            count_change(&member_changes, 1)
        found.graphs += 1
    spin_release(&graph_streams_lock)
    return found != NULL


cdef void graph_stream_release(int device, uint64_t stream) noexcept nogil:
    cdef GraphStream* found
    spin_acquire(&graph_streams_lock)
    found = graph_stream_find(device, stream)
    if found != NULL and found.graphs > 0:
        found.graphs -= 1
        if found.graphs == 0:
            count_change(&member_count, -1)
            found.users.clear()
    spin_release(&graph_streams_lock)


# Notes that `stream` uses memory that `other` used before, if `other` is a graph's stream.
cdef void graph_stream_touch(int device, uint64_t other, uint64_t stream) noexcept nogil:
    cdef GraphStream* found
    cdef GraphStream* user
    if other == stream:
        return
    spin_acquire(&graph_streams_lock)
    found = graph_stream_find(device, other)
    if found != NULL and found.graphs > 0:
        user = graph_stream_record(device, stream)
        # Without memory for the note, the program has to order this stream with replays.
        if user != NULL and not has_user(found, user):
            appended(found.users, user)
    spin_release(&graph_streams_lock)


# Drops the records of a device that closes; their events go back to the pool.
cdef void forget_graph_streams(int device) noexcept nogil:
    cdef StreamTable* table = stream_tables[device + HOST_DEVICES]
    cdef Mark* mark
    if table == NULL:
        return
    spin_acquire(&graph_streams_lock)
    stream_tables[device + HOST_DEVICES] = NULL
    count_change(&member_count, -table.member_count())
    count_change(&private_count, -table.private_count())
    spin_release(&graph_streams_lock)
    mark = table.take_mark()
    while mark != NULL:
        mark_drop(device, mark)
        mark = table.take_mark()
    del table


cdef void graph_streams_fork() noexcept nogil:
    # The graphs are the parent's; the records may have been in the middle of a change.
    global member_count, private_count, graph_streams_lock
    cdef int i
    for i in range(MAX_DEVICES):
        stream_tables[i] = NULL
    member_count = private_count = graph_streams_lock = 0


# ---- private streams ----

cdef int graph_stream_made(int device, uint64_t stream) except -1:
    cdef GraphStream* found
    spin_acquire(&graph_streams_lock)
    found = graph_stream_find(device, stream)
    if found == NULL:
        found = graph_stream_record(device, stream)
        if found != NULL:
            found.is_private = True
            count_change(&private_count, 1)
    spin_release(&graph_streams_lock)
    return 0        # without memory, it is ordered like any other stream


cdef bint graph_stream_is_private(int device, uint64_t stream) noexcept nogil:
    cdef GraphStream* found
    cdef bint is_private
    if not count_read(&private_count):
        return False
    spin_acquire(&graph_streams_lock)
    found = graph_stream_find(device, stream)
    is_private = found != NULL and found.is_private
    spin_release(&graph_streams_lock)
    return is_private


# The latest moment of a replay that a private stream comes after; the last of all without memory.
cdef uint64_t private_moment(int device, uint64_t stream) noexcept nogil:
    cdef vector[Mark*] marks
    cdef uint64_t latest = 0
    cdef size_t i
    if private_marks(device, stream, ORDERING_SEVERAL, marks) != STATUS_OK:
        latest = <uint64_t>-1
    for i in range(marks.size()):
        latest = max(latest, marks[i].moment)
    drop_all(device, marks)
    return latest


# Holds the marks that `waiter` has to wait for in order to come after a private stream.
cdef status_t private_marks(int device, uint64_t stream, uint64_t waiter,
                            vector[Mark*]& marks) noexcept nogil:
    cdef GraphStream* found
    cdef bint is_complete = True
    spin_acquire(&graph_streams_lock)
    found = graph_stream_find(device, stream)
    if found != NULL:
        is_complete = waits_add(marks, found, waiter)
    spin_release(&graph_streams_lock)
    return STATUS_OK if is_complete else STATUS_OUT_OF_MEMORY


cdef status_t wait_for_private(int device, uint64_t waiter, uint64_t stream) noexcept nogil:
    cdef vector[Mark*] marks
    cdef status_t status = private_marks(device, stream, waiter, marks)
    return wait_for_marks(device, waiter, marks, status)


# Makes the waits unless `status` is an error already, and lets the marks go.
cdef status_t wait_for_marks(int device, uint64_t waiter, vector[Mark*]& marks,
                             status_t status) noexcept nogil:
    cdef Driver* driver = driver_get(device)
    cdef size_t i
    for i in range(marks.size()):
        if status == STATUS_OK:
            status = driver.stream_wait_event(driver.self, waiter, marks[i].event)
    drop_all(device, marks)
    return status


cdef void drop_all(int device, vector[Mark*]& marks) noexcept nogil:
    cdef size_t i
    for i in range(marks.size()):
        mark_drop(device, marks[i])
    marks.clear()


# Whether the replays that a private stream comes after are done, as the status of a query.
cdef status_t query_private(int device, uint64_t stream) noexcept nogil:
    cdef Driver* driver = driver_get(device)
    cdef vector[Mark*] marks
    cdef status_t status = private_marks(device, stream, ORDERING_SEVERAL, marks)
    cdef size_t i
    for i in range(marks.size()):
        if status == STATUS_OK:
            status = driver.event_query(driver.self, marks[i].event)
    drop_all(device, marks)
    return status


# Makes a private stream come after a mark, in addition to the former ones. Each capture of it
# brings a later mark of a stream than the captures before, and keeps only this one.
cdef status_t private_follows(int device, uint64_t stream, Mark* mark) noexcept nogil:
    cdef GraphStream* found
    cdef Mark* former = NULL
    cdef bint is_noted = False
    cdef size_t i
    spin_acquire(&graph_streams_lock)
    found = graph_stream_find(device, stream)
    if found != NULL:
        mark_hold(mark)
        for i in range(found.more.size()):
            if mark_covers(mark, found.more[i]):
                former = found.more[i]
                found.more[i] = mark
                is_noted = True
                break
        is_noted = is_noted or appended(found.more, mark)
        found.is_given = False
        if not is_noted:
            mark_let_go(mark)       # the caller holds it too
    spin_release(&graph_streams_lock)
    mark_drop(device, former)
    return STATUS_OK if is_noted else STATUS_OUT_OF_MEMORY


# Gives the driver the waits of a private stream that does not capture.
cdef status_t graph_stream_give(int device, uint64_t stream) noexcept nogil:
    cdef GraphStream* found
    cdef vector[Mark*] marks
    cdef status_t status = STATUS_OK
    cdef uint64_t capture_id
    if (not graph_stream_is_private(device, stream)
            or (captures_active() and capture_of_stream(device, stream, &capture_id))):
        return STATUS_OK
    spin_acquire(&graph_streams_lock)
    found = graph_stream_find(device, stream)
    if found != NULL and found.is_private and not found.is_given:
        found.is_given = waits_add(marks, found, stream)
        status = STATUS_OK if found.is_given else STATUS_OUT_OF_MEMORY
    spin_release(&graph_streams_lock)
    status = wait_for_marks(device, stream, marks, status)
    if status != STATUS_OK and found != NULL:
        spin_acquire(&graph_streams_lock)
        found.is_given = False
        spin_release(&graph_streams_lock)
    return status


cdef status_t graph_stream_open(int device, uint64_t stream) noexcept nogil:
    cdef GraphStream* found
    cdef Mark* former = NULL
    cdef vector[Mark*] marks
    cdef uint64_t capture_id
    cdef status_t status
    if (not graph_stream_is_private(device, stream)
            or capture_of_stream(device, stream, &capture_id)):
        return STATUS_OK
    status = graph_stream_give(device, stream)
    if status != STATUS_OK:
        return status
    replay_came(device, stream)
    spin_acquire(&graph_streams_lock)
    found = graph_stream_find(device, stream)
    if found != NULL and found.is_private:
        found.is_private = False
        count_change(&private_count, -1)
        former = found.after
        found.after = NULL
        marks.swap(found.more)
    spin_release(&graph_streams_lock)
    mark_drop(device, former)
    drop_all(device, marks)
    return STATUS_OK


# ---- the peers of a replay ----

cdef int graph_peers(int device, list members, vector[GraphStream*]& peers) except -1:
    global visits
    cdef GraphStream* found
    cdef uint64_t member
    cdef bint is_complete = True
    cdef size_t i
    visits += 1
    for member in members:
        spin_acquire(&graph_streams_lock)
        found = graph_stream_find(device, member)
        if found != NULL:
            is_complete = visit(found, peers) and is_complete
            for i in range(found.users.size()):
                is_complete = visit(found.users[i], peers) and is_complete
        spin_release(&graph_streams_lock)
    if not is_complete:
        raise MemoryError
    return 0


cdef bint visit(GraphStream* found, vector[GraphStream*]& peers) noexcept nogil:
    if found.visit == visits:
        return True
    found.visit = visits
    return appended(peers, found)


cdef status_t graph_peers_wait(int device, uint64_t stream,
                               vector[GraphStream*]& peers) noexcept nogil:
    cdef vector[Mark*] marks
    cdef status_t status = STATUS_OK
    cdef bint is_complete = True
    cdef int captures
    cdef uint64_t capture_id
    cdef size_t i
    spin_acquire(&graph_streams_lock)
    for i in range(peers.size()):
        if peers[i].is_private and is_complete:
            is_complete = waits_add(marks, peers[i], stream)
    spin_release(&graph_streams_lock)
    status = wait_for_marks(device, stream, marks,
                            STATUS_OK if is_complete else STATUS_OUT_OF_MEMORY)
    for i in range(peers.size()):
        if status != STATUS_OK:
            break
        if peers[i].is_private:
            if order_checked():
                check_stream_waits(device, stream, device, peers[i].stream)
            continue
        if peers[i].stream == stream:
            continue
        status = capture_of(driver_get(device), peers[i].stream, &captures, &capture_id)
        if status == STATUS_OK:
            # For a stream that captures now, only its work from before the capture runs.
            if captures:
                status = capture_wait_before(device, stream, peers[i].stream)
            else:
                status = stream_wait_stream(device, stream, peers[i].stream)
    return status


cdef status_t graph_peers_follow(int device, uint64_t stream, Mark* mark,
                                 vector[GraphStream*]& peers) noexcept nogil:
    cdef Driver* driver = driver_get(device)
    cdef status_t status = STATUS_OK
    cdef GraphStream* peer
    cdef int captures
    cdef uint64_t capture_id
    cdef size_t i
    private_peers_follow(device, mark, peers)
    for i in range(peers.size()):
        peer = peers[i]
        if status != STATUS_OK:
            break
        if peer.is_private:
            continue
        if peer.stream == stream:
            # The logs of memory of this graph may name it as a stream of the graph.
            if peer.graphs:
                replay_came(device, stream)
            continue
        status = capture_of(driver, peer.stream, &captures, &capture_id)
        if status == STATUS_OK and captures:
            # A capturing stream cannot wait now; it waits when its capture is over.
            status = capture_owe(device, peer.stream, mark)
        elif status == STATUS_OK:
            status = driver.stream_wait_event(driver.self, peer.stream, mark.event)
            if status == STATUS_OK:
                replay_came(device, peer.stream)
    return status


# The stream that ran the replay waited for all former marks, so the new one stands for them. The
# streams often have one former mark in common.
cdef void private_peers_follow(int device, Mark* mark, vector[GraphStream*]& peers) noexcept nogil:
    cdef Mark* former = NULL
    cdef GraphStream* peer
    cdef int former_count = 0, count = 0
    cdef size_t i
    spin_acquire(&graph_streams_lock)
    for i in range(peers.size()):
        peer = peers[i]
        if not peer.is_private:
            continue
        if peer.after != former:
            mark_drop_some(device, former, former_count)
            former = peer.after
            former_count = 0
        former_count += 1
        count += 1
        peer.after = mark
        peer.is_given = False
        drop_all(device, peer.more)
    mark_drop_some(device, former, former_count)
    mark_hold(mark, count)          # the caller holds it too
    spin_release(&graph_streams_lock)


cdef int graph_peers_done(int device, list members, Mark* mark) except -1:
    cdef GraphStream* found
    cdef uint64_t member
    cdef size_t i
    for member in members:
        spin_acquire(&graph_streams_lock)
        found = graph_stream_find(device, member)
        if found != NULL:
            drop_if_after(device, found, mark)
            for i in range(found.users.size()):
                drop_if_after(device, found.users[i], mark)
        spin_release(&graph_streams_lock)
    return 0


cdef void drop_if_after(int device, GraphStream* record, Mark* mark) noexcept nogil:
    if record.after == mark:
        record.after = NULL
        mark_drop(device, mark)
