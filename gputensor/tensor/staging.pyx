"""Pinned buffers through which host arrays reach a CUDA device and come back.

The driver copies asynchronously and at full speed from pinned memory only, and a caller may change
its array right after `asarray`. So the bytes go through a ring of `COUNT` buffers for each device,
chunk by chunk: while one chunk is on the bus, the next is copied into its buffer. A buffer is used
again when the event behind its last copy is done. Four of 4 MiB keep a PCIe 5 bus busy and cost
16 MiB, made at the first copy. The GIL is released while bytes move; `lock` guards the rings.
"""

from libc.stdint cimport uint64_t
from libc.string cimport memcpy

import threading

from gputensor._driver.registry cimport driver_get
from gputensor._driver.table cimport MAX_DEVICES, Driver, status_t

from gputensor.errors import raise_for_status

cdef enum:
    COUNT = 4
    CHUNK_NBYTES = 4 << 20

cdef struct Buffer:
    uint64_t ptr
    uint64_t event              # done when the bus has left the buffer

cdef struct Ring:
    Buffer[COUNT] buffers
    int next
    int is_made

cdef Ring[MAX_DEVICES] rings    # by CUDA ordinal
lock = threading.Lock()


cdef int check(status_t status, str call, int device) except -1:
    if status:
        raise_for_status(status, call, f"while copying through pinned memory on cuda:{device}")
    return 0


cdef int ring_make(Ring* ring, int device) except -1:
    cdef Driver* driver = driver_get(device)
    cdef int i
    for i in range(COUNT):
        if ring.buffers[i].ptr == 0:
            check(driver.pinned_alloc(driver.self, &ring.buffers[i].ptr, CHUNK_NBYTES),
                  "pinned_alloc", device)
        if ring.buffers[i].event == 0:
            check(driver.event_create(driver.self, &ring.buffers[i].event, 0), "event_create",
                  device)
    ring.is_made = 1
    return 0


cdef Ring* ring_of(int device, uint64_t stream) except NULL:
    """The device's ring; RuntimeError while `stream` is captured, where a buffer would be replayed
    after other bytes have taken its place."""
    cdef Driver* driver = driver_get(device)
    cdef Ring* ring = &rings[device]
    cdef int active = 0
    cdef uint64_t capture_id = 0
    check(driver.capture_info(driver.self, stream, &active, &capture_id), "capture_info", device)
    if active:
        raise RuntimeError("a copy between a host array and the device cannot be captured into a "
                           "graph; make the tensor before the capture begins")
    if not ring.is_made:
        ring_make(ring, device)
    return ring


cdef int stage_to_device(int device, uint64_t target, const void* source, size_t nbytes,
                         uint64_t stream) except -1:
    cdef Driver* driver = driver_get(device)
    cdef Ring* ring
    cdef Buffer* buffer
    cdef size_t done = 0
    cdef size_t chunk
    cdef status_t status = 0
    with lock:
        ring = ring_of(device, stream)
        with nogil:
            while done < nbytes and status == 0:
                chunk = min(nbytes - done, <size_t> CHUNK_NBYTES)
                buffer = &ring.buffers[ring.next]
                ring.next = (ring.next + 1) % COUNT
                status = driver.event_synchronize(driver.self, buffer.event)
                if status:
                    break
                memcpy(<void*> buffer.ptr, <const char*> source + done, chunk)
                status = driver.copy_async(driver.self, target + done, buffer.ptr, chunk, stream)
                if status == 0:
                    status = driver.event_record(driver.self, buffer.event, stream)
                done += chunk
        check(status, "copy_async", device)
    return 0


cdef int stage_to_host(int device, void* target, uint64_t source, size_t nbytes,
                       uint64_t stream) except -1:
    cdef Driver* driver = driver_get(device)
    cdef Ring* ring
    cdef size_t chunks = (nbytes + CHUNK_NBYTES - 1) // CHUNK_NBYTES
    cdef size_t queued = 0
    cdef size_t arrived
    cdef status_t status = 0
    with lock:
        ring = ring_of(device, stream)
        with nogil:
            for arrived in range(chunks):
                while queued < chunks and queued < arrived + COUNT and status == 0:
                    status = request_chunk(driver, ring, queued, source, nbytes, stream)
                    queued += 1
                if status == 0:
                    status = fetch_chunk(driver, ring, arrived, target, nbytes)
                if status:
                    break
            # Every buffer was waited for, so the ring may go on from any of them.
        check(status, "copy_async", device)
    return 0


cdef inline size_t chunk_nbytes(size_t index, size_t nbytes) noexcept nogil:
    return min(nbytes - index * CHUNK_NBYTES, <size_t> CHUNK_NBYTES)


cdef status_t request_chunk(Driver* driver, Ring* ring, size_t index, uint64_t source,
                            size_t nbytes, uint64_t stream) noexcept nogil:
    """Queue the copy of chunk `index` into its buffer, once the buffer is free."""
    cdef Buffer* buffer = &ring.buffers[index % COUNT]
    cdef status_t status = driver.event_synchronize(driver.self, buffer.event)
    if status == 0:
        status = driver.copy_async(driver.self, buffer.ptr, source + index * CHUNK_NBYTES,
                                   chunk_nbytes(index, nbytes), stream)
    if status == 0:
        status = driver.event_record(driver.self, buffer.event, stream)
    return status


cdef status_t fetch_chunk(Driver* driver, Ring* ring, size_t index, void* target,
                          size_t nbytes) noexcept nogil:
    """Wait for chunk `index` and move it to the caller's memory."""
    cdef Buffer* buffer = &ring.buffers[index % COUNT]
    cdef status_t status = driver.event_synchronize(driver.self, buffer.event)
    if status == 0:
        memcpy(<char*> target + index * CHUNK_NBYTES, <const void*> buffer.ptr,
               chunk_nbytes(index, nbytes))
    return status
