"""Runs a recorded trace of mallocs and frees through the allocator itself.

On a phantom host device this is the simulator: the same code and the same decisions as on a GPU,
with no memory behind the addresses and the driver's time charged by the cost model. Ids are dense
(trace_file.py checks that); streams other than 0 are made for the replay, and so are threads where
the trace has several: they take turns in the recorded order.
"""

cdef extern from "gputensor/_alloc/history/ring.h" nogil:
    uint64_t gt_now_ns()

cdef enum:
    CHUNK = 2048                # events between two looks at the clock


# The first of `count` elements. Typed memoryviews would do the same, but would add 15,000 lines of
# C++ to the module.
cdef uintptr_t _elements(object array, type scalar, Py_ssize_t count) except? 1:
    if array.dtype != scalar or array.shape != (count,) or not array.flags.c_contiguous:
        raise ValueError(f"trace: got {array.dtype} of shape {array.shape}; "
                         f"expected {scalar.__name__} of shape ({count},), contiguous")
    return array.__array_interface__["data"][0]


cdef struct Events:
    const int8_t* op
    const int32_t* ids
    const int64_t* sizes
    const int16_t* streams
    int device
    Block** blocks              # by id
    uint64_t* handles           # by stream
    int64_t done                # events that ran
    status_t status             # of the event that failed


# Runs the events up to number `end`; false when one failed.
cdef bint _run(Events* e, int64_t end) noexcept nogil:
    cdef int64_t i
    cdef Block* block
    for i in range(e.done, end):
        block = NULL
        if e.op[i] > 0:
            block = allocator_malloc(e.device, <size_t>e.sizes[i], e.handles[e.streams[i]],
                                     &e.status)
            if block == NULL:
                e.done = i
                return False
        else:
            allocator_free(e.blocks[e.ids[i]])
        e.blocks[e.ids[i]] = block
    e.done = end
    return True


cdef class Replay:
    """A trace in the arrays of :func:`replay_trace`, and what its replay has made on a device."""

    cdef tuple arrays
    cdef int64_t count          # of events
    cdef Events events
    cdef Driver* driver
    cdef int64_t names, kinds   # of blocks, of streams
    cdef int64_t spent_ns       # in the events

    def __cinit__(self, tuple arrays, int device):
        op, ids, sizes, streams = self.arrays = arrays
        self.count = len(op)
        self.events.device = device
        self.events.op = <const int8_t*>_elements(op, np.int8, self.count)
        self.events.ids = <const int32_t*>_elements(ids, np.int32, self.count)
        self.events.sizes = <const int64_t*>_elements(sizes, np.int64, self.count)
        self.events.streams = <const int16_t*>_elements(streams, np.int16, self.count)
        self.driver = driver_open(device)
        self.names = 1 + (int(ids.max()) if self.count else 0)
        self.kinds = 1 + (int(streams.max()) if self.count else 0)
        self.events.blocks = <Block**>calloc(self.names, sizeof(Block*))
        self.events.handles = <uint64_t*>calloc(self.kinds, sizeof(uint64_t))
        if self.events.blocks == NULL or self.events.handles == NULL:
            raise MemoryError("no host memory for the replay")

    def __dealloc__(self):
        free(self.events.blocks)
        free(self.events.handles)

    cdef int make_streams(self) except -1:
        cdef int64_t i
        for i in range(1, self.kinds):
            raise_for_status(
                self.driver.stream_create(self.driver.self, &self.events.handles[i], 0),
                "stream_create")
            stream_own(self.events.device, self.events.handles[i])
        return 0

    def run(self, int64_t end):
        """Run the events up to a number; return whether none failed."""
        cdef bint is_whole
        with nogil:                 # waiting for the GIL afterwards takes no time of the events
            self.spent_ns -= gt_now_ns()
            is_whole = _run(&self.events, min(end, self.count))
            self.spent_ns += gt_now_ns()
        return is_whole

    def run_on_threads(self, thread):
        """Run all events in order, each on its thread; return whether none failed."""
        _elements(thread, np.int16, self.count)
        ends = [*(np.flatnonzero(np.diff(thread)) + 1).tolist(), self.count]
        workers = [ThreadPoolExecutor(1) for _ in range(1 + thread.max(initial=0))]
        try:
            return all(workers[thread[end - 1]].submit(self.run, end).result()
                       for end in ends if end > 0)
        finally:
            for worker in workers:
                worker.shutdown()

    cdef int raise_for_event(self) except -1:
        cdef Events* e = &self.events
        raise_for_malloc(e.device, <size_t>e.sizes[e.done], e.handles[e.streams[e.done]], e.status)

    cdef int clear(self) except -1:
        cdef int64_t i
        for i in range(self.names):
            if self.events.blocks[i] != NULL:
                allocator_free(self.events.blocks[i])
        empty_cache(self.events.device)
        if self.events.device < -1:
            close_allocator(self.events.device)
        for i in range(1, self.kinds):
            if self.events.handles[i]:
                self.driver.stream_destroy(self.driver.self, self.events.handles[i])
        return 0


def replay_trace(op, id, size, stream, int device, thread=None):
    """Replay a trace on a device and return the peaks, the driver calls and the time.

    Parameters
    ----------
    op, id, size, stream : arrays of int8, int32, int64, int16
        Of equal length, as :func:`gputensor._alloc.replay.trace_file.read_trace` gives them.
    device : int
        The device's number. Its memory must not be in use: peaks are reset at the start.
    thread : array of int16, optional
        The thread of each event; without it, all events run on the calling thread.

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
    open_allocator(device)
    reset_peak(device)
    try:
        replay.make_streams()
        reset_counts(device)
        is_whole = replay.run(replay.count) if thread is None else replay.run_on_threads(thread)
        result = {
            "peak_requested_bytes": peak_nbytes(device, "requested_bytes"),
            "peak_reserved_bytes": peak_nbytes(device, "reserved_bytes"),
            "driver_calls": {name: n for name, n in counts(device).items() if n},
            "modelled_driver_seconds": modelled_seconds(device),
            "ns_per_event": replay.spent_ns / replay.count if replay.count else 0.0,
        }
        if not is_whole:
            replay.raise_for_event()
        return result
    finally:
        replay.clear()


def replay_settings(trace, int device, settings, limit_nbytes, double seconds):
    """Replay a trace on a host device that has no allocator yet, under settings of its own.

    Parameters
    ----------
    trace : Trace
        Of one thread.
    device : int
        A host device below -1. Its allocator is closed again.
    settings : Settings
        The settings of this device; those of others do not change.
    limit_nbytes : int or None
        How much may be reserved, whatever limits the settings contain.
    seconds : float
        The time after which to give up.

    Returns
    -------
    tuple of (int, int)
        How many events ran before one failed (all of them: the trace fits), and the most bytes that
        were reserved at one time.

    Raises
    ------
    TimeoutError
        The time was up.
    """
    cdef Replay replay = Replay((trace.op, trace.id, trace.size, trace.stream), device)
    cdef bint is_whole = True
    until = time.perf_counter() + seconds
    open_allocator(device, settings, limit_nbytes)
    try:
        replay.make_streams()
        while is_whole and replay.events.done < replay.count:
            if time.perf_counter() > until:
                raise TimeoutError(
                    f"replayed {replay.events.done} of {replay.count} events in {seconds:.1f} s")
            is_whole = replay.run(replay.events.done + CHUNK)
        return replay.events.done, peak_nbytes(device, "reserved_bytes")
    finally:
        replay.clear()
