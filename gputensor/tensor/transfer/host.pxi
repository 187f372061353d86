"""Copies between NumPy arrays and tensors, and between devices.

Uploads are queued on the device's current stream and return once the source may change; downloads
wait. Both use pinned memory, except on the default host device, where a copy is direct and done at
once. Between two devices of one kind the device copies (peer.pxi); between a GPU and a host device
the values go through a NumPy array.
"""

cdef Tensor upload(object array, int dtype, int device):
    cdef Tensor result
    cdef int64_t[16] shape
    cdef int axis
    cdef uint64_t stream, source
    # C order and the right dtype; copied only if necessary.
    ready = np.asarray(array, dtype=DTYPES[dtype].numpy, order="C")
    if ready.ndim > 16:
        raise ValueError(f"asarray: obj: got {ready.ndim} dimensions; expected at most 16")
    for axis in range(ready.ndim):
        shape[axis] = ready.shape[axis]
    result = empty_tensor(dtype, ready.ndim, shape, device)
    if result.size_ == 0:
        return result
    recorder = recorder_of(device)
    if recorder is not None:
        recorder.upload(described(result), ready)
        return result
    stream = current_handle(device)
    result.prepare_write(stream)
    source = ready.__array_interface__["data"][0]
    if copies_straight(device, stream):
        copy_now(device, result.ptr, source, ready.nbytes, stream)
    elif not captures_pinned(device, result.ptr, source, ready.nbytes, stream):
        stage_to_device(device, result.ptr, <const void*> source, ready.nbytes, stream)
    return result


cdef bint captures_pinned(int device, uint64_t target, uint64_t source, size_t nbytes,
                          uint64_t stream) except -1:
    """In a capture, queue a copy that reads the program's pinned memory at each replay."""
    cdef Driver* driver = driver_get(device)
    cdef Block* block = NULL
    cdef status_t status = STATUS_OK
    if stream_captures(device, stream) <= 0 or not pinned_holds(source, nbytes, &block):
        return False
    if block is not NULL:
        status = pinned_use(block, stream)      # the graph keeps it if the program drops it
    if status == STATUS_OK:
        status = driver.copy_async(driver.self, target, source, nbytes, stream)
    if status:
        raise_for_status(status, "copy_async", f"of {nbytes} bytes on {device_text(device)}")
    return True


cdef bint copies_straight(int device, uint64_t stream) noexcept:
    """The default host device needs no pinned memory, unless the copy becomes part of a graph."""
    return device == HOST_DEVICE and not stream_captures(device, stream)


cdef int copy_now(int device, uint64_t target, uint64_t source, size_t nbytes,
                  uint64_t stream) except -1:
    """Copy on the default host device; done when the call returns."""
    cdef Driver* driver = driver_get(device)
    cdef status_t status
    with nogil:
        status = driver.copy_async(driver.self, target, source, nbytes, stream)
    if status == STATUS_OK:
        status = finish(driver, stream)
    if status:
        raise_for_status(status, "copy_async", f"of {nbytes} bytes on {device_text(device)}")
    return raise_pending(device)


cdef CallOperand described(Tensor tensor):
    """Return the tensor as an operand for the recorder of its device."""
    cdef Operand operand
    tensor.fill_operand(&operand)
    return call_operand(&operand)


cdef object download(Tensor source):
    cdef int device = source.storage.device
    cdef Tensor packed
    cdef uint64_t stream = current_handle(device)
    cdef uint64_t target
    recorder = recorder_of(device)
    if recorder is not None:
        return recorder.download(described(source))
    if wait_report != WAITS_ALLOWED and source.size_:
        report_wait()
    packed = contiguous(source)
    result = np.empty(source.shape, DTYPES[source.dtype_code].numpy)
    if source.size_ == 0:
        return result
    target = result.__array_interface__["data"][0]
    if copies_straight(device, stream):
        read_now(packed, target, result.nbytes, stream)
    else:
        stage_to_host(packed, <void*> target, result.nbytes, stream)
        raise_pending(device)
    if order_is_checked():
        order_check_host(device, stream)
    return result


cdef int read_now(Tensor source, uint64_t target, size_t nbytes, uint64_t stream) except -1:
    cdef int device = source.storage.device
    cdef Driver* driver = driver_get(device)
    cdef status_t status
    work_begin()
    try:
        source.prepare_read(stream)
        status = driver.copy_async(driver.self, target, source.ptr, nbytes, stream)
    finally:
        work_end(device)
    if status == STATUS_OK:
        status = finish(driver, stream)
    if status:
        raise_for_status(status, "copy_async", f"of {nbytes} bytes on {device_text(device)}")
    return raise_pending(device)


cdef status_t finish(Driver* driver, uint64_t stream):
    cdef status_t status = driver.stream_query(driver.self, stream)
    if status == STATUS_NOT_READY:
        with nogil:
            status = driver.stream_synchronize(driver.self, stream)
    return status


cdef Tensor moved(Tensor source, int device):
    if is_tracing():
        return current_tracer().moved(source, device)
    if are_peers(source.storage.device, device):
        return copied_to_peer(source, device)
    return upload(download(source), source.dtype_code, device)


def numpy(Tensor self, /, *, force=False):
    """Return the values as a new NumPy array.

    Waits for the work on which the values depend. The array is a copy, so later changes of the
    tensor do not affect it. PyTorch's `force` has no effect: no tensor needs it.

    >>> import gputensor as gt
    >>> gt.asarray([1, 2], device="host").numpy()
    array([1, 2])
    """
    return download(self)


def to_device(Tensor self, device, stream=None):
    """Return the tensor itself if it is on `device`, otherwise a copy on it.

    Parameters
    ----------
    device : str, int or Device
    stream : Stream, optional
        A stream of the tensor's own device that waits until the values are complete. Default: the
        current stream.

    >>> import gputensor as gt
    >>> t = gt.asarray([1.5], device="host")
    >>> t.to_device("host") is t
    True
    """
    cdef int target = resolve_device(device)
    cdef uint64_t handle = 0
    if stream is not None:
        resolve_stream(stream, self.storage.device, &handle)
        work_begin()
        try:
            self.prepare_read(handle)
        finally:
            work_end(self.storage.device)
    if target == self.storage.device:
        return self
    return moved(self, target)
