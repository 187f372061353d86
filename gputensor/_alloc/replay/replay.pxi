"""Runs a recorded trace of mallocs and frees through the allocator itself.

On a phantom host device this is the simulator: the same code and the same decisions as on a GPU,
with no memory behind the addresses and the driver's time charged by the cost model. Ids are dense
(trace_file.py checks that); streams other than 0 are made for the replay.
"""

cdef enum:
    CHUNK = 2048                # events between two looks at the clock


# Runs the events; gives the index of the event that failed, or -1.
cdef int64_t _run(int device, const int8_t* op, const int32_t* ids, const int64_t* sizes,
                  const int16_t* streams, int64_t events, const uint64_t* handles,
                  Block** blocks, status_t* status) noexcept nogil:
    cdef int64_t i
    for i in range(events):
        if op[i] > 0:
            blocks[ids[i]] = allocator_malloc(device, <size_t>sizes[i], handles[streams[i]], status)
            if blocks[ids[i]] == NULL:
                return i
        else:
            allocator_free(blocks[ids[i]])
            blocks[ids[i]] = NULL
    return -1


# The first of `count` elements. Typed memoryviews would do the same, for 15,000 lines of C++ a
# module.
cdef uintptr_t _elements(object array, type scalar, Py_ssize_t count) except? 1:
    if array.dtype != scalar or array.shape != (count,) or not array.flags.c_contiguous:
        raise ValueError(f"trace: got {array.dtype} of shape {array.shape}; "
                         f"expected {scalar.__name__} of shape ({count},), contiguous")
    return array.__array_interface__["data"][0]


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
    cdef int64_t events = len(op)
    cdef const int8_t* ops = <const int8_t*>_elements(op, np.int8, events)
    cdef const int32_t* ids = <const int32_t*>_elements(id, np.int32, events)
    cdef const int64_t* sizes = <const int64_t*>_elements(size, np.int64, events)
    cdef const int16_t* streams = <const int16_t*>_elements(stream, np.int16, events)
    cdef int64_t failed = -1
    cdef int64_t i, names, kinds
    cdef status_t status = 0
    cdef Driver* driver = driver_open(device)
    cdef Block** blocks = NULL
    cdef uint64_t* handles = NULL
    open_allocator(device)
    names = 1 + (int(id.max()) if events else 0)
    kinds = 1 + (int(stream.max()) if events else 0)
    blocks = <Block**>calloc(names, sizeof(Block*))
    handles = <uint64_t*>calloc(kinds, sizeof(uint64_t))
    if blocks == NULL or handles == NULL:
        free(blocks)
        free(handles)
        raise MemoryError("no host memory for the replay")
    reset_peak(device)
    try:
        for i in range(1, kinds):
            raise_for_status(driver.stream_create(driver.self, &handles[i], 0), "stream_create")
            stream_own(device, handles[i])
        reset_counts(device)
        start = time.perf_counter_ns()
        if events:
            with nogil:
                failed = _run(device, ops, ids, sizes, streams, events, handles, blocks, &status)
        elapsed = time.perf_counter_ns() - start
        result = {
            "peak_requested_bytes": peak_requested_nbytes(device),
            "peak_reserved_bytes": peak_reserved_nbytes(device),
            "driver_calls": {name: n for name, n in counts(device).items() if n},
            "modelled_driver_seconds": modelled_seconds(device),
            "ns_per_event": elapsed / events if events else 0.0,
        }
        if failed >= 0:
            raise_for_malloc(device, <size_t>sizes[failed], handles[streams[failed]], status)
        return result
    finally:
        _clear(driver, device, blocks, names, handles, kinds)


cdef int _clear(Driver* driver, int device, Block** blocks, int64_t names, uint64_t* handles,
                int64_t kinds) except -1:
    cdef int64_t i
    for i in range(names):
        if blocks[i] != NULL:
            allocator_free(blocks[i])
    empty_cache(device)
    if device < -1:
        close_allocator(device)
    for i in range(1, kinds):
        if handles[i]:
            driver.stream_destroy(driver.self, handles[i])
    free(blocks)
    free(handles)
    return 0


def replay_settings(op, id, size, stream, int device, settings, limit_nbytes, double seconds):
    """Replay a trace on a host device that has no allocator yet, under settings of its own.

    Parameters
    ----------
    op, id, size, stream : arrays
        As for :func:`replay_trace`; not empty.
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
    cdef int64_t events = len(op)
    cdef const int8_t* ops = <const int8_t*>_elements(op, np.int8, events)
    cdef const int32_t* ids = <const int32_t*>_elements(id, np.int32, events)
    cdef const int64_t* sizes = <const int64_t*>_elements(size, np.int64, events)
    cdef const int16_t* streams = <const int16_t*>_elements(stream, np.int16, events)
    cdef int64_t names = 1 + int(id.max())
    cdef int64_t kinds = 1 + int(stream.max())
    cdef int64_t done = 0, failed = -1, count
    cdef int64_t i
    cdef status_t status = 0
    cdef Driver* driver = driver_open(device)
    cdef Block** blocks = <Block**>calloc(names, sizeof(Block*))
    cdef uint64_t* handles = <uint64_t*>calloc(kinds, sizeof(uint64_t))
    if blocks == NULL or handles == NULL:
        free(blocks)
        free(handles)
        raise MemoryError("no host memory for the replay")
    until = time.perf_counter() + seconds
    open_allocator(device, settings, limit_nbytes)
    try:
        for i in range(1, kinds):
            raise_for_status(driver.stream_create(driver.self, &handles[i], 0), "stream_create")
            stream_own(device, handles[i])
        while done < events and failed < 0:
            if time.perf_counter() > until:
                raise TimeoutError(f"replayed {done} of {events} events in {seconds:.1f} s")
            count = min(events - done, CHUNK)
            with nogil:
                failed = _run(device, ops + done, ids + done, sizes + done, streams + done, count,
                              handles, blocks, &status)
            done += count if failed < 0 else failed
        return done, peak_reserved_nbytes(device)
    finally:
        _clear(driver, device, blocks, names, handles, kinds)
