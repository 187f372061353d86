"""The captures under way, and the streams that take part in each.

A stream joins a capture by waiting for an event of it, and the driver cannot list who joined. Two
want to know. The allocator: what a joined stream allocates comes from the capture's pool. And the
ordering of replays, which starts from these streams (graph_streams.pyx). Captures that other
libraries make are not listed here.
"""

from libc.stdint cimport uint64_t
from libc.stdlib cimport free, malloc, realloc

from gputensor._alloc.private_pool cimport pool_begin, pool_end, pool_release
from gputensor._driver.registry cimport driver_get
from gputensor._driver.table cimport STATUS_OK, Driver
from gputensor.streams.graph_streams cimport graph_stream_retain

from gputensor._driver.registry import before_close

cdef extern from "gputensor/streams/spin_lock.h":
    void spin_acquire(int* lock) noexcept nogil
    void spin_release(int* lock) noexcept nogil

cdef struct Capture:
    int device
    uint64_t id
    uint64_t pool_id
    uint64_t* streams           # the first is where the capture began
    int count
    int capacity
    Capture* next

cdef Capture* captures = NULL       # guarded by lock, as is all that it leads to
cdef int active = 0                 # the length of that list; read without the lock
cdef int lock = 0


cdef int captures_active() noexcept nogil:
    return active


cdef int capture_started(int device, uint64_t capture_id, uint64_t pool_id, uint64_t stream,
                         bint is_private) except -1:
    global active, captures
    cdef Capture* capture = <Capture*>malloc(sizeof(Capture))
    if capture == NULL:
        raise MemoryError
    capture[0] = Capture(device, capture_id, pool_id, NULL, 0, 0, NULL)
    if add_stream(capture, stream) < 0 or not graph_stream_retain(device, stream, is_private):
        free(capture.streams)
        free(capture)
        raise MemoryError
    spin_acquire(&lock)
    capture.next = captures
    captures = capture
    active += 1
    spin_release(&lock)
    return 0


cdef void capture_joined(int device, uint64_t stream) noexcept nogil:
    cdef Driver* driver
    cdef Capture* capture
    cdef uint64_t capture_id = 0
    cdef int is_capturing = 0
    cdef uint64_t pool_id = 0
    if not active:
        return
    driver = driver_get(device)
    if driver.capture_info(driver.self, stream, &is_capturing, &capture_id) != STATUS_OK:
        return
    if not is_capturing:
        return
    spin_acquire(&lock)
    capture = captures
    while capture != NULL and (capture.device != device or capture.id != capture_id):
        capture = capture.next
    if capture != NULL:
        # Without memory for the entry, this stream's part is the program's to order and to keep.
        if add_stream(capture, stream) > 0:
            pool_id = capture.pool_id
    spin_release(&lock)
    if pool_id:
        graph_stream_retain(device, stream, False)
        pool_begin(device, pool_id, stream)


# 1: added, 0: it was there, -1: no memory.
cdef int add_stream(Capture* capture, uint64_t stream) noexcept nogil:
    cdef uint64_t* streams
    cdef int i
    for i in range(capture.count):
        if capture.streams[i] == stream:
            return 0
    if capture.count == capture.capacity:
        streams = <uint64_t*>realloc(capture.streams, (capture.count + 8) * sizeof(uint64_t))
        if streams == NULL:
            return -1
        capture.streams = streams
        capture.capacity = capture.count + 8
    capture.streams[capture.count] = stream
    capture.count += 1
    return 1


cdef Capture* take(int device, uint64_t capture_id) noexcept nogil:
    # Takes the capture off the list; an id of 0 takes any capture of the device. NULL: none.
    global active
    cdef Capture** link = &captures
    cdef Capture* capture
    spin_acquire(&lock)
    while link[0] != NULL and (link[0].device != device
                               or (capture_id and link[0].id != capture_id)):
        link = &link[0].next
    capture = link[0]
    if capture != NULL:
        link[0] = capture.next
        active -= 1
    spin_release(&lock)
    return capture


cdef list capture_finished(int device, uint64_t capture_id):
    cdef Capture* capture = take(device, capture_id)
    cdef list streams = []
    cdef int i
    if capture == NULL:
        return streams
    for i in range(capture.count):
        streams.append(capture.streams[i])
        if i > 0:
            # pool_begin counted as a holder; the graph is the only one that stays.
            pool_end(device, capture.pool_id, capture.streams[i])
            pool_release(device, capture.pool_id)
    free(capture.streams)
    free(capture)
    return streams


def forget_captures(int device):
    """Drop the captures of a device that closes."""
    cdef Capture* capture = take(device, 0)
    while capture != NULL:
        free(capture.streams)
        free(capture)
        capture = take(device, 0)


before_close(forget_captures)
