"""Event: a mark after the work of a stream, for waits and timing.

The driver event is made at the first record, on that stream's device. Plain events come from the
pool in event_pool.pxi and return to it; events with time stamps, and those for other processes or
graphs, are made and destroyed.
"""

# How long a blocking event sleeps between two queries, in seconds: the first sleep and the longest.
SLEEP_FIRST = 20e-6
SLEEP_LONGEST = 1e-3


cdef class Event:
    """A mark in a stream.

    Parameters
    ----------
    enable_timing : bool
        Keep a time stamp, for :meth:`elapsed_time`.
    blocking : bool
        :meth:`synchronize` sleeps between queries instead of spinning: less CPU time, but a return
        up to 1 ms later.
    interprocess : bool
        Other processes may open the event by its :meth:`ipc_handle`. Only on GPUs, and not together
        with `enable_timing`.
    external : bool
        In a capture, record and wait for the event as work of the graph: each replay records it
        anew, or waits for the record that is the latest when the replay is queued. The event has to
        live as long as the graph.

    Attributes
    ----------
    device : Device or None
        The device on which the event was first recorded; None before.
    cuda_event : int
        The driver's handle; 0 before the first record.

    Notes
    -----
    An event that was never recorded counts as done. Recording an event again moves the mark; waits
    that were queued before still refer to the former mark.

    Examples
    --------
    >>> from gputensor.streams import Stream
    >>> s, event = Stream("host"), Event()
    >>> event.query()
    True
    >>> event.record(s)
    >>> event.synchronize()
    >>> event.query()
    True
    """

    def __init__(self, enable_timing=False, blocking=False, interprocess=False, external=False):
        if self.handle:
            raise RuntimeError("an Event is initialized once; make another one")
        if enable_timing and interprocess:
            raise argument_error(ValueError, "interprocess", interprocess,
                                 "False for an event with time stamps")
        self.device_number = NO_DEVICE
        self.enable_timing = enable_timing
        self.blocking = blocking
        self.interprocess = interprocess
        self.external = external

    def __dealloc__(self):
        cdef Driver* driver
        if self.handle:
            driver = driver_get(self.device_number)
            if driver == NULL or self.generation != device_generation(self.device_number):
                return
            if self.is_own():
                driver.event_destroy(driver.self, self.handle)
            else:
                event_return(self.device_number, self.handle)

    @property
    def device(self):
        """The device on which the event was first recorded; None before."""
        return None if self.handle == 0 else device_object(self.device_number)

    @property
    def cuda_event(self):
        """The driver's handle as an int; 0 before the first record."""
        return self.handle

    @property
    def _as_parameter_(self):
        """The handle as an argument of functions that ctypes calls."""
        return c_void_p(self.handle)

    def record(self, stream=None):
        """Put the mark after the work that `stream` (the current one by default) holds now."""
        cdef Stream target
        cdef Driver* driver
        cdef uint64_t handle, moment
        cdef status_t status
        if self.handle:
            if isinstance(stream, Stream) and (<Stream>stream).device_number != self.device_number:
                raise argument_error(
                    ValueError, "stream",
                    Described(f"a stream on {device_text((<Stream>stream).device_number)}"),
                    f"one on {device_text(self.device_number)}, where this event was recorded")
            target = stream_argument(stream, self.device_number)
        elif isinstance(stream, Stream):
            target = <Stream>stream
        else:
            target = stream_argument(stream, current_device())
        driver = target.driver()
        handle = self.handle if self.handle else self.create(target.device_number)
        # The GIL is held: two threads that record for the first time must not both make an event.
        moment = wait_begun()
        if self.external:
            status = driver.event_record_external(driver.self, handle, target.handle)
        else:
            status = driver.event_record(driver.self, handle, target.handle)
        if status != STATUS_OK:
            if not self.handle:
                driver.event_destroy(driver.self, handle)
            target.check(status, "event_record")
        if order_is_checked():
            order_check_recorded(target.device_number, target.handle, handle)
        self.handle = handle
        self.stream = target.handle
        self.moment = moment
        self.device_number = target.device_number
        self.generation = target.generation

    def wait(self, stream=None):
        """Make work queued on `stream` (the current one by default) from now on wait for the mark.

        This thread does not wait, unless one of the two is on a host device and the other on CUDA.
        """
        cdef Stream target
        cdef Driver* driver
        cdef uint64_t handle = self.handle
        cdef Mark* before = NULL
        cdef int peer = self.device_number
        cdef status_t status
        if stream is None:
            target = stream_argument(None, current_device())
        else:
            target = any_stream(stream, current_device())
        if not self.handle:
            return
        if target.device_number != self.device_number and (
                target.device_number < 0 or self.device_number < 0):
            if target.device_number >= 0 or self.device_number >= 0:
                # A host device cannot wait for an event of a CUDA device, nor the other way round.
                self.synchronize()
                return
            self.driver()
            driver = target.driver()
            with nogil:
                status = driver.wait_for_peer(driver.self, target.handle, peer, handle)
            self.check(status, "wait_for_peer")
            if order_is_checked():
                order_check_waits(target.device_number, target.handle, peer, handle)
            return
        driver = target.driver()
        with nogil:
            status = STATUS_OK
            if captures_active():
                status = capture_joining(target.device_number, target.handle, &before)
            if status == STATUS_OK:
                if self.external:
                    status = driver.stream_wait_external(driver.self, target.handle, handle)
                else:
                    status = driver.stream_wait_event(driver.self, target.handle, handle)
            if before != NULL or captures_active():
                capture_joined(target.device_number, target.handle, before)
        self.check(status, "stream_wait_event")
        if order_is_checked():
            order_check_waits(target.device_number, target.handle, peer, handle)

    @property
    def done(self):
        """Whether the work before the mark is done, without waiting: CuPy's `query`."""
        return self.query()

    def query(self):
        """Return whether the work before the mark is done, without waiting."""
        cdef Driver* driver
        cdef uint64_t handle = self.handle
        cdef uint64_t stream = self.stream
        cdef uint64_t moment = self.moment
        cdef status_t status
        if not self.handle:
            return True
        driver = self.driver()
        with nogil:
            status = driver.event_query(driver.self, handle)
        if status == STATUS_NOT_READY:
            return False
        self.check(status, "event_query")
        wait_succeeded(self.device_number, stream, moment)
        if order_is_checked():
            order_check_host_event(self.device_number, handle)
        return True

    def synchronize(self):
        """Wait until the work before the mark is done. Other threads run meanwhile."""
        cdef Driver* driver
        cdef uint64_t handle = self.handle
        cdef uint64_t stream = self.stream
        cdef uint64_t moment = self.moment
        cdef status_t status
        if not self.handle:
            return
        driver = self.driver()
        if self.blocking and self.device_number >= 0:
            sleep_until_done(self)
        else:
            with nogil:
                status = driver.event_synchronize(driver.self, handle)
            self.check(status, "event_synchronize")
            wait_succeeded(self.device_number, stream, moment)
            if order_is_checked():
                order_check_host_event(self.device_number, handle)
        after_synchronize(self.device_number)

    def elapsed_time(self, end_event):
        """Return the milliseconds from this event to `end_event`.

        Raises
        ------
        ValueError
            One of the events has no time stamp, was not recorded, or is on another device.
        DriverError
            The work before one of them is not done; synchronize first.
        """
        cdef Event end
        cdef Driver* driver
        cdef status_t status
        cdef uint64_t handle, end_handle
        cdef float milliseconds = 0
        if is_tracing():
            current_tracer().refuse("the time between events", "time the calls of the program")
        if not isinstance(end_event, Event):
            raise argument_error(TypeError, "end_event", end_event, "an Event")
        end = <Event>end_event
        if not (self.enable_timing and end.enable_timing):
            raise argument_error(ValueError, "end_event", Described("events without timing"),
                                 "two events made with enable_timing=True")
        if not (self.handle and end.handle):
            raise argument_error(ValueError, "end_event", Described("an event without a record"),
                                 "two events that are recorded")
        if self.device_number != end.device_number:
            raise argument_error(ValueError, "end_event",
                                 Described(f"an event on {device_text(end.device_number)}"),
                                 f"one on {device_text(self.device_number)}")
        handle, end_handle = self.handle, end.handle
        driver = self.driver()
        with nogil:
            status = driver.event_elapsed(driver.self, &milliseconds, handle, end_handle)
        if status == STATUS_NOT_READY:
            raise_for_status(status, "event_elapsed",
                             "because the work before an event is not done; synchronize first")
        self.check(status, "event_elapsed")
        return milliseconds

    def ipc_handle(self):
        """Return bytes that another process opens with :meth:`from_ipc_handle`.

        An event that was not recorded yet belongs to the current device from now on. The handle is
        valid while this object lives.

        Raises
        ------
        ValueError
            The event was made without ``interprocess=True``.
        DriverError
            The device cannot share events; host devices cannot.
        """
        cdef Driver* driver
        cdef char found[IPC_HANDLE_NBYTES]
        cdef uint64_t handle
        cdef status_t status
        cdef int device
        if not self.interprocess:
            raise argument_error(ValueError, "interprocess", False, "True for an event to share")
        device = self.device_number if self.handle else current_device()
        driver = self.driver() if self.handle else driver_get(device)
        handle = self.handle if self.handle else self.create(device)
        status = driver.event_export(driver.self, handle, found)
        if status != STATUS_OK:
            if not self.handle:
                driver.event_destroy(driver.self, handle)
            raise_for_status(status, "event_export", f"on {device_text(device)}")
        if not self.handle:
            self.handle = handle
            self.device_number = device
            self.generation = device_generation(device)
        return found[:IPC_HANDLE_NBYTES]

    @classmethod
    def from_ipc_handle(cls, device, handle):
        """Return the Event that another process made, from the bytes of its :meth:`ipc_handle`.

        Parameters
        ----------
        device : device
            The device of the event, as this process names it.
        handle : bytes
            The result of :meth:`ipc_handle` in the other process.
        """
        cdef int number = resolve_device(device)
        cdef Driver* driver = driver_get(number)
        cdef Event made
        cdef uint64_t opened = 0
        cdef status_t status
        if not isinstance(handle, bytes) or len(handle) != IPC_HANDLE_NBYTES:
            raise argument_error(ValueError, "handle", Described(f"{handle!r:.60}"),
                                 f"the {IPC_HANDLE_NBYTES} bytes of an ipc_handle()")
        made = cls(interprocess=True)
        status = driver.event_import(driver.self, &opened, <char*>handle)
        if status != STATUS_OK:
            raise_for_status(status, "event_import", f"on {device_text(number)}")
        made.handle = opened
        made.device_number = number
        made.generation = device_generation(number)
        return made

    def __repr__(self):
        where = f"device={device_text(self.device_number)} handle={self.handle:#x}"
        return f"<Event {where if self.handle else 'not recorded'} timing={self.enable_timing}>"

    # Whether the driver's event belongs to this object alone, and not to the pool.
    cdef bint is_own(self) noexcept:
        return self.enable_timing or self.interprocess or self.external

    cdef uint64_t create(self, int device) except 0:
        cdef Driver* driver = driver_get(device)
        cdef uint64_t handle = 0
        cdef status_t status
        if self.is_own():
            status = driver.event_create(driver.self, &handle,
                                         EVENT_TIMING if self.enable_timing
                                         else EVENT_INTERPROCESS if self.interprocess else 0)
        else:
            status = event_take(device, &handle)
        if status != STATUS_OK:
            raise_for_status(status, "event_create", f"on {device_text(device)}")
        return handle

    cdef Driver* driver(self) except NULL:
        cdef Driver* driver = driver_get(self.device_number)
        if driver == NULL or self.generation != device_generation(self.device_number):
            raise_closed(self.device_number, self.generation, "event")
        return driver

    cdef int check(self, status_t status, str call) except -1:
        if status != STATUS_OK:
            raise_for_status(status, call, f"with event {self.handle:#x} of "
                             f"{device_text(self.device_number)}")
        return 0


def sleep_until_done(event):
    pause = SLEEP_FIRST
    while not event.query():
        time.sleep(pause)
        pause = min(2 * pause, SLEEP_LONGEST)
