"""``ordering("check")``: uses of memory that no wait puts in an order are errors.

Each stream has a clock with a count for every stream: how much of that stream's work its next work
comes after. A use adds one to the stream's own count; a record of an event keeps the clock of its
stream; a wait joins the event's clock into the waiter's, and a wait of the host joins it into that
of all later work. A use is ordered after a former one exactly when the count of the former is in
its stream's clock. Replays of graphs are not checked.

Only threads in this mode record their uses. These functions take the GIL, and they are not called
before some thread has chosen the mode, which `order_checked` tests without the GIL.
"""

cdef extern from *:
    """
    #include <atomic>
    static std::atomic<int> gputensor_order_checked{0};
    static inline int order_checked() {
        return gputensor_order_checked.load(std::memory_order_relaxed);
    }
    static inline void order_check_begin() { gputensor_order_checked = 1; }
    """
    int order_checked() noexcept nogil
    void order_check_begin() noexcept

cdef int STATUS_UNORDERED = -3      # of a use; the exception to raise is in `unordered`

cdef object unordered = threading.local()
cdef dict check_clocks = {}         # (device, stream) -> {(device, stream): count}
cdef dict check_events = {}         # (device, event) -> the clock at its latest record
cdef dict check_uses = {}           # address of a log -> [last write, {stream: read}]
cdef dict check_host = {}           # the clock of all that the host has waited for
cdef str check_folder = os.path.dirname(os.path.dirname(os.path.dirname(
    os.path.abspath(__file__)))) + os.sep


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


# Checks a use by a thread in this mode. A refused use is not recorded, since it is not queued.
cdef status_t check_use(UseLog* log, uint64_t stream, bint is_write) noexcept nogil:
    with gil:
        try:
            return check_use_held(log, stream, is_write)
        except BaseException as error:
            unordered.error = error
            return STATUS_UNORDERED


cdef status_t check_use_held(UseLog* log, uint64_t handle, bint is_write) except? -1:
    cdef tuple stream = (log.device, handle)
    cdef dict clock = check_clock(stream)
    cdef list known = check_uses.setdefault(<size_t>log, [None, {}])
    cdef tuple use
    check_join(clock, check_host)
    use = stream, clock.get(stream, 0) + 1, check_place(), "write" if is_write else "read"
    check_after(use, known[0], clock)
    if is_write:
        for former in (<dict>known[1]).values():
            check_after(use, former, clock)
        known[0], known[1] = use, {}
    else:
        known[1][stream] = use
    clock[stream] = use[1]
    return STATUS_OK


# Raises when a use is not ordered after a former one; a use is (stream, count, place, kind).
cdef int check_after(tuple use, tuple former, dict clock) except -1:
    if former is None or former[0] == use[0] or clock.get(former[0], 0) >= former[1]:
        return 0
    raise UnorderedAccessError(
        f"{use[3]} on {stream_text(use[0])} at {use[2]}: not ordered after the {former[3]} of the "
        f"same memory on {stream_text(former[0])} at {former[2]}", use[2], former[2])


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
