"""Runs a recorded trace of mallocs and frees through the allocator itself.

On a phantom host device this is the simulator: the same code and the same decisions as on a GPU,
with no memory behind the addresses and the driver's time charged by the cost model. Ids are dense
(trace_file.py checks that); streams other than 0 are made for the replay.
"""

cdef enum:
    CHUNK = 2048                # events between two looks at the clock


# The first of `count` elements. Typed memoryviews would do the same, for 15,000 lines of C++ a
# module.
cdef uintptr_t _elements(object array, type scalar, Py_ssize_t count) except? 1:
    if array.dtype != scalar or array.shape != (count,) or not array.flags.c_contiguous:
        raise ValueError(f"trace: got {array.dtype} of shape {array.shape}; "
                         f"expected {scalar.__name__} of shape ({count},), contiguous")
    return array.__array_interface__["data"][0]


cdef class Replay:
    """A trace in the arrays of :func:`replay_trace`, and what its replay has made on a device."""

    cdef tuple arrays
    cdef int64_t events
    cdef const int8_t* op
    cdef const int32_t* ids
    cdef const int64_t* sizes
    cdef const int16_t* streams
    cdef int device
    cdef Driver* driver
    cdef int64_t names, kinds   # of blocks, of streams
    cdef Block** blocks
    cdef uint64_t* handles
    cdef int64_t done           # events that ran
    cdef status_t status        # of the event that did not

    def __cinit__(self, tuple arrays, int device):
        op, ids, sizes, streams = self.arrays = arrays
        self.device = device
        self.events = len(op)
        self.op = <const int8_t*>_elements(op, np.int8, self.events)
        self.ids = <const int32_t*>_elements(ids, np.int32, self.events)
        self.sizes = <const int64_t*>_elements(sizes, np.int64, self.events)
        self.streams = <const int16_t*>_elements(streams, np.int16, self.events)
        self.driver = driver_open(device)
        self.names = 1 + (int(ids.max()) if self.events else 0)
        self.kinds = 1 + (int(streams.max()) if self.events else 0)
        self.blocks = <Block**>calloc(self.names, sizeof(Block*))
        self.handles = <uint64_t*>calloc(self.kinds, sizeof(uint64_t))
        if self.blocks == NULL or self.handles == NULL:
            raise MemoryError("no host memory for the replay")

    def __dealloc__(self):
        free(self.blocks)
        free(self.handles)

    cdef int make_streams(self) except -1:
        cdef int64_t i
        for i in range(1, self.kinds):
            raise_for_status(self.driver.stream_create(self.driver.self, &self.handles[i], 0),
                             "stream_create")
            stream_own(self.device, self.handles[i])
        return 0

    # Runs up to `count` events more; false when one failed.
    cdef bint run(self, int64_t count) noexcept nogil:
        cdef int64_t end = min(self.done + count, self.events)
        cdef int64_t i
        cdef Block* block
        for i in range(self.done, end):
            block = NULL
            if self.op[i] > 0:
                block = allocator_malloc(self.device, <size_t>self.sizes[i],
                                         self.handles[self.streams[i]], &self.status)
                if block == NULL:
                    self.done = i
                    return False
            else:
                allocator_free(self.blocks[self.ids[i]])
            self.blocks[self.ids[i]] = block
        self.done = end
        return True

    cdef int raise_for_event(self) except -1:
        raise_for_malloc(self.device, <size_t>self.sizes[self.done],
                         self.handles[self.streams[self.done]], self.status)

    cdef int clear(self) except -1:
        cdef int64_t i
        for i in range(self.names):
            if self.blocks[i] != NULL:
                allocator_free(self.blocks[i])
        empty_cache(self.device)
        if self.device < -1:
            close_allocator(self.device)
        for i in range(1, self.kinds):
            if self.handles[i]:
                self.driver.stream_destroy(self.driver.self, self.handles[i])
        return 0


def replay_trace(op, id, size, stream, int device):
    """Replay a trace on a device and return the peaks, the driver calls and the time.

    Parameters
    ----------
    op, id, size, stream : arrays of int8, int32, int64, int16
        Of equal length, as :func:`gputensor._alloc.replay.trace_file.read_trace` gives them.
    device : int
        The device's number. Its memory must not be in use: peaks are reset at the start.

    Returns
    -------
    dict
        ``peak_requested_bytes``, ``peak_reserved_bytes``, ``driver_calls``,
        ``modelled_driver_seconds``, ``ns_per_event``.

    Raises
    ------
    OutOfMemoryError
        When the device's capacity does not suffice. All memory of the replay is given back.
    """
    cdef Replay replay = Replay((op, id, size, stream), device)
    cdef bint is_whole
    open_allocator(device)
    reset_peak(device)
    try:
        replay.make_streams()
        reset_counts(device)
        start = time.perf_counter_ns()
        with nogil:
            is_whole = replay.run(replay.events)
        elapsed = time.perf_counter_ns() - start
        result = {
            "peak_requested_bytes": peak_requested_nbytes(device),
            "peak_reserved_bytes": peak_reserved_nbytes(device),
            "driver_calls": {name: n for name, n in counts(device).items() if n},
            "modelled_driver_seconds": modelled_seconds(device),
            "ns_per_event": elapsed / replay.events if replay.events else 0.0,
        }
        if not is_whole:
            replay.raise_for_event()
        return result
    finally:
        replay.clear()


def replay_settings(tuple trace, int device, settings, limit_nbytes, double seconds):
    """Replay a trace on a host device that has no allocator yet, under settings of its own.

    Parameters
    ----------
    trace : tuple of arrays
        The first four arguments of :func:`replay_trace`.
    device : int
        A host device below -1. Its allocator is closed again.
    settings : Settings
        What holds on this device; nothing else changes.
    limit_nbytes : int or None
        How much may be reserved, whatever the settings say of limits.
    seconds : float
        When to give up.

    Returns
    -------
    tuple of (int, int)
        How many events ran before one failed, or before the time was up (all of them: the trace
        fits), and the most bytes that were reserved at one time.

    Raises
    ------
    TimeoutError
        The time was up.
    """
    cdef Replay replay = Replay(trace, device)
    cdef bint is_whole = True
    until = time.perf_counter() + seconds
    open_allocator(device, settings, limit_nbytes)
    try:
        replay.make_streams()
        while is_whole and replay.done < replay.events:
            if time.perf_counter() > until:
                raise TimeoutError(
                    f"replayed {replay.done} of {replay.events} events in {seconds:.1f} s")
            with nogil:
                is_whole = replay.run(CHUNK)
        return replay.done, peak_reserved_nbytes(device)
    finally:
        replay.clear()
