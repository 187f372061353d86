"""The `with` block that captures into a CUDAGraph, and queries about captures."""


class graph:
    """A context that captures its body into a CUDAGraph.

    Parameters
    ----------
    cuda_graph : CUDAGraph
        The graph that receives the work.
    pool : pool id or CUDAGraph, optional
        The memory pool to share; see :meth:`CUDAGraph.capture_begin`.
    stream : Stream, optional
        The stream to capture on; by default a side stream: that of the shared pool, or a new one.
    capture_error_mode : str
        See :meth:`CUDAGraph.capture_begin`.

    Notes
    -----
    Entering waits for the device, so that the capture can read earlier results, and makes the
    stream current. It does not collect garbage. The capture can use the device's free cached
    memory, so there is no need to empty the cache before. When the body raises an exception, the
    capture is dropped and the exception propagates.

    Examples
    --------
    >>> from gputensor.streams import Device
    >>> from gputensor.streams.capture import CUDAGraph
    >>> g = CUDAGraph()
    >>> with Device("host"), graph(g):
    ...     is_current_stream_capturing()
    True
    >>> g.replay()
    """

    def __init__(self, cuda_graph, pool=None, stream=None, capture_error_mode="global"):
        if not isinstance(cuda_graph, CUDAGraph):
            raise argument_error(TypeError, "cuda_graph", cuda_graph, "a CUDAGraph")
        self.cuda_graph = cuda_graph
        self.pool = pool
        self.stream = stream
        self.capture_error_mode = capture_error_mode

    def __enter__(self):
        cdef int device = current_device()
        cdef CUDAGraph captured = self.cuda_graph
        cdef Stream stream
        stream = side_stream(device, self.pool, self.stream)
        if capture_state(device, current_handle(device)) != 0:
            raise RuntimeError("the current stream is already capturing")
        if captures_active():       # otherwise capture_begin waits
            settle(stream.device_number)
        enter_stream(stream.device_number, stream.handle, stream)
        try:
            captured.capture_begin(self.pool, self.capture_error_mode)
        except BaseException:
            leave()
            raise

    def __exit__(self, kind, value, trace):
        cdef CUDAGraph captured = self.cuda_graph
        leave()         # first: a stream that is current when its capture ends is no longer private
        if kind is None:
            captured.end_capture(True)
        elif captured.state == CAPTURING:
            captured.abandon()


# Not 0 while the stream captures.
cdef int capture_state(int device, uint64_t stream) except -1:
    cdef Driver* driver = driver_get(device)
    cdef int active = 0
    cdef uint64_t capture_id = 0
    cdef status_t status
    if stream == 0:
        return 0
    status = driver.capture_info(driver.self, stream, &active, &capture_id)
    if status != STATUS_OK:
        raise_for_status(status, "capture_info", f"on {device_text(device)}")
    return active


cdef status_t begin(Driver* driver, uint64_t stream, int mode, uint64_t* capture_id) noexcept nogil:
    # A capture whose id cannot be queried is ended again.
    cdef int active = 0
    cdef uint64_t none = 0
    cdef status_t status = driver.capture_begin(driver.self, stream, mode)
    if status == STATUS_OK:
        status = driver.capture_info(driver.self, stream, &active, capture_id)
        if status != STATUS_OK and driver.capture_end(driver.self, stream, &none) == STATUS_OK:
            driver.graph_destroy(driver.self, none)
    return status


cdef Stream side_stream(int device, object pool, object stream):
    # The stream to capture on.
    if stream is not None:
        return any_stream(stream, device)
    kept = None if pool is None else pool_stream(device, pool_number(pool))
    return stream_for_captures(device) if kept is None else kept


cdef int settle(int device) except -1:
    # Earlier work has to be done, because the capture could not read its results otherwise. Another
    # thread's capture would break if this thread waited for the whole device.
    cdef Driver* driver = driver_get(device)
    cdef uint64_t stream = current_handle(device)
    cdef uint64_t moment = wait_begun()
    cdef bint for_all = not captures_active()
    cdef status_t status = STATUS_CAPTURE_UNSUPPORTED
    with nogil:
        if for_all:
            status = allocator_settle(device)
            for_all = status != STATUS_CAPTURE_UNSUPPORTED
        if not for_all:
            status = graph_stream_give(device, stream)
            if status == STATUS_OK:
                status = driver.stream_synchronize(driver.self, stream)
    if status != STATUS_OK:
        raise_for_status(status, "synchronize", f"of {device_text(device)} before a capture")
    if for_all:
        wait_succeeded_for_all(device, moment)
        if order_is_checked():
            order_check_host_all(device)
    else:
        wait_succeeded(device, stream, moment)
        if order_is_checked():
            order_check_host(device, stream)
    return after_synchronize(device)


def is_current_stream_capturing():
    """Return whether the current stream of the current device captures.

    >>> is_current_stream_capturing()
    False
    """
    cdef int device = current_device()
    return capture_state(device, current_handle(device)) != 0


def graph_pool_handle():
    """Return the id of a new memory pool for several captures to share.

    >>> graph_pool_handle() == graph_pool_handle()
    False
    """
    cdef uint64_t pool_id = pool_new_id()
    note_user_pool(pool_id)
    return pool_pair(pool_id)
