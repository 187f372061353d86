"""Stream: one queue of work on one device, and the choice of the thread's current stream.

Every Stream() is a driver stream of its own. When it is dropped, its handle goes to a list for
reuse and is not destroyed: work queued on it finishes, memory whose log names the handle can still
be ordered after it, and making streams is cheap. So two live Streams never share a queue, and the
number of driver streams is the largest number that was alive at once.
"""

cdef enum:
    LEGACY_DEFAULT = 1          # CU_STREAM_LEGACY
    PER_THREAD_DEFAULT = 2      # CU_STREAM_PER_THREAD

cdef object event_type = None


@cython.no_gc
cdef class Stream:
    """A queue of work on a device: the work of one stream runs in order.

    Parameters
    ----------
    device : device, optional
        The device of the stream; the current device by default.
    priority : int
        Work of streams with lower numbers runs first when the device has a choice. A number outside
        the :meth:`priority_range` stands for the nearest one inside.
    non_blocking : bool
        CuPy's. It changes nothing: no stream waits for the default one unless their work shares
        memory.

    Attributes
    ----------
    device : Device
    device_number : int
    priority : int
    cuda_stream : int
        The driver's handle; 0 for the default stream. One that was read while the stream captured
        is for work of that capture; read it again for other work.

    Notes
    -----
    In a ``with`` statement (or through :func:`stream`) the stream and its device are current in
    this thread until the end of the block, also after an exception. Several threads may use one
    stream.

    Examples
    --------
    >>> s = Stream("host")
    >>> with s:
    ...     current_stream() == s
    True
    >>> s.query()
    True
    """

    null = NullStream()

    def __init__(self, device=None, priority=0, *, non_blocking=True):
        cdef int number = resolve_device(device)
        priority = nearest_priority(number, priority)
        self.drop()
        self.handle = handle_take(number, priority)
        self.device_number = number
        self.generation = device_generation(number)
        self.priority = priority
        self.is_owned = True

    def __dealloc__(self):
        self.drop()

    @property
    def device(self):
        """The device of the stream."""
        return device_object(self.device_number)

    @property
    def cuda_stream(self):
        """The driver's handle as an int."""
        self.open()
        return self.handle

    @property
    def _as_parameter_(self):
        """The handle as an argument of functions that ctypes calls."""
        return c_void_p(self.cuda_stream)

    def __cuda_stream__(self):
        """The protocol of CUDA libraries: ``(version, handle)``."""
        return 0, self.cuda_stream

    @staticmethod
    def priority_range(device=None):
        """Return ``(least, greatest)`` priority of a device; the greatest is the lowest number.

        >>> least, greatest = Stream.priority_range("host")
        >>> greatest <= least
        True
        """
        return priority_range(resolve_device(device))

    def query(self):
        """Return whether all work queued so far is done, without waiting."""
        cdef Driver* driver = self.driver()
        cdef uint64_t moment = wait_begun()
        cdef status_t status
        with nogil:
            status = driver.stream_query(driver.self, self.handle)
        if status == STATUS_NOT_READY:
            return False
        self.check(status, "stream_query")
        wait_succeeded(self.device_number, self.handle, moment)
        if order_is_checked():
            order_check_host(self.device_number, self.handle)
        return True

    def synchronize(self):
        """Wait until all work queued so far is done. Other threads run meanwhile."""
        cdef Driver* driver = self.driver()
        cdef uint64_t moment = wait_begun()
        cdef status_t status
        with nogil:
            status = driver.stream_synchronize(driver.self, self.handle)
        self.check(status, "stream_synchronize")
        wait_succeeded(self.device_number, self.handle, moment)
        if order_is_checked():
            order_check_host(self.device_number, self.handle)
        after_synchronize(self.device_number)

    def is_capturing(self):
        """Return whether work queued now goes into a graph instead of running.

        >>> Stream("host").is_capturing()
        False
        """
        cdef int active
        self.driver()
        active = stream_captures(self.device_number, self.handle)
        return active > 0

    def wait_event(self, event):
        """Make work queued from now on wait for `event`; this thread does not wait."""
        if not isinstance(event, find_event_type()):
            raise argument_error(TypeError, "event", event, "an Event")
        event.wait(self)

    def wait_stream(self, stream):
        """Make work queued from now on wait for the work that `stream` holds now.

        This thread does not wait, unless one stream is on a host device and the other on CUDA.
        """
        cdef Stream other = any_stream(stream, self.device_number)
        cdef status_t status
        cdef int device = self.device_number
        if other.device_number != device:
            other.record_event().wait(self)
            return
        self.driver()
        with nogil:
            status = stream_wait_stream(device, self.handle, other.handle)
        self.check(status, "stream_wait_event")

    def record_event(self, event=None):
        """Record `event`, or a new Event, after the work queued so far, and return it."""
        if event is None:
            event = find_event_type()()
        elif not isinstance(event, find_event_type()):
            raise argument_error(TypeError, "event", event, "an Event")
        event.record(self)
        return event

    # CuPy's names of the above.

    @property
    def ptr(self):
        """The driver's handle as an int: CuPy's name for `cuda_stream`."""
        return self.cuda_stream

    @property
    def done(self):
        """Whether all work queued so far is done, without waiting: CuPy's `query`."""
        return self.query()

    def record(self, event=None):
        """Record `event`, or a new one that takes the time, and return it: CuPy's name."""
        return self.record_event(find_event_type()(enable_timing=True) if event is None else event)

    def use(self):
        """Make the stream current in this thread, and return it: CuPy's `set_stream`."""
        set_stream(self)
        return self

    def __enter__(self):
        cdef Stream entered = traced_stream(self) if is_tracing() else self
        entered.driver()
        enter_stream(entered.device_number, entered.handle, entered)
        return self

    def __exit__(self, kind, value, trace):
        leave()

    def __eq__(self, other):
        if not isinstance(other, Stream):
            return NotImplemented
        return (self.device_number == (<Stream>other).device_number
                and self.handle == (<Stream>other).handle)

    def __hash__(self):
        return hash((device_text(self.device_number), self.handle))  # hash(-1) is hash(-2)

    def __repr__(self):
        return (f"<{type(self).__name__} device={device_text(self.device_number)} "
                f"handle={self.handle:#x} priority={self.priority}>")

    cdef int drop(self) except -1:
        if self.is_owned:
            self.is_owned = False
            if self.generation != device_generation(self.device_number):
                return 0
            handle_keep(self.device_number, self.handle, self.priority)
        return 0

    cdef Driver* driver(self) except NULL:
        cdef Driver* driver = driver_get(self.device_number)
        if driver == NULL or self.generation != device_generation(self.device_number):
            raise_closed(self.device_number, self.generation, "stream")
        self.open()
        return driver

    # A program that uses a stream made for captures outside of them makes it one like others.
    cdef int open(self) except -1:
        if self.is_private and self.generation == device_generation(self.device_number):
            self.check(graph_stream_open(self.device_number, self.handle), "stream_wait_event")
        return 0

    cdef int check(self, status_t status, str call) except -1:
        if status != STATUS_OK:
            raise_for_status(status, call, f"on stream {self.handle:#x} of "
                             f"{device_text(self.device_number)}")
        return 0


@cython.no_gc
cdef class ExternalStream(Stream):
    """A stream that another library made.

    Parameters
    ----------
    stream_ptr : int
        The driver's handle (``CUstream``). On CUDA, 1 (the legacy default stream) means the same as
        0.
    device : device, optional
        The device of the stream; the current device by default.

    Notes
    -----
    The stream is not destroyed when the object is dropped. It has to stay valid as long as any
    tensor that was used on it lives: freeing that tensor, or using it elsewhere, records an event
    on the stream.

    Examples
    --------
    >>> s = Stream("host")
    >>> ExternalStream(s.cuda_stream, "host") == s
    True
    """

    def __init__(self, stream_ptr, device=None):
        cdef int number = resolve_device(device)
        if isinstance(stream_ptr, bool) or not isinstance(stream_ptr, int):
            raise argument_error(TypeError, "stream_ptr", stream_ptr, "an int")
        if not 0 <= stream_ptr < 2**64:
            raise argument_error(ValueError, "stream_ptr", stream_ptr,
                                 "a stream handle of the driver")
        if number >= 0 and stream_ptr == PER_THREAD_DEFAULT:
            raise argument_error(ValueError, "stream_ptr",
                                 Described("2, the per-thread default stream"),
                                 "a handle that names the same stream in every thread")
        self.drop()
        self.handle = 0 if number >= 0 and stream_ptr == LEGACY_DEFAULT else stream_ptr
        self.device_number = number
        self.generation = device_generation(number)
        self.is_private = True      # for all that is known here
        self.open()


cdef tuple priority_range(int device):
    cdef Driver* driver = driver_get(device)
    cdef int least = 0, greatest = 0
    cdef status_t status = driver.stream_priority_range(driver.self, &least, &greatest)
    if status != STATUS_OK:
        raise_for_status(status, "stream_priority_range", f"on {device_text(device)}")
    return least, greatest


cdef object nearest_priority(int device, object priority):
    if isinstance(priority, bool) or not isinstance(priority, int):
        raise argument_error(TypeError, "priority", priority, "an int")
    if priority == 0:
        return 0
    least, greatest = priority_range(device)
    return min(max(priority, greatest), least)


cdef object find_event_type():
    # event.pxi comes after this file in the module, so its type is looked up at first use.
    global event_type
    if event_type is None:
        from gputensor.streams.queue import Event
        event_type = Event
    return event_type


# ---- stream arguments ----

cdef Stream any_stream(object stream, int device):
    cdef ExternalStream made
    if isinstance(stream, Stream):
        (<Stream>stream).open()
        return traced_stream(<Stream>stream) if is_tracing() else <Stream>stream
    if getattr(stream, "__cuda_stream__", None) is None:
        raise argument_error(TypeError, "stream", stream,
                             "a Stream or an object with __cuda_stream__")
    made = ExternalStream(protocol_handle(stream), device)
    made.owner = stream
    return made


cdef Stream stream_argument(object stream, int device):
    cdef Stream found
    if stream is None:
        return current_of(device)
    found = any_stream(stream, device)
    if found.device_number != device:
        raise argument_error(ValueError, "stream",
                             Described(f"a stream on {device_text(found.device_number)}"),
                             f"one on {device_text(device)}")
    return found


cdef int resolve_stream(object stream, int device, uint64_t* handle) except -1:
    if stream is None:
        handle[0] = current_handle(device)
    else:
        handle[0] = stream_argument(stream, device).handle
    return 0


cdef Stream default_of(int device):
    cdef DeviceStreams kept = streams_of(device)
    cdef Stream made = kept.default_stream
    if made is None:
        made = kept.default_stream = Stream.__new__(Stream)
        made.device_number = device
        made.generation = device_generation(device)
    return made


cdef Stream current_of(int device):
    found = current_stream_object(device)
    return default_of(device) if found is None else <Stream>found


# While a function is traced: the stream of the tracer's device that stands for this one.
cdef Stream traced_stream(Stream given):
    return current_tracer().stream(given)


# ---- functions ----

def current_stream(device=None):
    """Return this thread's current stream on a device (the current device by default).

    >>> current_stream("host") == default_stream("host")
    True
    """
    return current_of(resolve_device(device))


def default_stream(device=None):
    """Return the default stream of a device, which a thread uses until it chooses another one.

    >>> default_stream("host").cuda_stream
    0
    """
    return default_of(resolve_device(device))


def set_stream(stream):
    """Make a stream, and its device, current in this thread.

    Prefer :func:`stream` in a ``with`` statement, which restores the previous one. The thread
    keeps the stream alive while it is current.

    Parameters
    ----------
    stream : Stream or object with ``__cuda_stream__``
        None changes nothing.

    Examples
    --------
    >>> former, side = current_stream("host"), Stream("host")
    >>> set_stream(side)
    >>> current_stream("host") == side
    True
    >>> set_stream(former)
    """
    cdef Stream found
    if stream is None:
        return
    found = any_stream(stream, resolve_device(None))
    found.driver()
    make_device_current(found.device_number)
    make_stream_current(found.device_number, found.handle, found)


class NoStream:
    """The context of ``stream(None)``: changes nothing."""

    __slots__ = ()

    def __enter__(self):
        return None

    def __exit__(self, kind, value, trace):
        return None


cdef object no_stream = NoStream()


def stream(stream):
    """Return a context in which a stream and its device are current in this thread.

    Parameters
    ----------
    stream : Stream, object with ``__cuda_stream__`` or None
        With None the context changes nothing.

    Examples
    --------
    >>> side = Stream("host")
    >>> with stream(side):
    ...     current_stream() is side
    True
    """
    if isinstance(stream, Stream):
        return stream
    if stream is None:
        return no_stream
    return any_stream(stream, resolve_device(None))


def get_stream_from_external(data_ptr, device=None):
    """Return the Stream of a driver handle that another library made.

    Parameters
    ----------
    data_ptr : int
        The driver's handle.
    device : device, optional
        The device of the stream; the current device by default.

    See Also
    --------
    ExternalStream : how long the handle has to stay valid.

    Examples
    --------
    >>> side = Stream("host")
    >>> get_stream_from_external(side.cuda_stream, "host") == side
    True
    """
    return ExternalStream(data_ptr, device)


def synchronize(device=None):
    """Wait until all work of a device (the current one by default) is done.

    Errors of work that was queued earlier are raised here. Other threads run meanwhile.

    >>> synchronize("host")
    """
    cdef int number = resolve_device(device)
    cdef uint64_t moment = wait_begun()
    cdef status_t status
    with nogil:
        status = allocator_synchronize(number)
    if status != STATUS_OK:
        raise_for_status(status, "synchronize", f"of {device_text(number)}")
    wait_succeeded_for_all(number, moment)
    if order_is_checked():
        order_check_host_all(number)
    after_synchronize(number)


# ---- after a wait ----

cdef int after_synchronize(int device) except -1:
    return slots_synchronize(device) if device < 0 else 0
