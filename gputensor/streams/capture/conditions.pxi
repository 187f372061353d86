"""Conditions of a graph under capture, and the captures of their bodies."""

cdef enum:
    RELAXED = 2     # the mode of the captures of bodies


@cython.final
cdef class Conditions:
    """Conditions of the graph that a stream captures into.

    Each depth of nested bodies is captured on a stream of its own. The caller keeps these streams:
    the allocator reuses memory stream by stream, so captures of the same work on the same streams
    take the same memory from a pool.

    Parameters
    ----------
    stream : Stream
        A stream that takes part in a capture.
    streams : list of Stream
        The streams of bodies, by depth; the list grows when more are needed.
    """

    def __init__(self, Stream stream not None, list streams not None):
        self.stream, self.streams = stream, streams
        self.device, self.handle = stream.device_number, stream.handle
        if not capture_pool(self.device, self.handle, &self.capture_id):
            raise RuntimeError("conditions: got a capture of another library; expected one that "
                               "graphs.graph or CUDAGraph began")

    def create(self):
        """Return a new condition of this graph, false until work of the graph sets it."""
        cdef Driver* driver = driver_get(self.device)
        cdef uint64_t condition = 0
        cdef status_t status = driver.condition_create(driver.self, self.handle, &condition)
        if status != STATUS_OK:
            raise_for_status(status, "condition_create", f"on {device_text(self.device)}")
        capture_add_condition(self.device, self.capture_id, condition)
        return condition

    def begin(self, uint64_t condition, bint is_loop):
        """Capture a node that runs its body if, or while, the condition is true.

        Returns
        -------
        Conditions
            The conditions of the body; its stream captures into the body until :meth:`end`.
        """
        cdef Driver* driver = driver_get(self.device)
        cdef Conditions inner = Conditions.__new__(Conditions)
        cdef uint64_t body = 0
        cdef status_t status
        if self.depth == len(self.streams):
            self.streams.append(stream_for_captures(self.device))
        inner.device, inner.depth, inner.streams = self.device, self.depth + 1, self.streams
        inner.stream = self.streams[self.depth]
        inner.handle = inner.stream.handle
        inner.capture_id = self.capture_id
        status = driver.condition_add(driver.self, self.handle, condition, is_loop, &body)
        if status != STATUS_OK:
            raise_for_status(status, "condition_add", f"on {device_text(self.device)}")
        status = capture_body_began(self.device, self.capture_id, inner.handle, body)
        if status != STATUS_OK:
            raise_for_status(status, "pool_begin", f"on {device_text(self.device)}")
        status = driver.capture_begin_body(driver.self, inner.handle, body, RELAXED)
        if status != STATUS_OK:
            capture_body_ended(self.device, self.capture_id, inner.handle)
            raise_for_status(status, "capture_begin_body", f"on {device_text(self.device)}")
        return inner

    def end(self):
        """End the capture of this body."""
        cdef Driver* driver = driver_get(self.device)
        cdef uint64_t body = 0
        cdef status_t status = driver.capture_end(driver.self, self.handle, &body)
        capture_body_ended(self.device, self.capture_id, self.handle)
        if status != STATUS_OK:
            raise_for_status(status, "capture_end", f"on {device_text(self.device)}")
