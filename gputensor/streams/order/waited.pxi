"""Records of work that is done because a thread of this process waited for it.

A capture may use memory only if earlier work on it is done, because it cannot wait for that work.
The state of the stream does not show this: another thread may have queued more work since the
program waited. So each use of memory gets a stamp of a clock that every wait advances. A use with a
stamp from before a wait for its stream, or for its device, is done, whatever the stream holds now.

Replays use memory without a stamp. The streams that the logs of such memory may name wait for the
replay, and their records are void until the next wait for them. The marks of a private stream
(graph_streams.pxi) have the moments of its replays.
"""

cdef extern from "gputensor/streams/order/spin_lock.h":
    void spin_acquire(int* lock) noexcept nogil
    void spin_release(int* lock) noexcept nogil
    unsigned long long moment_next(unsigned long long* clock) noexcept nogil

# The record of one stream.
cdef struct Waited:
    uint64_t stream
    uint64_t done               # the latest moment that a wait for it covers
    uint64_t replay             # the moment of the latest replay
    Waited* next

wait_clock = 1

# The records of one device.
cdef struct Waits:
    int lock                    # guards the rest
    Waited* streams
    uint64_t done               # of the whole device
    uint64_t replay             # of streams for whose record there was no memory


cdef uint64_t wait_begun() noexcept nogil:
    return moment_next(<unsigned long long*>&wait_clock)


cdef Waited* waited_find(Waits* waits, uint64_t stream, bint make) noexcept nogil:
    cdef Waited* found = waits.streams
    while found != NULL and found.stream != stream:
        found = found.next
    if found == NULL and make:
        found = <Waited*>calloc(1, sizeof(Waited))
        if found != NULL:
            found.stream = stream
            found.next = waits.streams
            waits.streams = found
    return found


cdef void wait_succeeded(int device, uint64_t stream, uint64_t moment) noexcept nogil:
    cdef Waits* waits = &order_of(device).waits
    cdef Waited* found
    spin_acquire(&waits.lock)
    found = waited_find(waits, stream, True)
    if found != NULL and found.done < moment:
        found.done = moment
    spin_release(&waits.lock)


cdef void wait_succeeded_for_all(int device, uint64_t moment) noexcept nogil:
    cdef Waits* waits = &order_of(device).waits
    spin_acquire(&waits.lock)
    if waits.done < moment:
        waits.done = moment
    spin_release(&waits.lock)


# Notes a replay for which `stream` waits: it uses memory whose stamps do not show it.
cdef void replay_came(int device, uint64_t stream) noexcept nogil:
    cdef uint64_t moment = wait_begun()
    cdef Waits* waits = &order_of(device).waits
    cdef Waited* found
    spin_acquire(&waits.lock)
    found = waited_find(waits, stream, True)
    if found != NULL:
        found.replay = moment
    else:
        waits.replay = moment
    spin_release(&waits.lock)


# Whether the uses on `stream` of memory with this stamp are done, replays included.
cdef bint is_waited_for(int device, uint64_t stream, uint64_t stamp) noexcept nogil:
    cdef Waits* waits = &order_of(device).waits
    cdef uint64_t covered, replay
    cdef Waited* found
    spin_acquire(&waits.lock)
    covered = waits.done
    replay = waits.replay
    found = waited_find(waits, stream, False)
    if found != NULL:
        covered = max(covered, found.done)
        replay = max(replay, found.replay)
    spin_release(&waits.lock)
    if graph_stream_is_private(device, stream):
        replay = max(replay, private_moment(device, stream))
    return stamp <= covered and replay <= covered


# Drops the records of a device that closes; the clock continues.
cdef void forget_waits(int device) noexcept nogil:
    cdef Waits* waits = &order_of(device).waits
    cdef Waited* gone
    spin_acquire(&waits.lock)
    while waits.streams != NULL:
        gone = waits.streams
        waits.streams = gone.next
        free(gone)
    spin_release(&waits.lock)
