"""A function on a GPU: its calls are captured into a graph once, and replayed at other addresses.

The calls are captured twice, with inputs and outputs at other addresses. Words that differ between
the captures contain these addresses (streams/capture/node_patches.h). A capture runs no work, so
the memory for these addresses is freed afterwards. Inputs are aligned to exactly 16 bytes there, so
no kernel is selected for a better alignment. Scratch memory of the calls comes from the pool of the
graph, which an earlier capture has grown, so it has the same addresses in both captures.
"""

cdef enum:
    INPUT_ALIGNMENT = 16
    PLACE_ALIGNMENT = 512


@cython.final
@cython.internal
cdef class Graph:
    """The graph of one Bound. `moving` has the addresses of the pieces that may change: inputs and
    outputs."""

    cdef int device
    cdef CUDAGraph captured         # the graph with the executable's nodes
    cdef list streams               # of the captures: memory of a pool is reused by stream
    cdef list bodies                # for each stream, those for bodies of its conditions
    cdef list former                # graphs whose launches may still run and use their scratch
    cdef NodePatches patches
    cdef vector[uint64_t] moving
    cdef bint is_whole              # every change of an address needs another capture
    cdef str reason                 # of `is_whole`
    cdef uint64_t last_stream       # of the latest launch
    cdef bint was_launched
    cdef uint64_t arena             # the captured address

    def __dealloc__(self):
        # The pool must outlive the last launch: the graph waits for this event when it is freed.
        if self.was_launched and self.captured is not None:
            mark_launch(self.captured, self.device, self.last_stream)

    cdef str description(self):
        if self.is_whole:
            return f"new addresses need another capture: {self.reason}"
        cdef str text = (f"{self.patches.node_count()} nodes, {self.patches.patched_count()} with "
                         "addresses")
        if self.captured.captured.graphs.size() > 1:
            text += f", {self.captured.captured.graphs.size() - 1} bodies of conditions"
        return f"{text}, {len(self.streams)} branches" if len(self.streams) > 1 else text

    cdef int launch(self, Driver* driver, uint64_t stream) except -1:
        cdef status_t status = driver.graph_launch(driver.self, self.captured.executable, stream)
        if status != STATUS_OK:
            raise_for_status(status, "graph_launch", f"on {device_text(self.device)}")
        self.last_stream = stream
        self.was_launched = True
        return 0

    cdef int move(self, Bound bound, Driver* driver) except -1:
        """Set the addresses in `moving` in the executable."""
        cdef status_t status
        if self.patches.is_current(self.moving.data()):
            return 0
        if not self.is_whole:
            status = self.patches.apply(driver, self.captured.executable, self.moving.data())
            if status == STATUS_OK:
                return 0
            if status not in (STATUS_NOT_SUPPORTED, STATUS_INVALID_VALUE,
                              STATUS_GRAPH_UPDATE_FAILED):
                raise_for_status(status, "graph_node_set", f"on {device_text(self.device)}")
            self.is_whole = True
            self.reason = "the driver refuses the parameters of a node"
            bound.binding.graph = self.description()
        return self.replace(bound, driver)

    cdef int replace(self, Bound bound, Driver* driver) except -1:
        """Capture the calls at the addresses in `moving`, and update the whole executable."""
        cdef CUDAGraph other
        cdef status_t status
        other = capture_calls(bound, self, self.moving, self.captured)
        status = driver.graph_update(driver.self, self.captured.executable, other.graph)
        if status == STATUS_OK:
            self.former.append(other)
        elif status == STATUS_GRAPH_UPDATE_FAILED:
            other.instantiate()
            if self.was_launched:
                mark_launch(self.captured, self.device, self.last_stream)
            self.former.append(self.captured)
            self.captured = other
        else:
            raise_for_status(status, "graph_update", f"on {device_text(self.device)}")
        self.patches.follow(self.moving.data())
        # Two of them may be in use: by the previous launch, and by the next one.
        if len(self.former) > 4:
            del self.former[0]
        return 0


cdef int mark_launch(CUDAGraph graph, int device, uint64_t stream) except -1:
    """Make a graph wait for the queued work of a stream before it is freed."""
    if driver_get(device) != NULL and graph.generation == device_generation(device):
        mark_replay(device, stream, &graph.replayed)
    return 0


cdef CUDAGraph capture_calls(Bound bound, Graph graph, vector[uint64_t]& moving, pool):
    """Return a graph of the calls, in the pool of another graph if one is given."""
    cdef CUDAGraph made = CUDAGraph(True)
    cdef Stream stream = graph.streams[0]
    cdef int device = stream.device_number
    cdef tuple addresses = (graph.arena, *[address for address in moving], *bound.fixed)
    cdef bint has_begun = False
    made.is_quiet = True                # a function may need no work
    enter_stream(device, stream.handle, stream)
    try:
        made.capture_begin(pool, "relaxed")
        has_begun = True
        bound.branches(bound.binding, addresses, bound.weights, graph.streams, graph.bodies)
    except BaseException:
        leave()                         # first, as in `graph`
        if has_begun:
            made.abandon()
        raise
    leave()
    made.end_capture(True)
    return made


def launch_on(Stream stream, list calls):
    """Launch rows with their arguments on a stream."""
    door_calls(stream.device_number, stream.handle, calls)


cdef int door_calls(int device, uint64_t stream, list calls) except -1:
    for row, arguments in calls:
        row.door(device, stream, arguments)
    return 0


cdef bint lacks_conditions(error):
    """Whether a driver is too old for bodies of conditions, or refuses their contents."""
    if error.call in ("condition_create", "condition_add", "capture_begin_body"):
        return error.status == STATUS_NOT_SUPPORTED
    return error.call == "graph_instantiate" and error.status == STATUS_INVALID_VALUE


cdef Graph graph_of(Bound bound, int device, uint64_t arena, vector[uint64_t]& moving):
    """Capture a function and find the addresses of its inputs and outputs in the nodes; `moving`
    are their current addresses."""
    cdef Driver* driver = driver_get(device)
    cdef Graph graph = Graph.__new__(Graph)
    cdef CUDAGraph warm, other
    cdef Tensor memory = None
    cdef vector[Span] spans
    cdef vector[uint64_t] first, second
    cdef status_t status
    cdef size_t i
    graph.device, graph.arena = device, arena
    graph.former = []
    graph.streams = [stream_for_captures(device) for _branch in range(bound.branch_count)]
    graph.bodies = [[] for _branch in graph.streams]
    graph.moving = moving
    try:
        memory = place_spans(bound, device, spans)
    except OutOfMemoryError:
        graph.is_whole = True
        graph.reason = "the device has no memory to compare two captures"
    for i in range(spans.size()):
        first.push_back(spans[i].first)
        second.push_back(spans[i].second)
    if graph.is_whole:
        graph.captured = capture_calls(bound, graph, moving, None)
        graph.captured.instantiate()
        graph.patches.start(moving)
    else:
        warm = capture_calls(bound, graph, first, None)
        graph.captured = capture_calls(bound, graph, first, warm)
        other = capture_calls(bound, graph, second, warm)
        graph.captured.instantiate()
        status = graph.patches.compare(driver, graph.captured.captured, other.captured, spans)
        if status != STATUS_OK:
            graph.is_whole = True
            graph.reason = f"the driver does not report the parameters of nodes (status {status})"
        elif graph.patches.opaque:
            graph.is_whole = True
            graph.reason = f"nodes with differences that are no addresses: {graph.patches.opaque}"
    bound.binding.graph = graph.description()
    del memory
    return graph


cdef Tensor place_spans(Bound bound, int device, vector[Span]& spans):
    """Reserve two addresses for each input and output, each moved by another distance, in new
    memory. They are disjoint in each capture, as calls require."""
    cdef int i, count = bound.input_count + bound.output_count
    cdef int64_t offset = 0, size = 0
    cdef Span span
    cdef Tensor memory
    for i in range(count):
        size += spaced(bound.binding.pieces[1 + i].nbytes)
    size += PLACE_ALIGNMENT * (count + 1)
    memory = empty_tensor(DT_UINT8, 1, &size, device)
    for i in range(count):
        span.first = memory.ptr + offset + (INPUT_ALIGNMENT if i < bound.input_count else 0)
        span.second = span.first + PLACE_ALIGNMENT * (i + 1)
        span.nbytes = bound.binding.pieces[1 + i].nbytes
        offset += spaced(span.nbytes)
        spans.push_back(span)
    return memory


cdef int64_t spaced(int64_t nbytes) noexcept:
    """Return a size rounded up, plus a gap."""
    return (nbytes // PLACE_ALIGNMENT + 2) * PLACE_ALIGNMENT


cdef object captured_bound(binding, dict weights, dict states, program, uint64_t arena,
                           const uint64_t* moving):
    """Return a Bound with a graph for this arena, or None if its addresses cannot be set."""
    cdef Bound made = Bound(binding, weights, states, program, False)
    cdef vector[uint64_t] places
    places.assign(moving, moving + made.input_count + made.output_count)
    made.graph = graph_of(made, program.device_number, arena, places)
    return None if made.graph.is_whole else made


cdef status_t queue_captured(void* bound, uint64_t stream, const uint64_t* moving) noexcept nogil:
    """Launch the graph of a Bound, with its inputs and outputs at these addresses.

    The graph does not wait for this launch when it is freed.
    """
    cdef Driver* driver = driver_get((<Bound>bound).graph.device)
    cdef uint64_t executable = (<Bound>bound).graph.captured.executable
    cdef status_t status = (<Bound>bound).graph.patches.apply(driver, executable, moving)
    if status == STATUS_OK:
        status = driver.graph_launch(driver.self, executable, stream)
    return status
