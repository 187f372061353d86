"""``ordering("check")``: uses of memory that no wait puts in an order are errors.

Each stream has a clock with a count for every stream: how much of that stream's work its next work
comes after. A use adds one to the stream's own count; a record of an event keeps the clock of its
stream; a wait joins the event's clock into the waiter's, and a wait of the host joins it into that
of all later work. A use is ordered after a former one exactly when the count of the former is in
its stream's clock. Replays of graphs are checked in captures only.

Only threads in this mode record their uses. These functions take the GIL, and they are not called
before some thread has chosen the mode, which `order_checked` tests without the GIL.
"""

cdef int STATUS_UNORDERED = -3      # of a use; the exception to raise is in `unordered`

cdef object unordered = threading.local()
cdef dict check_clocks = {}         # (device, stream) -> {(device, stream): count}
cdef dict check_events = {}         # (device, event) -> the clock at its latest record
cdef dict check_uses = {}           # address of a log -> [last write, {stream: read}]
cdef dict check_replays = {}        # (device, capture) -> {memory: [last replay, {stream: use}]}
cdef dict check_host = {}           # the clock of all that the host has waited for
cdef str check_folder = os.path.dirname(os.path.dirname(os.path.dirname(
    os.path.abspath(__file__)))) + os.sep


cdef inline bint order_checked() noexcept nogil:
    return count_read(&watched) & 1


cdef void order_check_begin() noexcept:
    if not order_checked():
        count_change(&watched, 1)


cdef bint order_is_checked() noexcept nogil:
    return order_checked()


cdef dict check_clock(tuple stream):
    cdef dict clock = check_clocks.get(stream)
    if clock is None:
        clock = check_clocks[stream] = {}
    return clock


cdef int check_join(dict clock, dict other) except -1:
    for stream, count in other.items():
        if clock.get(stream, 0) < count:
            clock[stream] = count
    return 0


cdef str check_place():
    """``file:line in function`` of the innermost frame outside this library."""
    cdef object frame = sys._getframe(0)
    while frame.f_back is not None and os.path.abspath(
            frame.f_code.co_filename).startswith(check_folder):
        frame = frame.f_back
    return f"{frame.f_code.co_filename}:{frame.f_lineno} in {frame.f_code.co_name}"


# Checks a use by a thread in this mode; `names` are those of its memory in the capture. A refused
# use is not recorded, since it is not queued.
cdef status_t check_use(UseLog* log, uint64_t stream, bint is_write, uint64_t capture_id,
                        vector[uint64_t]& names) noexcept nogil:
    with gil:
        try:
            known = check_uses.setdefault(<size_t>log, [None, {}])
            replays = check_memory(log.device, capture_id, names)
            return check_against((log.device, stream), "write" if is_write else "read",
                                 [known] if is_write else [], replays if is_write else
                                 [known, *replays])
        except BaseException as error:
            unordered.error = error
            return STATUS_UNORDERED


# The same for a replay in a capture.
cdef status_t check_replay(int device, uint64_t stream, uint64_t capture_id,
                           const Captured& graph) noexcept nogil:
    with gil:
        try:
            return check_against((device, stream), "replay",
                                 check_memory(device, capture_id, graph.own),
                                 check_memory(device, capture_id, graph.shared))
        except BaseException as error:
            unordered.error = error
            return STATUS_UNORDERED


# The uses of some memory in a capture, each as in check_uses: a replay is a write.
cdef list check_memory(int device, uint64_t capture_id, const vector[uint64_t]& names):
    cdef dict known
    cdef size_t i
    if not names.size():
        return []
    known = check_replays.setdefault((device, capture_id), {})
    return [known.setdefault(names[i], [None, {}]) for i in range(names.size())]


cdef void check_forget_capture(int device, uint64_t capture_id) noexcept nogil:
    with gil:
        check_replays.pop((device, capture_id), None)


# Checks and records one use of all memory that it writes or reads.
cdef status_t check_against(tuple stream, str kind, list written, list read) except? -1:
    cdef dict clock = check_clock(stream)
    cdef tuple use
    cdef list known
    check_join(clock, check_host)
    use = stream, clock.get(stream, 0) + 1, check_place(), kind
    for known in written + read:
        check_after(use, known[0], clock)
    for known in written:
        for former in (<dict>known[1]).values():
            check_after(use, former, clock)
    for known in written:
        known[0], known[1] = use, {}
    for known in read:
        known[1][stream] = use
    clock[stream] = use[1]
    return STATUS_OK


# Raises when a use is not ordered after a former one; a use is (stream, count, place, kind).
cdef int check_after(tuple use, tuple former, dict clock) except -1:
    if former is None or former[0] == use[0] or clock.get(former[0], 0) >= former[1]:
        return 0
    cdef str what = f"{former[3]} of"
    if former[3] == "replay":
        what = "replay of a graph with"
    raise UnorderedAccessError(
        f"{use[3]} on {stream_text(use[0])} at {use[2]}: not ordered after the {what} the same "
        f"memory on {stream_text(former[0])} at {former[2]}", use[2], former[2])


cdef str stream_text(tuple stream):
    return f"stream {stream[1]:#x} of {device_text(stream[0])}"


cdef void check_forget(const UseLog* log) noexcept nogil:
    with gil:
        check_uses.pop(<size_t>log, None)


cdef void order_check_recorded(int device, uint64_t stream, uint64_t event) noexcept nogil:
    with gil:
        check_events[device, event] = dict(check_clock((device, stream)))


cdef void order_check_waits(int device, uint64_t stream, int peer, uint64_t event) noexcept nogil:
    with gil:
        check_join(check_clock((device, stream)), check_events.get((peer, event), {}))


cdef void check_stream_waits(int device, uint64_t waiter, int peer, uint64_t other) noexcept nogil:
    with gil:
        check_join(check_clock((device, waiter)), check_clock((peer, other)))


cdef int order_check_replayed(int device, uint64_t stream, list members) except -1:
    # The uses of the captures count on the streams of the captures.
    for member in members:
        check_join(check_clock((device, stream)), check_clock((device, member)))
    return 0


cdef void order_check_host(int device, uint64_t stream) noexcept nogil:
    with gil:
        check_join(check_host, check_clock((device, stream)))


cdef void order_check_host_event(int device, uint64_t event) noexcept nogil:
    with gil:
        check_join(check_host, check_events.get((device, event), {}))


cdef void order_check_host_all(int device) noexcept nogil:
    with gil:
        for stream, clock in check_clocks.items():
            if stream[0] == device:
                check_join(check_host, clock)
