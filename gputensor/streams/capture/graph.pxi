"""CUDAGraph: work captured once and replayed with one call.

A capture records the work queued on a stream into a graph instead of running it; memory allocated
meanwhile comes from a private pool that lives as long as the graph, so that every replay finds it
at the same addresses. A capture neither collects garbage nor returns pages to the driver.

A replay is ordered with other uses of the capture's memory (graph_streams.pxi).
"""


@cython.no_gc
cdef class CUDAGraph:
    """Work captured from a stream, which can be replayed.

    Parameters
    ----------
    keep_graph : bool
        Do not instantiate the graph when the capture ends; :meth:`instantiate` or the first
        :meth:`replay` does so. Until then, and before each further :meth:`instantiate`, the program
        may change the graph through :meth:`raw_cuda_graph`.

    Notes
    -----
    A replay is work of the current stream: it runs after the stream's work so far and before work
    queued on it later. Uses of the same memory on other streams are ordered with it, unless the
    thread's ordering is manual. Graphs that share a pool must be replayed in the order of their
    capture: a later one may use memory that an earlier one had finished with.
    A graph that was replayed inside another capture has to live as long as that capture's graph. A
    graph holds addresses, not tensors: tensors made before the capture that its work reads or
    writes have to live as long as the graph (:meth:`retain_object`), since freed memory is reused.

    Examples
    --------
    >>> from gputensor.streams import Stream
    >>> import gputensor as gt
    >>> g, x = CUDAGraph(), gt.zeros(3, device="host")
    >>> with Stream("host"):
    ...     g.capture_begin()
    ...     x += 1
    ...     g.capture_end()
    >>> g.replay()
    >>> x.numpy()
    array([1., 1., 1.], dtype=float32)
    """

    def __init__(self, keep_graph=False):
        if self.state != EMPTY:
            raise RuntimeError("a CUDAGraph is initialized once; reset() empties it")
        self.keep_graph = keep_graph

    def __dealloc__(self):
        if self.state == CAPTURING:
            self.abandon()
        elif self.state != EMPTY:
            self.release()

    def capture_begin(self, pool=None, capture_error_mode="global"):
        """Start to capture the current stream.

        Parameters
        ----------
        pool : pool id or CUDAGraph, optional
            The pool to take memory from: a result of :func:`graph_pool_handle` or :meth:`pool`.
            A new pool by default.
        capture_error_mode : {"global", "thread_local", "relaxed"}
            Whose unsafe driver calls break the capture: those of every thread, of this thread, or
            of none (CUDA's stream capture modes).

        Raises
        ------
        RuntimeError
            The current stream is the default stream or captures already, or this object holds a
            graph.
        """
        cdef int mode, device = current_device()
        cdef Driver* driver = driver_get(device)
        cdef uint64_t stream = current_handle(device)
        cdef uint64_t pool_id
        cdef Mark* before = NULL
        cdef uint64_t capture_id = 0
        cdef status_t status
        if is_tracing():
            current_tracer().refuse("a graph", "programs are captured when they run")
        if self.state != EMPTY:
            raise RuntimeError("this CUDAGraph holds a capture; reset() it or make another one")
        if capture_error_mode not in CAPTURE_ERROR_MODES:
            raise argument_error(ValueError, "capture_error_mode", capture_error_mode,
                                 "'global', 'thread_local' or 'relaxed'")
        if stream == 0:
            raise RuntimeError("the default stream cannot be captured; capture inside "
                               "graphs.graph(...) or stream(Stream())")
        if capture_state(device, stream) != 0:
            raise RuntimeError("the current stream is already capturing")
        mode = CAPTURE_ERROR_MODES.index(capture_error_mode)
        pool_id = pool_new_id() if pool is None else pool_number(pool)
        if allocator_open(device) == NULL:      # a program may not have used it yet
            raise DeviceError(f"{device_text(device)} has no allocator")
        if not (self.is_quiet or captures_active()):    # programs order their captures themselves
            settle(device)
        status = pool_begin(device, pool_id, stream)
        if status != STATUS_OK:
            raise_for_status(status, "pool_begin", f"on {device_text(device)}")
        with nogil:
            status = mark_before(device, stream, &before)
            if status == STATUS_OK:
                status = begin(driver, stream, mode, &capture_id)
        if status != STATUS_OK:
            mark_drop(device, before)
            pool_end(device, pool_id, stream, &self.holds)
            pool_release_capture(device, pool_id)
            raise_for_status(status, "capture_begin", f"on {device_text(device)}")
        self.device = device
        self.generation = device_generation(device)
        self.stream = stream_argument(None, device)
        self.pool_id = pool_id
        self.capture_id = capture_id
        self.thread = 0 if capture_error_mode == "relaxed" else pool_thread()
        self.state = CAPTURING
        note_pool_stream(device, pool_id, self.stream)
        capture_started(device, self.capture_id, pool_id, stream, before)

    def capture_end(self):
        """End the capture, and make the graph ready unless `keep_graph` is set.

        Raises
        ------
        DriverError
            The capture was broken by work that cannot be captured, or by a stream that did not
            join again; the object is empty then. Or another thread began the capture, in a mode
            other than ``"relaxed"``; the capture continues, and only that thread can end it.
        """
        self.end_capture(False)

    def instantiate(self):
        """Make the captured graph ready to be replayed.

        With `keep_graph` this may be called again: later replays then include changes that were
        made through :meth:`raw_cuda_graph`.

        Raises
        ------
        RuntimeError
            Nothing was captured, or the graph is instantiated and was made without `keep_graph`.
        """
        cdef uint64_t executable = 0, former = self.executable
        cdef status_t status
        if self.state == READY and not self.keep_graph:
            raise RuntimeError("only a CUDAGraph(keep_graph=True) can be instantiated again")
        if self.state not in (CAPTURED, READY):
            raise RuntimeError("this CUDAGraph has no captured graph to instantiate")
        cdef Driver* driver = self.driver()
        with nogil:
            status = driver.graph_instantiate(driver.self, self.graph, &executable)
            if status == STATUS_OK and former:
                driver.graph_executable_destroy(driver.self, former)
        if status != STATUS_OK:
            raise_for_status(status, "graph_instantiate", f"on {device_text(self.device)}")
        self.executable = executable
        self.moved.clear()
        self.state = READY

    def raw_cuda_graph(self):
        """Return the driver's handle of the captured graph as an int.

        Raises
        ------
        RuntimeError
            Nothing was captured, or the object was made without ``keep_graph=True``.
        """
        if not self.keep_graph:
            raise RuntimeError("keep_graph: got False; expected True, for access to the graph")
        if self.graph == 0:
            raise RuntimeError("this CUDAGraph holds no graph; capture one first")
        return self.graph

    def raw_cuda_graph_exec(self):
        """Return the driver's handle of the instantiated graph as an int.

        Raises
        ------
        RuntimeError
            The graph is not instantiated; call :meth:`instantiate` first.
        """
        if self.executable == 0:
            raise RuntimeError("this CUDAGraph is not instantiated; call instantiate() first")
        return self.executable

    def enable_debug_mode(self):
        """Do nothing, for code written for PyTorch: :meth:`debug_dump` always works."""

    def debug_dump(self, debug_path):
        """Write the captured graph to a file, as text in the DOT language of Graphviz.

        Raises
        ------
        RuntimeError
            Nothing was captured.
        OSError
            The file cannot be opened for writing.
        """
        cdef bytes path = os.fsencode(debug_path)
        cdef const char* text = path
        cdef status_t status
        if self.graph == 0:
            raise RuntimeError("this CUDAGraph holds no graph; capture one first")
        cdef Driver* driver = self.driver()
        open(debug_path, "ab").close()      # the driver does not say why it cannot write a file
        with nogil:
            status = driver.graph_dump(driver.self, self.graph, text)
        raise_for_status(status, "graph_dump", f"to {os.fsdecode(path)}")

    def replay(self, inputs=None):
        """Queue the captured work on the current stream of the graph's device.

        Parameters
        ----------
        inputs : dict, optional
            Maps tensors that the captured work reads or writes to tensors that this replay uses
            instead. Both of a pair are contiguous and have the same shape and dtype. The new ones
            are ordered like memory that is written.

        Raises
        ------
        ValueError
            The tensors of a pair differ. On a GPU also: the work does not use the first one.
        RuntimeError
            `inputs` on a GPU, on a stream that captures.

        Notes
        -----
        On a GPU the nodes of the graph get other addresses, and no data is copied. An 8-byte word
        of a node's parameters is taken for an address in a tensor if its value lies in the tensor's
        memory. On a host device the contents of the tensors are swapped for the time of the replay.

        Examples
        --------
        >>> import gputensor as gt
        >>> with gt.Device("host"):
        ...     x, y, g = gt.ones(3), gt.zeros(3), gt.graphs.CUDAGraph()
        ...     with gt.graphs.graph(g):
        ...         y[...] = x + 1
        >>> g.replay(inputs={x: gt.full(3, 6.0, device="host")})
        >>> y.numpy()
        array([7., 7., 7.], dtype=float32)
        """
        cdef Driver* driver
        cdef uint64_t stream
        cdef status_t status
        cdef vector[GraphStream*] peers
        cdef vector[Span] given
        cdef bint is_captured
        if self.state == CAPTURED:
            self.instantiate()
        elif self.state != READY:
            raise RuntimeError("this CUDAGraph holds no graph to replay; capture one first")
        driver = self.driver()
        stream = current_handle(self.device)
        is_captured = capture_state(self.device, stream) != 0
        if inputs:
            if is_captured and self.device >= 0:
                raise RuntimeError("replay in a capture: got inputs; expected none, since a GPU "
                                   "captures the graph with the tensors that it was captured with")
            read_inputs(self.device, inputs, given)
        section_begin()
        try:
            for other in inputs.values() if inputs else ():
                other._write_on(stream)
            # A replay that is itself captured is ordered as work of that capture.
            if is_captured:
                raise_for_status(capture_add_inner(self.device, stream, self.members), "replay",
                                 f"in a capture on {device_text(self.device)}")
                raise_for_order(self.device, stream,
                                captured_replay_waits(self.device, stream, self.captured))
            else:
                self.wait_for_peers(stream, peers)
            queue_replay(self, driver, stream, given, is_captured)
            if is_captured:
                captured_replay_queued(self.device, stream, self.captured)
            else:
                self.mark(stream, peers)
            if order_is_checked():
                order_check_replayed(self.device, stream, self.members)
        finally:
            with nogil:
                status = section_end()
        if status != STATUS_OK:
            raise_for_status(status, "graph_launch", f"on {device_text(self.device)}")
        after_synchronize(self.device)

    def reset(self):
        """Release the graph and its pool. Waits for replays under way."""
        if self.state == CAPTURING:
            raise RuntimeError("this CUDAGraph is capturing; end the capture before reset()")
        if self.state != EMPTY:
            self.release()

    def pool(self):
        """Return the id of the graph's memory pool, for captures that are to share it."""
        if self.pool_id == 0:
            raise RuntimeError("this CUDAGraph has no pool before its capture")
        return pool_pair(self.pool_id)

    def pools(self):
        """Return the ids of the pools whose memory the graph keeps, that of :meth:`pool` first."""
        return pools_of(self.pool(), self.holds)

    def retain_object(self, obj):
        """Keep an object, such as a tensor that the graph reads, until the graph is released."""
        if self.state == EMPTY:
            raise RuntimeError("this CUDAGraph holds no capture")
        self.retained = (self.retained or []) + [obj]

    def member_streams(self):
        """Return the handles of the streams that took part in the capture, the first one first.

        They include those of the graphs that were replayed in it.
        """
        return tuple(self.members or ())

    def __repr__(self):
        what = ("empty", "capturing", "captured", "ready")[self.state]
        return f"<CUDAGraph {what}>"

    cdef Driver* driver(self) except NULL:
        cdef Driver* driver = driver_get(self.device)
        if driver == NULL or self.generation != device_generation(self.device):
            raise_closed(self.device, self.generation, "graph")
        return driver

    cdef int end_capture(self, bint has_left) except -1:
        cdef status_t status
        if self.state != CAPTURING:
            raise RuntimeError("this CUDAGraph is not capturing")
        self.driver()
        if self.thread and self.thread != pool_thread():
            # The driver would return the same status, and end the capture of the other thread.
            raise_for_status(STATUS_CAPTURE_WRONG_THREAD, "capture_end",
                             f"on {device_text(self.device)}; end it there, or drop the graph")
        status = self.finish_capture(has_left)
        if status != STATUS_OK:
            self.forget()
            raise_for_status(status, "capture_end", f"on {device_text(self.device)}")
        self.state = CAPTURED
        if not self.keep_graph:
            self.instantiate()
        warn_if_empty(self)
        return 0

    cdef status_t finish_capture(self, bint has_left):
        # Stores the handle in self.graph; the graph keeps the pools. The capture is over whatever
        # status the driver returns, even for a call in another thread than the capture's.
        cdef Driver* driver = driver_get(self.device)
        cdef uint64_t stream = self.stream.handle
        cdef status_t status, waits = STATUS_OK
        with nogil:
            status = driver.capture_end(driver.self, stream, &self.graph)
        pool_end(self.device, self.pool_id, stream, &self.holds)
        self.members = capture_finished(self.device, self.capture_id, &waits, &self.holds,
                                        &self.captured)
        if waits == STATUS_OK and (not has_left or current_handle(self.device) == stream):
            # The program may use the stream for other work in the rest of its block.
            waits = graph_stream_open(self.device, stream)
        self.captured.graphs.insert(self.captured.graphs.begin(), self.graph)
        self.pools_used = streams_of_pools(self)
        if status == STATUS_OK and waits != STATUS_OK:
            driver.graph_destroy(driver.self, self.graph)
            status = waits
        return status

    cdef list replay_members(self):
        cdef PoolStreams one
        if self.members_known != pool_member_changes:
            self.all_members = self.members
            for one in self.pools_used:
                self.all_members = list(dict.fromkeys(self.all_members + one.members))
            self.members_known = pool_member_changes
        return self.all_members

    cdef int wait_for_peers(self, uint64_t stream, vector[GraphStream*]& peers) except -1:
        cdef status_t status
        # Done even in manual ordering: a held read is one use of its memory.
        wait_for_held()
        if not ordering_is_manual():
            graph_peers(self.device, self.replay_members(), peers)
            status = graph_peers_wait(self.device, stream, peers)
            if status != STATUS_OK:
                raise_for_status(status, "stream_wait_event",
                                 f"before a replay on {device_text(self.device)}")
        return 0

    cdef int mark(self, uint64_t stream, vector[GraphStream*]& peers) except -1:
        cdef Driver* driver = driver_get(self.device)
        cdef status_t status = mark_replay(self.device, stream, &self.replayed)
        if status == STATUS_OK:
            status = graph_peers_follow(self.device, stream, self.replayed, peers)
        if status != STATUS_OK:
            # The replay is queued but not ordered, so this call may return only after it.
            with nogil:
                driver.stream_synchronize(driver.self, stream)
            raise_for_status(status, "stream_wait_event",
                             f"after a replay on {device_text(self.device)}")
        return 0

    cdef int abandon(self) except -1:
        # Ends a capture whose result is not needed, in any state.
        cdef Driver* driver = driver_get(self.device)
        if driver == NULL or self.generation != device_generation(self.device):
            self.clear_records()
            return 0
        if self.finish_capture(True) == STATUS_OK:
            driver.graph_destroy(driver.self, self.graph)
        self.forget()
        return 0

    cdef int release(self) except -1:
        cdef Driver* driver = driver_get(self.device)
        cdef status_t status
        if driver == NULL or self.generation != device_generation(self.device):
            self.clear_records()
            return 0
        # The pool's memory, and objects of captured host functions, must outlive the last replay.
        if self.replayed != NULL:
            with nogil:
                status = driver.event_synchronize(driver.self, self.replayed.event)
            if status != STATUS_OK:
                postponed.append(self.successor())
                return 0
            graph_peers_done(self.device, self.replay_members(), self.replayed)
        with nogil:
            if self.executable:
                driver.graph_executable_destroy(driver.self, self.executable)
            if self.graph:
                driver.graph_destroy(driver.self, self.graph)
        self.forget()
        return 0

    cdef CUDAGraph successor(self):
        # Moves the graph to another object; this one is empty afterwards.
        cdef CUDAGraph made = CUDAGraph.__new__(CUDAGraph)
        made.graph, made.executable, made.replayed = self.graph, self.executable, self.replayed
        made.captured = self.captured
        made.pool_id, made.capture_id = self.pool_id, self.capture_id
        made.device, made.generation, made.state = self.device, self.generation, self.state
        made.stream, made.members, made.holds = self.stream, self.members, self.holds
        made.pools_used, made.retained = self.pools_used, self.retained
        self.members = None
        self.holds = NULL
        self.replayed = NULL
        self.clear_records()
        return made

    cdef int clear_records(self) except -1:
        cdef uint64_t member
        # The records of a closed device are gone already.
        if self.members is not None and self.generation == device_generation(self.device):
            for member in self.members:
                graph_stream_release(self.device, member)
            capture_released(self.device, self.capture_id)
        pool_forget_holds(self.holds)
        self.holds = NULL
        # The event of a closed device is gone too.
        if self.generation == device_generation(self.device):
            mark_drop(self.device, self.replayed)
        else:
            mark_forget(self.replayed)
        self.replayed = NULL
        self.graph = self.executable = self.pool_id = 0
        self.state = EMPTY
        self.stream = None
        self.members = self.all_members = self.pools_used = self.retained = None
        self.members_known = 0
        return 0

    cdef int forget(self) except -1:
        cdef uint64_t pool_id = self.pool_id
        pool_release_holds(self.device, self.holds)
        self.holds = NULL
        self.clear_records()
        pool_release_capture(self.device, pool_id)
        if pool_use_count(self.device, pool_id) == 0:
            pool_streams(self.device).pop(pool_id, None)
        return slots_release(self.device, self.capture_id)


cdef int warn_if_empty(CUDAGraph graph) except -1:
    cdef Driver* driver = driver_get(graph.device)
    cdef int count = 1
    driver.graph_nodes(driver.self, graph.graph, NULL, 0, &count)
    if count == 0 and not graph.is_quiet:
        warnings.warn("The CUDA Graph is empty: no work was queued on the stream that captured, or "
                      "on a stream that joined it", stacklevel=1)
    return 0
