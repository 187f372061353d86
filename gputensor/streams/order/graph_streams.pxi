"""The streams that have to be ordered with the replays of a graph.

A replay reads and writes memory without updating the UseLogs of that memory. But the logs of all
memory that the capture used name a stream of the graph. So every other stream that later uses such
memory finds that name at its first use, since the fast path of the log does not apply, and is noted
here. Each replay starts after the work of the noted streams, and they wait for it. DESIGN.md proves
that this suffices.
"""

cdef extern from "gputensor/streams/order/spin_lock.h":
    void spin_acquire(int* graph_streams_lock) noexcept nogil
    void spin_release(int* graph_streams_lock) noexcept nogil
    int count_read(const int* count) noexcept nogil
    void count_change(int* count, int by) noexcept nogil

cdef struct GraphStream:
    int device
    uint64_t stream
    int holders                 # graphs and captures it takes part in
    bint is_private
    bint has_waited             # it has waited for the end of a replay of any graph
    uint64_t waited_for         # the stream of the latest such replay
    uint64_t* users             # the noted streams
    int count
    int capacity
    GraphStream* next

# The list and everything reachable from it are guarded by graph_streams_lock. Its length is read
# without the lock.
cdef GraphStream* graph_streams = NULL
cdef int total = 0
cdef int graph_streams_lock = 0


# Their number; callers skip the rest when it is 0.
cdef int graph_streams_count() noexcept nogil:
    return count_read(&total)


cdef GraphStream* graph_streams_find(int device, uint64_t stream) noexcept nogil:
    cdef GraphStream* found = graph_streams
    while found != NULL and (found.stream != stream or found.device != device):
        found = found.next
    return found


# `is_private`: only captures queue work on the stream. Returns False without memory.
cdef bint graph_stream_retain(int device, uint64_t stream, bint is_private) noexcept nogil:
    global graph_streams
    cdef GraphStream* found
    spin_acquire(&graph_streams_lock)
    found = graph_streams_find(device, stream)
    if found == NULL:
        found = <GraphStream*>calloc(1, sizeof(GraphStream))
        if found != NULL:
            found.device = device
            found.stream = stream
            found.is_private = is_private
            found.next = graph_streams
            graph_streams = found
            count_change(&total, 1)
    if found != NULL:
        found.holders += 1
        found.is_private = found.is_private and is_private
    spin_release(&graph_streams_lock)
    return found != NULL


cdef void graph_stream_release(int device, uint64_t stream) noexcept nogil:
    cdef GraphStream** link = &graph_streams
    spin_acquire(&graph_streams_lock)
    while link[0] != NULL and (link[0].stream != stream or link[0].device != device):
        link = &link[0].next
    if link[0] != NULL:
        link[0].holders -= 1
        if link[0].holders == 0:
            unlink(link)
    spin_release(&graph_streams_lock)


cdef void unlink(GraphStream** link) noexcept nogil:
    cdef GraphStream* gone = link[0]
    link[0] = gone.next
    count_change(&total, -1)
    free(gone.users)
    free(gone)


# Drops the records of a device that closes.
cdef void forget_graph_streams(int device) noexcept nogil:
    cdef GraphStream** link = &graph_streams
    spin_acquire(&graph_streams_lock)
    while link[0] != NULL:
        if link[0].device == device:
            unlink(link)
        else:
            link = &link[0].next
    spin_release(&graph_streams_lock)


cdef void graph_streams_fork() noexcept nogil:
    # The graphs are the parent's; the list may have been in the middle of a change.
    global graph_streams, total, graph_streams_lock
    graph_streams = NULL
    total = 0
    graph_streams_lock = 0


# Notes that `stream` uses memory that `other` used before, if `other` is a graph's stream.
cdef void graph_stream_touch(int device, uint64_t other, uint64_t stream) noexcept nogil:
    cdef GraphStream* found
    cdef uint64_t* users
    cdef int i
    if other == stream:
        return
    spin_acquire(&graph_streams_lock)
    found = graph_streams_find(device, other)
    if found != NULL:
        for i in range(found.count):
            if found.users[i] == stream:
                break
        else:
            if found.count == found.capacity:
                users = <uint64_t*>realloc(found.users, (found.count + 8) * sizeof(uint64_t))
                if users != NULL:
                    found.users = users
                    found.capacity = found.count + 8
            # Without memory for the note, the program has to order this stream with replays.
            if found.count < found.capacity:
                found.users[found.count] = stream
                found.count += 1
    spin_release(&graph_streams_lock)


cdef int graph_stream_peers(int device, uint64_t member, uint64_t stream, set peers) except -1:
    cdef GraphStream* found
    cdef list seen = []
    cdef uint64_t user
    cdef int i
    spin_acquire(&graph_streams_lock)
    found = graph_streams_find(device, member)
    if found != NULL:
        for i in range(found.count):
            seen.append(found.users[i])
        # The member waited for earlier replays on other streams, also of graphs whose memory it
        # used later, so a wait for the member covers them. The stream of the latest replay has
        # waited for the member. A stream that is not private may hold other work.
        if not found.is_private or (found.has_waited and found.waited_for != stream):
            seen.append(member)
    spin_release(&graph_streams_lock)
    for user in seen:
        if user != stream:
            peers.add(user)
    return 0


cdef void graph_stream_waited(int device, uint64_t peer, uint64_t stream) noexcept nogil:
    cdef GraphStream* found
    replay_came(device, peer)
    spin_acquire(&graph_streams_lock)
    found = graph_streams_find(device, peer)
    if found != NULL:
        found.has_waited = True
        found.waited_for = stream
    spin_release(&graph_streams_lock)
