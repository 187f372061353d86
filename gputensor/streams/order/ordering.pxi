"""Automatic ordering of uses of one memory on several streams.

Each storage has a UseLog: the stream of the last write, and the streams that have read since. A
read on another stream waits for the writer, a write for the writer and the readers; a stream that
has waited is known to be ordered until the next write. The event of a wait is recorded when the
wait is made, not when the memory is used: a program on one stream makes no driver call for
ordering.

These functions do not need the GIL. A log's lock protects its list; the rule for callers in
__init__.pxd makes the order of uses of one memory the order of their work. held_reads.h has the
waits for held logs.
"""

cdef extern from "gputensor/streams/order/spin_lock.h":
    void spin_acquire(int* lock) noexcept nogil
    void spin_release(int* lock) noexcept nogil

cdef extern from "gputensor/streams/order/setting_undo.h" nogil:
    cdef cppclass ThreadSettingUndo:
        int* setting
        int former
        int* (*own)() noexcept nogil

cdef extern from "gputensor/streams/order/held_reads.h" namespace "gputensor" nogil:
    void held_change(int* held, int by)
    void held_wait(const int* held)
    const int* held_anywhere()
    void held_renew()

cdef extern from *:
    """
    static thread_local int gputensor_manual_ordering = 0;
    static inline int manual_ordering() { return gputensor_manual_ordering; }
    static int* manual_ordering_cell() { return &gputensor_manual_ordering; }
    static inline void set_manual_ordering(int manual) { gputensor_manual_ordering = manual; }
    """
    int manual_ordering() noexcept nogil
    int* manual_ordering_cell() noexcept nogil
    void set_manual_ordering(int manual) noexcept nogil

cdef enum:                      # the mode of a thread
    AUTOMATIC = 0
    MANUAL = 1
    CHECKED = 2                 # as MANUAL, and unordered uses are errors (check.pxi)

cdef enum:
    STATUS_CAPTURE_ISOLATION = 905
    STATUS_CAPTURE_IMPLICIT = 906

# No stream's handle: two streams or more have used the memory since its last write.
cdef uint64_t ORDERING_SEVERAL = <uint64_t>-1


cdef void use_log_init(UseLog* log, int device, uint64_t stream) noexcept nogil:
    log.only = log.writer = stream
    log.stamp = wait_clock
    log.uses = NULL
    log.count = log.capacity = 0
    log.device = device
    log.writer_reads = 0
    log.lock = 0
    log.held = 0
    log.noted = ORDERING_SEVERAL
    log.captures = NULL


cdef bint use_log_has(const UseLog* log, uint64_t stream) noexcept nogil:
    cdef int i
    for i in range(log.count):
        if log.uses[i].stream == stream:
            return True
    return log.writer == stream


cdef void use_log_drop(UseLog* log) noexcept nogil:
    cdef int i
    if order_checked():
        check_forget(log)
    if count_read(&private_count):
        # The allocator waits for these streams before the memory is used again. Without the waits
        # it may be used too early, but not before the replays of a graph that lives long enough.
        for i in range(log.count):
            graph_stream_give(log.device, log.uses[i].stream)
    del log.captures
    log.captures = NULL
    free(log.uses)
    log.uses = NULL
    log.count = log.capacity = 0


cdef inline void stamp(UseLog* log) noexcept nogil:
    if log.stamp != wait_clock:
        log.stamp = wait_clock


cdef status_t order_read(UseLog* log, Block* block, uint64_t stream) noexcept nogil:
    if count_read(&watched):
        return order_watched(log, block, stream, False)
    if log.only == stream:
        stamp(log)
        return STATUS_OK
    return order_read_among(log, block, stream)


cdef status_t order_write(UseLog* log, Block* block, uint64_t stream) noexcept nogil:
    if count_read(&watched):
        return order_watched(log, block, stream, True)
    if log.only == stream:
        stamp(log)
        return STATUS_OK
    return order_write_among(log, block, stream)


# While a thread checks its uses, or a stream captures.
cdef status_t order_watched(UseLog* log, Block* block, uint64_t stream,
                            bint is_write) noexcept nogil:
    cdef status_t status = watched_use(log, block, stream, is_write)
    if status != STATUS_OK:
        return status
    if log.only == stream:
        stamp(log)
        return STATUS_OK
    if is_write:
        return order_write_among(log, block, stream)
    return order_read_among(log, block, stream)


cdef status_t order_read_among(UseLog* log, Block* block, uint64_t stream) noexcept nogil:
    cdef status_t status = STATUS_OK
    cdef Use* use
    spin_acquire(&log.lock)
    if graph_streams_count():
        touch_graphs(log, stream)
    if log.writer == stream:
        log.writer_reads = 1
        stamp(log)
    else:
        use = use_of(log, block, stream, &status)
        if use != NULL and not use.is_live:
            status = wait_for_use(log.device, stream, log.writer, log.stamp, True)
            if status == STATUS_OK:
                use.is_live = 1
                log.only = ORDERING_SEVERAL
        if use != NULL:
            use.stamp = wait_clock
    spin_release(&log.lock)
    return status


cdef status_t order_write_among(UseLog* log, Block* block, uint64_t stream) noexcept nogil:
    cdef status_t status = STATUS_OK
    cdef Use* use = NULL
    cdef int i
    if log.held:
        wait_while(&log.held)
    spin_acquire(&log.lock)
    if graph_streams_count():
        touch_graphs(log, stream)
    if log.writer != stream:
        use = use_of(log, block, stream, &status)
        # A reader has waited for all that the writer did, unless the writer read afterwards.
        if status == STATUS_OK and (not use.is_live or log.writer_reads):
            status = wait_for_use(log.device, stream, log.writer, log.stamp, True)
    for i in range(log.count):
        if status != STATUS_OK:
            break
        if log.uses[i].is_live and log.uses[i].stream != stream:
            status = wait_for_use(log.device, stream, log.uses[i].stream, log.uses[i].stamp,
                                  False)
    if status == STATUS_OK and log.writer != stream:
        # The former writer stays listed: replays need every stream that used the memory.
        use_of(log, block, log.writer, &status)
    if status == STATUS_OK:
        for i in range(log.count):
            log.uses[i].is_live = 0
        log.writer = log.only = stream
        log.writer_reads = 0
        log.stamp = wait_clock
    spin_release(&log.lock)
    return status


cdef void touch_graphs(UseLog* log, uint64_t stream) noexcept nogil:
    # Replays use memory without updating logs; graph_streams.pxi orders them with `stream`. Nothing
    # is new if the latest caller was the same stream, and no stream became a graph's since then:
    # a new name in the log comes from another caller.
    cdef int changes = count_read(&member_changes)
    cdef int i
    if log.noted == stream and log.noted_changes == changes:
        return
    log.noted = stream
    log.noted_changes = changes
    graph_stream_touch(log.device, log.writer, stream)
    for i in range(log.count):
        graph_stream_touch(log.device, log.uses[i].stream, stream)


cdef Use* use_of(UseLog* log, Block* block, uint64_t stream, status_t* status) noexcept nogil:
    # Finds the stream's entry or adds one; a new stream is reported to the allocator first.
    cdef Use* uses
    cdef int i, capacity
    for i in range(log.count):
        if log.uses[i].stream == stream:
            return &log.uses[i]
    if log.count == log.capacity:
        capacity = 2 * log.capacity + 4
        uses = <Use*>realloc(log.uses, capacity * sizeof(Use))
        if uses == NULL:
            status[0] = STATUS_OUT_OF_MEMORY
            return NULL
        log.uses = uses
        log.capacity = capacity
    if block != NULL and block.stream != stream:
        status[0] = allocator_record_stream(block, stream)
        if status[0] != STATUS_OK:
            return NULL
    log.uses[log.count] = Use(stream, 0, wait_clock)
    log.count += 1
    return &log.uses[log.count - 1]


# ---- held reads ----

cdef void use_log_hold(UseLog* log) noexcept nogil:
    spin_acquire(&log.lock)
    # No stream owns the log alone, so that no write takes the fast path.
    log.only = ORDERING_SEVERAL
    log.writer_reads = 1
    spin_release(&log.lock)
    held_change(&log.held, 1)


cdef void use_log_release(UseLog* log) noexcept nogil:
    held_change(&log.held, -1)


cdef void wait_for_held() noexcept nogil:
    if held_anywhere()[0]:
        wait_while(held_anywhere())


cdef void wait_while(const int* held) noexcept nogil:
    # The read may follow work that this thread has queued and not run.
    section_pay()
    held_wait(held)


# ---- waits ----

cdef bint ordering_is_manual() noexcept nogil:
    return manual_ordering()


cdef status_t wait_for_use(int device, uint64_t waiter, uint64_t other, uint64_t used,
                           bint other_wrote) noexcept nogil:
    # Orders `waiter` after the use of the memory on `other`, stamped `used`, as far as the capture
    # of either allows it.
    cdef Driver* driver = driver_get(device)
    cdef int waiter_captures, other_captures
    cdef uint64_t waiter_capture, other_capture
    cdef status_t status
    if manual_ordering():
        return STATUS_OK
    status = capture_of(driver, waiter, &waiter_captures, &waiter_capture)
    if status == STATUS_OK:
        status = capture_of(driver, other, &other_captures, &other_capture)
    if status != STATUS_OK:
        return status
    if waiter_captures and not other_captures:
        # An event of a stream outside would break the capture. It is not needed when the use is
        # done; when the use is not done, the two cannot be ordered.
        if is_waited_for(device, other, used):
            return STATUS_OK
        status = (query_private(device, other) if graph_stream_is_private(device, other)
                  else driver.stream_query(driver.self, other))
        return STATUS_CAPTURE_ISOLATION if status == STATUS_NOT_READY else status
    if other_captures and not waiter_captures:
        # A write by `other` happens only when the graph runs. A read has not run, unless it was
        # queued before the capture.
        if other_wrote:
            return STATUS_CAPTURE_ISOLATION
        return capture_wait_before(device, waiter, other)
    if waiter_captures and waiter_capture != other_capture:
        return STATUS_CAPTURE_ISOLATION
    if waiter_captures and is_before_capture(device, other, used):
        return STATUS_OK
    if not waiter_captures and graph_stream_is_private(device, other):
        if order_checked():
            check_stream_waits(device, waiter, device, other)
        return wait_for_private(device, waiter, other)
    return stream_wait_stream(device, waiter, other)


cdef status_t capture_of(Driver* driver, uint64_t stream, int* captures,
                         uint64_t* capture) noexcept nogil:
    cdef status_t status
    captures[0] = 0
    capture[0] = 0
    status = driver.capture_info(driver.self, stream, captures, capture)
    # The legacy default stream cannot capture; a query returns this status while another one does.
    return STATUS_OK if status == STATUS_CAPTURE_IMPLICIT and stream == 0 else status


cdef status_t stream_wait_stream(int device, uint64_t waiter, uint64_t other) noexcept nogil:
    cdef Driver* driver = driver_get(device)
    cdef uint64_t event
    cdef Mark* before = NULL
    cdef status_t status = STATUS_OK
    if waiter == other:
        return STATUS_OK
    if captures_active():
        status = capture_joining(device, waiter, &before)
    if status == STATUS_OK:
        status = event_behind(device, other, &event)
    if status == STATUS_OK:
        status = driver.stream_wait_event(driver.self, waiter, event)
        event_return(device, event)
    if before != NULL or captures_active():
        capture_joined(device, waiter, before)
    if status == STATUS_OK and order_checked():
        check_stream_waits(device, waiter, device, other)
    return status


cdef status_t stream_wait_peer(int device, uint64_t waiter, int peer,
                               uint64_t other) noexcept nogil:
    cdef Driver* driver = driver_get(device)
    cdef uint64_t event
    cdef status_t status = event_behind(peer, other, &event)
    if status == STATUS_OK:
        status = driver.wait_for_peer(driver.self, waiter, peer, event)
        event_return(peer, event)
    if status == STATUS_OK and order_checked():
        check_stream_waits(device, waiter, peer, other)
    return status


cdef int raise_for_order(int device, uint64_t stream, status_t status) except -1:
    if status == STATUS_OK:
        return 0
    if status == STATUS_UNORDERED:
        error, unordered.error = unordered.error, None
        raise error
    if status == STATUS_CAPTURE_ISOLATION:
        facts = (
            f"ordering stream {stream:#x} of {device_text(device)}: memory is used inside and "
            "outside a graph capture, and the work on it outside is not done (synchronize "
            "before the capture, or let both streams take part in it)"
        )
    else:
        facts = f"ordering stream {stream:#x} of {device_text(device)}"
    raise_for_status(status, "stream_wait_event", facts)
    return 0


# ---- the mode ----

ORDERING_MODES = ("auto", "manual", "check")

cdef class ordering:
    """Choose automatic or manual ordering between streams, for this thread.

    Parameters
    ----------
    mode : {"auto", "manual", "check"}
        ``"auto"`` (the default of every thread): an operation waits for the uses of its arguments
        on other streams. ``"manual"``: no waits are inserted; the program orders its streams itself
        with :meth:`Stream.wait_stream` and events. ``"check"``: as manual, and a use of memory that
        is not ordered after earlier uses by threads in this mode raises an
        :class:`UnorderedAccessError` that names both places in the program; slow, for tests. In all
        modes, memory is not reused before the work of every stream that used it is done.

    Notes
    -----
    The mode changes when the object is made, so a plain call sets it. A ``with`` statement restores
    the former mode at the end, also after an exception, and after one that a signal handler raises
    before the block begins.

    Examples
    --------
    >>> with ordering("manual"):
    ...     ordering_mode()
    'manual'
    >>> ordering_mode()
    'auto'
    """

    cdef int former
    cdef ThreadSettingUndo undo

    def __cinit__(self, mode):
        if mode not in ORDERING_MODES:
            raise argument_error(ValueError, "mode", mode, "'auto', 'manual' or 'check'")
        if mode == "check":
            order_check_begin()
        self.former = manual_ordering()
        self.undo.setting = manual_ordering_cell()
        self.undo.former = self.former
        self.undo.own = manual_ordering_cell
        set_manual_ordering(ORDERING_MODES.index(mode))

    def __enter__(self):
        self.undo.setting = NULL
        return self

    def __exit__(self, kind, value, trace):
        set_manual_ordering(self.former)


def ordering_mode():
    """Return the ordering mode of this thread, ``"auto"``, ``"manual"`` or ``"check"``.

    >>> ordering_mode()
    'auto'
    """
    return ORDERING_MODES[manual_ordering()]
