"""Copies between host arrays and devices, chunk by chunk through pinned memory.

The driver copies asynchronously and at full speed only from pinned memory, and a caller may change
its array right after `asarray`. So while one chunk is on the bus, the next is copied into its
buffer. A transfer uses at most `COUNT` buffers of `CHUNK_NBYTES`, which keep a PCIe 5 bus busy; a
buffer is reused when the event behind its copy is done. Buffers come from the pinned allocator and
return to it at the end of the call. It holds them until their last copy is done, and those of a
captured copy as long as the graph lives (in a capture, no buffer is reused). Deferred host devices
copy in the same way, so that tests detect a buffer that is reused too early. The GIL is released
while bytes move. Calls share no state, except for the hold on a large tensor that is read
(streams/DESIGN.md), for which writes wait.
"""

cdef enum:
    COUNT = 4
    CHUNK_NBYTES = 4 << 20

cdef struct Buffer:
    Block* block
    uint64_t event              # behind the last copy from or to the block; 0: not needed

cdef struct Transfer:
    Driver* driver
    int device
    uint64_t stream
    int is_captured
    size_t nbytes               # of the whole transfer
    size_t chunks
    size_t count                # buffers; chunk i uses buffer i % count
    Buffer* buffers


cdef inline size_t chunk_nbytes(Transfer* transfer, size_t index) noexcept nogil:
    return min(transfer.nbytes - index * CHUNK_NBYTES, <size_t> CHUNK_NBYTES)


cdef int transfer_begin(Transfer* transfer, int device, size_t nbytes, uint64_t stream,
                        bint needs_events) except -1:
    """Take the buffers; after a failure, transfer_end returns those already taken."""
    cdef status_t status = STATUS_OK
    cdef size_t i
    cdef uint64_t capture_id = 0
    cdef size_t count
    transfer.driver = driver_get(device)
    transfer.device = device
    transfer.stream = stream
    transfer.is_captured = 0
    transfer.nbytes = nbytes
    transfer.chunks = (nbytes + CHUNK_NBYTES - 1) // CHUNK_NBYTES
    transfer.count = 0
    transfer.buffers = NULL
    bounce_check(transfer.driver.capture_info(transfer.driver.self, stream, &transfer.is_captured,
                                              &capture_id), "capture_info", device)
    if transfer.is_captured and needs_events:
        raise RuntimeError("the value of a tensor cannot be read while its stream is captured into "
                           "a graph")
    count = transfer.chunks if transfer.is_captured else min(transfer.chunks, <size_t> COUNT)
    transfer.buffers = <Buffer*> calloc(count, sizeof(Buffer))
    if transfer.buffers is NULL:
        raise MemoryError("no memory for the buffers of a copy")
    transfer.count = count
    needs_events = needs_events or transfer.chunks > count
    for i in range(count):
        transfer.buffers[i].block = pinned_malloc(device, chunk_nbytes(transfer, i), &status)
        if transfer.buffers[i].block is NULL:
            raise_for_pinned(device, chunk_nbytes(transfer, i), status)
        if transfer.is_captured:
            # The graph owns it from here on; nothing is queued if that cannot be recorded.
            bounce_check(pinned_use(transfer.buffers[i].block, stream), "capture_info", device)
        if needs_events:
            bounce_check(event_take(device, &transfer.buffers[i].event), "event_create", device)
    return 0


cdef void transfer_end(Transfer* transfer) noexcept:
    """Return the buffers to the pinned allocator, which holds them until the stream is done."""
    cdef size_t i
    for i in range(transfer.count):
        if transfer.buffers[i].event:
            event_return(transfer.device, transfer.buffers[i].event)
        if transfer.buffers[i].block is not NULL:
            if (not transfer.is_captured
                    and pinned_use(transfer.buffers[i].block, transfer.stream) != STATUS_OK):
                with nogil:
                    transfer.driver.stream_synchronize(transfer.driver.self, transfer.stream)
            pinned_free(transfer.buffers[i].block)
    free(transfer.buffers)
    transfer.count = 0
    transfer.buffers = NULL


cdef int bounce_check(status_t status, str call, int device) except -1:
    if status:
        raise_for_status(status, call,
                         f"while copying through pinned memory on {device_text(device)}")
    return 0


cdef inline status_t buffer_wait(Transfer* transfer, size_t index) noexcept nogil:
    """Wait until the bus is done with the buffer of chunk `index`."""
    return transfer.driver.event_synchronize(
        transfer.driver.self, transfer.buffers[index % transfer.count].event)


cdef status_t queue_copy(Transfer* transfer, size_t index, uint64_t target,
                         uint64_t source) noexcept nogil:
    """Queue the copy of chunk `index`, and the event behind it if one is needed."""
    cdef Driver* driver = transfer.driver
    cdef uint64_t event = transfer.buffers[index % transfer.count].event
    cdef status_t status = driver.copy_async(driver.self, target, source,
                                             chunk_nbytes(transfer, index), transfer.stream)
    if status == STATUS_OK and event:
        status = driver.event_record(driver.self, event, transfer.stream)
    return status


cdef status_t send(Transfer* transfer, uint64_t target, const void* source) noexcept nogil:
    cdef status_t status = STATUS_OK
    cdef size_t i
    cdef Block* block
    for i in range(transfer.chunks):
        block = transfer.buffers[i % transfer.count].block
        if i >= transfer.count:
            status = buffer_wait(transfer, i)
        if status == STATUS_OK:
            memcpy(<void*> block.ptr, <const char*> source + i * CHUNK_NBYTES,
                   chunk_nbytes(transfer, i))
            status = queue_copy(transfer, i, target + i * CHUNK_NBYTES, block.ptr)
        if status:
            return status
    return STATUS_OK


cdef status_t request(Transfer* transfer, size_t index, uint64_t source) noexcept nogil:
    """Queue the copy of chunk `index` of the device's memory into its buffer."""
    return queue_copy(transfer, index, transfer.buffers[index % transfer.count].block.ptr,
                      source + index * CHUNK_NBYTES)


cdef status_t receive(Transfer* transfer, void* target, uint64_t source) noexcept nogil:
    """Fetch the chunks in order; the first `count` of them are already requested."""
    cdef status_t status = STATUS_OK
    cdef size_t i
    for i in range(transfer.chunks):
        status = buffer_wait(transfer, i)
        if status == STATUS_OK:
            memcpy(<char*> target + i * CHUNK_NBYTES,
                   <const void*> transfer.buffers[i % transfer.count].block.ptr,
                   chunk_nbytes(transfer, i))
            if i + transfer.count < transfer.chunks:
                status = request(transfer, i + transfer.count, source)
        if status:
            return status
    return STATUS_OK


# Queues a copy of `nbytes` > 0 from host memory to the device. The source may change as soon as the
# call returns. No other thread may use the target yet, because the GIL is released meanwhile.
cdef int stage_to_device(int device, uint64_t target, const void* source, size_t nbytes,
                         uint64_t stream) except -1:
    cdef Transfer transfer
    cdef status_t status
    try:
        transfer_begin(&transfer, device, nbytes, stream, False)
        with nogil:
            status = send(&transfer, target, source)
        bounce_check(status, "copy_async", device)
    finally:
        transfer_end(&transfer)
    return 0


# Copies `nbytes` > 0 from the device to host memory and returns when the bytes have arrived. Orders
# the read; no thread can write to the source in between.
cdef int stage_to_host(Tensor source, void* target, size_t nbytes, uint64_t stream) except -1:
    cdef Transfer transfer
    cdef UseLog* uses = &source.storage.uses
    cdef int device = source.storage.device
    cdef status_t status
    cdef bint is_held = False
    cdef size_t i
    storage_check_open(source.storage)
    try:
        transfer_begin(&transfer, device, nbytes, stream, True)
        work_begin()
        try:
            source.prepare_read(stream)
            if transfer.chunks > transfer.count:
                # The rest is queued while the first chunks arrive, so writes have to wait.
                use_log_hold(uses)
                is_held = True
            for i in range(transfer.count):
                bounce_check(request(&transfer, i, source.ptr), "copy_async", device)
        finally:
            work_end(device)
        with nogil:
            status = receive(&transfer, target, source.ptr)
        bounce_check(status, "copy_async", device)
    finally:
        if is_held:
            use_log_release(uses)
        transfer_end(&transfer)
    return 0
