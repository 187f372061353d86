"""Copies between two GPUs, and between two host devices: queued, without intermediate host memory.

The copy runs on the current stream of the source's device. Before it, that stream waits for the
current stream of the target's device, whose earlier work may still use the memory of the result;
after it, the target's stream waits for the copy. So both memories are used in the order of a stream
of their own device, which is all that ordering and the allocator require, and the source may be
dropped right after the call.
"""

# Whether two devices copy directly: both are host devices, or both CUDA, and neither records its
# calls.
cdef bint are_peers(int device, int other) noexcept:
    if is_recorded(device) or is_recorded(other):
        return False
    return device_kind(device) == device_kind(other)


# A row-major copy of `source` on `device`, queued; the host does not wait.
cdef Tensor copied_to_peer(Tensor source, int device):
    cdef int origin = source.storage.device
    cdef uint64_t stream, target
    cdef Tensor packed, result
    cdef status_t status
    cdef Driver* driver
    storage_check_open(source.storage)
    driver = driver_get(origin)
    result = empty_tensor(source.dtype_code, source.ndim_, source.shape_, device)
    if source.size_ == 0:
        return result
    stream, target = current_handle(origin), current_handle(device)
    if stream_captures(origin, stream) or stream_captures(device, target):
        raise_for_status(STATUS_CAPTURE_UNSUPPORTED, "copy_to_peer",
                         f"from {device_text(origin)} to {device_text(device)}: a graph holds work "
                         "of one device; copy before the capture or after it")
    packed = contiguous(source)
    # No other thread has the result yet, so the section only protects the source.
    result.prepare_write(target)
    peer_check(stream_wait_peer(origin, stream, device, target), "wait_for_peer", origin, device)
    try:
        work_begin()
        try:
            packed.prepare_read(stream)
            status = driver.copy_to_peer(driver.self, result.ptr, device, packed.ptr,
                                         source.size_ * result.itemsize, stream)
            peer_check(status, "copy_to_peer", origin, device)
        finally:
            work_end(origin)
    finally:
        status = stream_wait_peer(device, target, origin, stream)
        if status != STATUS_OK:
            # The result's memory must not be freed while the copy writes it.
            driver.stream_synchronize(driver.self, stream)
    peer_check(status, "wait_for_peer", device, origin)
    return result


cdef int peer_check(status_t status, str call, int device, int other) except -1:
    if status != STATUS_OK:
        raise_for_status(status, call, f"between {device_text(device)} and {device_text(other)}")
    return 0
