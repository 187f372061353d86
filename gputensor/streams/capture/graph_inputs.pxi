"""Replays that use other memory than the capture: pairs of tensors, node parameters, swaps."""


# In a capture a GPU takes the graph as it was captured, whatever addresses replays gave its nodes.
cdef int queue_replay(CUDAGraph graph, Driver* driver, uint64_t stream, vector[Span]& given,
                      bint is_captured) except -1:
    cdef status_t status
    cdef list saved = []
    cdef size_t i
    if graph.device < 0:
        for i in range(given.size()):
            saved.append(exchanged(graph.device, stream, given[i], None))
    elif not is_captured and (given.size() or graph.moved.size()):
        move_inputs(graph, driver, given)
    status = driver.graph_launch(driver.self, graph.executable, stream)
    # On a host device the contents are swapped back even if the launch failed.
    for i in range(given.size() if graph.device < 0 else 0):
        exchanged(graph.device, stream, given[i], saved[i])
    if status != STATUS_OK:
        raise_for_status(status, "graph_launch", f"on {device_text(graph.device)}")
    return 0


cdef int move_inputs(CUDAGraph graph, Driver* driver, vector[Span]& given) except -1:
    """Give the nodes the addresses of the inputs, and their original addresses elsewhere."""
    cdef vector[uint64_t] addresses
    cdef status_t status
    cdef bint is_same = given.size() == graph.moved.size()
    cdef size_t i
    for i in range(given.size()):
        is_same = is_same and (given[i].first == graph.moved[i].first
                               and given[i].nbytes == graph.moved[i].nbytes)
    if not is_same:
        for i in range(graph.moved.size()):
            addresses.push_back(graph.moved[i].first)
        status = graph.patches.apply(driver, graph.executable, addresses.data())
        if status == STATUS_OK:
            graph.moved = given
            status = graph.patches.find(driver, graph.captured, given)
        if status != STATUS_OK:
            graph.moved.clear()
            raise_for_status(status, "graph_node_get", f"on {device_text(graph.device)}")
        for i in range(given.size()):
            if not graph.patches.patched_count_of(i):
                graph.moved.clear()
                raise argument_error(ValueError, "inputs", Described(f"the tensor at {i}"),
                                     "tensors that the captured work uses")
    addresses.clear()
    for i in range(given.size()):
        addresses.push_back(given[i].second)
    status = graph.patches.apply(driver, graph.executable, addresses.data())
    if status != STATUS_OK:
        raise_for_status(status, "graph_node_set", f"on {device_text(graph.device)}")
    return 0


# Reads pairs of tensors into spans: the addresses of the captured tensor and of the other one.
cdef int read_inputs(int device, inputs, vector[Span]& given) except -1:
    cdef Span span
    cdef size_t i
    if not isinstance(inputs, dict):
        raise argument_error(TypeError, "inputs", inputs, "a dict of tensors")
    for old, new in inputs.items():
        for one in (old, new):
            if not hasattr(one, "_write_on"):
                raise argument_error(TypeError, "inputs", one, "tensors only")
            if one.device.number != device or not one.is_contiguous:
                got = Described(f"a tensor of strides {one.strides} on {one.device}")
                raise argument_error(ValueError, "inputs", got,
                                     f"contiguous tensors on {device_text(device)}")
        if (old.dtype, old.shape) != (new.dtype, new.shape):
            raise argument_error(ValueError, "inputs", Described(f"{new.dtype}{list(new.shape)}"),
                                 f"{old.dtype}{list(old.shape)}, as it was captured")
        if not old.size:
            continue
        span.first, span.second, span.nbytes = old.data_ptr(), new.data_ptr(), old.nbytes
        for i in range(given.size()):
            if (span.first < given[i].first + given[i].nbytes
                    and given[i].first < span.first + span.nbytes):
                raise argument_error(ValueError, "inputs", Described("tensors that overlap"),
                                     "captured tensors apart from each other")
        given.push_back(span)
    return 0


# Swaps the bytes of two places in stream order and returns a block with the bytes of the first
# place; with that block as `saved`, swaps them back.
cdef object exchanged(int device, uint64_t stream, Span span, saved):
    cdef Driver* driver = driver_get(device)
    cdef status_t status = STATUS_OK
    cdef Block* block
    if saved is None:
        block = allocator_malloc(device, span.nbytes, stream, &status)
        if block != NULL:
            status = driver.copy_async(driver.self, block.ptr, span.first, span.nbytes, stream)
            if status == STATUS_OK:
                status = driver.copy_async(driver.self, span.first, span.second, span.nbytes,
                                           stream)
            if status != STATUS_OK:
                allocator_free(block)
    else:
        block = <Block*><uint64_t>saved
        status = driver.copy_async(driver.self, span.second, span.first, span.nbytes, stream)
        if status == STATUS_OK:
            status = driver.copy_async(driver.self, span.first, block.ptr, span.nbytes, stream)
        allocator_free(block)
    if status != STATUS_OK:
        raise_for_status(status, "copy_async", f"of {span.nbytes} bytes on {device_text(device)}")
    return <uint64_t>block
