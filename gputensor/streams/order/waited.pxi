"""Records which work is done because a thread of this process waited for it.

A capture may use memory whose former work is done, and cannot wait for it. The state of
the stream does not show that: another thread may have queued more work since the program waited.
So each use of memory gets a stamp of a clock that every wait advances, and a use with a stamp from
before a wait for its stream, or for its device, is done, whatever the stream holds by now.

Replays use memory without a stamp. The streams that could name such memory wait for the replay, and
their records are void until the next wait for them.
"""

cdef extern from "gputensor/streams/order/spin_lock.h":
    void spin_acquire(int* waited_lock) noexcept nogil
    void spin_release(int* waited_lock) noexcept nogil
    unsigned long long moment_next(unsigned long long* clock) noexcept nogil

# The record of one stream.
cdef struct Waited:
    uint64_t stream
    uint64_t done               # the latest moment that a wait for it covers
    uint64_t replay             # when the latest replay came
    Waited* next

wait_clock = 1
cdef Waited* streams[64]        # guarded by waited_lock, as are the next two
cdef uint64_t done[64]          # of whole devices
cdef uint64_t replays[64]       # ... for streams whose record could not be had
cdef int waited_lock = 0


cdef uint64_t wait_begun() noexcept nogil:
    return moment_next(<unsigned long long*>&wait_clock)


cdef Waited* waited_find(int index, uint64_t stream, bint make) noexcept nogil:
    cdef Waited* found = streams[index]
    while found != NULL and found.stream != stream:
        found = found.next
    if found == NULL and make:
        found = <Waited*>calloc(1, sizeof(Waited))
        if found != NULL:
            found.stream = stream
            found.next = streams[index]
            streams[index] = found
    return found


cdef void wait_succeeded(int device, uint64_t stream, uint64_t moment) noexcept nogil:
    cdef Waited* found
    spin_acquire(&waited_lock)
    found = waited_find(device + HOST_DEVICES, stream, True)
    if found != NULL and found.done < moment:
        found.done = moment
    spin_release(&waited_lock)


cdef void wait_succeeded_for_all(int device, uint64_t moment) noexcept nogil:
    spin_acquire(&waited_lock)
    if done[device + HOST_DEVICES] < moment:
        done[device + HOST_DEVICES] = moment
    spin_release(&waited_lock)


# A replay waits on `stream`, or is waited for there: it uses memory whose stamps do not show it.
cdef void replay_came(int device, uint64_t stream) noexcept nogil:
    cdef uint64_t moment = wait_begun()
    cdef Waited* found
    spin_acquire(&waited_lock)
    found = waited_find(device + HOST_DEVICES, stream, True)
    if found != NULL:
        found.replay = moment
    else:
        replays[device + HOST_DEVICES] = moment
    spin_release(&waited_lock)


# Whether the uses on `stream` of memory stamped `stamp` there are done, replays included.
cdef bint is_waited_for(int device, uint64_t stream, uint64_t stamp) noexcept nogil:
    cdef int index = device + HOST_DEVICES
    cdef uint64_t covered, replay
    cdef Waited* found
    spin_acquire(&waited_lock)
    covered = done[index]
    replay = replays[index]
    found = waited_find(index, stream, False)
    if found != NULL:
        covered = max(covered, found.done)
        replay = max(replay, found.replay)
    spin_release(&waited_lock)
    return stamp <= covered and replay <= covered


def forget_waits(int device):
    """Drop the records of a device that closes; the clock goes on."""
    cdef int index = device + HOST_DEVICES
    cdef Waited* gone
    spin_acquire(&waited_lock)
    while streams[index] != NULL:
        gone = streams[index]
        streams[index] = gone.next
        free(gone)
    done[index] = replays[index] = 0
    spin_release(&waited_lock)


before_close(forget_waits)


cdef void _waited_after_fork() noexcept nogil:
    # The waits were the parent's; the lists may be in the middle of a change.
    global waited_lock
    cdef int index
    for index in range(MAX_DEVICES):
        streams[index] = NULL
        done[index] = replays[index] = 0
    waited_lock = 0


at_fork(_waited_after_fork)
