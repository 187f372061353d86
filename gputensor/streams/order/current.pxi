"""The current device and stream of each thread, and the meaning of device arguments.

The choice is plain data in C thread-local storage (thread_state.h). The streams that are current
are kept alive by one Python object for each thread, `ThreadStreams`, which also holds the frames
of the `with` blocks that the thread is in; the thread's dictionary owns it, so it is freed when the
thread ends. A thread that never chose a device or a stream has no such object.

The default device is found once in a process, at the first use and never at import:
GPUTENSOR_DEVICE if set, otherwise CUDA device 0 if there is one, otherwise the host device.
"""

cdef extern from "gputensor/streams/order/thread_state.h":
    cdef struct ThreadState:
        int device
        uint64_t* streams
        void* owner
        void* tracer

    ThreadState* thread_state() noexcept nogil

ctypedef struct Frame:
    int device                  # the thread's device before the frame
    int stream_device           # the device whose stream the frame replaced, or NO_DEVICE
    uint64_t stream
    PyObject* stream_object     # owned; NULL for the default stream

cdef int default_device = NO_DEVICE
cdef object thread_storage = threading.local()


cdef class ThreadStreams:
    """Owns the objects that one thread's ThreadState refers to."""

    cdef PyObject* objects[64]      # owned; the Stream that is current on device d at [d + 32]
    cdef Frame* frames
    cdef int frame_count
    cdef int frame_capacity

    def __dealloc__(self):
        cdef ThreadState* state = thread_state()
        cdef int index
        if state.owner == <void*>self:
            state.owner = NULL
            for index in range(MAX_DEVICES):
                state.streams[index] = 0
        for index in range(MAX_DEVICES):
            Py_XDECREF(self.objects[index])
        for index in range(self.frame_count):
            Py_XDECREF(self.frames[index].stream_object)
        free(self.frames)

    cdef int push(self, int device, int stream_device, uint64_t stream,
                  PyObject* stream_object) except -1:
        cdef int capacity
        cdef Frame* frames
        if self.frame_count == self.frame_capacity:
            capacity = 2 * self.frame_capacity + 8
            frames = <Frame*>realloc(self.frames, capacity * sizeof(Frame))
            if frames == NULL:
                raise MemoryError
            self.frames = frames
            self.frame_capacity = capacity
        self.frames[self.frame_count] = Frame(device, stream_device, stream, stream_object)
        Py_XINCREF(stream_object)
        self.frame_count += 1
        return 0


cdef ThreadStreams own_streams():
    cdef ThreadState* state = thread_state()
    cdef ThreadStreams owner
    if state.owner != NULL:
        return <ThreadStreams>state.owner
    owner = ThreadStreams()
    thread_storage.owner = owner
    state.owner = <void*>owner
    return owner


# ---- the current device ----

cdef int find_default_device() except? -1000:
    global default_device
    cdef str name
    cdef int device
    if default_device != NO_DEVICE:
        return default_device
    name = os.environ.get("GPUTENSOR_DEVICE", "")
    if name:
        device = parse_text(name, 0, "GPUTENSOR_DEVICE")
    else:
        device = 0 if cuda_device_count() > 0 else HOST_DEVICE
    driver_open(device)
    default_device = device
    return device


cdef int current_device() except? -1000:
    cdef int device = thread_state().device
    return device if device != NO_DEVICE else find_default_device()


cdef int make_device_current(int device) except -1:
    if thread_state().tracer != NULL:
        device = traced_device(device)
    if driver_get(device) == NULL:
        driver_open(device)
    thread_state().device = device
    return 0


# Drops this thread's choices on a device that closes.
cdef void forget_device(int device) noexcept:
    cdef ThreadState* state = thread_state()
    if state.owner != NULL:
        put_stream(<ThreadStreams>state.owner, device, 0, NULL)
    if state.device == device:
        state.device = NO_DEVICE


# In the child of a fork: drops the parent's streams that this thread has chosen.
cdef int forget_parent(int device) except -1:
    cdef ThreadState* state = thread_state()
    cdef ThreadStreams owner
    cdef Frame* frame
    cdef int i
    if state.owner == NULL:
        return 0
    owner = <ThreadStreams>state.owner
    put_stream(owner, device, 0, NULL)
    for i in range(owner.frame_count):
        frame = &owner.frames[i]
        if frame.stream_device == device:
            frame.stream = 0
            Py_XDECREF(frame.stream_object)
            frame.stream_object = NULL
    return 0


cdef int raise_closed(int device, int generation, str what) except -1:
    cdef str reason = ""
    if generation < open_devices[device + HOST_DEVICES].first_generation:
        reason = ": it was made before this process was forked"
        if device >= 0:
            reason += "; CUDA needs processes started with the method 'spawn'"
    raise DeviceError(f"{device_text(device)} of this {what} is closed{reason}")


# ---- the current stream ----

cdef uint64_t current_handle(int device) noexcept nogil:
    return thread_state().streams[device + HOST_DEVICES]


cdef object current_stream_object(int device):
    cdef ThreadState* state = thread_state()
    cdef PyObject* kept
    if state.owner == NULL:
        return None
    kept = (<ThreadStreams>state.owner).objects[device + HOST_DEVICES]
    return None if kept == NULL else <object>kept


cdef void put_stream(ThreadStreams owner, int device, uint64_t stream,
                     PyObject* stream_object) noexcept:
    # Takes over the caller's reference to stream_object.
    cdef int index = device + HOST_DEVICES
    cdef PyObject* former = owner.objects[index]
    owner.objects[index] = stream_object
    thread_state().streams[index] = stream
    Py_XDECREF(former)


cdef int make_stream_current(int device, uint64_t stream, object stream_object) except -1:
    cdef PyObject* kept = NULL
    cdef ThreadStreams owner = own_streams()
    if stream_object is not None:
        Py_INCREF(stream_object)
        kept = <PyObject*>stream_object
    put_stream(owner, device, stream, kept)
    return 0


# ---- with blocks ----

cdef int enter_device(int device) except -1:
    cdef ThreadState* state = thread_state()
    if state.tracer != NULL:
        device = traced_device(device)
    if driver_get(device) == NULL:
        driver_open(device)
    own_streams().push(state.device, NO_DEVICE, 0, NULL)
    state.device = device
    return 0


cdef int enter_stream(int device, uint64_t stream, object stream_object) except -1:
    cdef ThreadState* state = thread_state()
    cdef ThreadStreams owner = own_streams()
    cdef int index = device + HOST_DEVICES
    owner.push(state.device, device, state.streams[index], owner.objects[index])
    make_stream_current(device, stream, stream_object)
    state.device = device
    return 0


cdef int leave() except -1:
    cdef ThreadState* state = thread_state()
    cdef ThreadStreams owner = own_streams()
    cdef Frame frame
    if owner.frame_count == 0:
        raise RuntimeError("this thread is leaving a device or stream block that it did not enter")
    owner.frame_count -= 1
    frame = owner.frames[owner.frame_count]
    # A device that was closed inside the block is not restored.
    state.device = frame.device if driver_get(frame.device) != NULL else NO_DEVICE
    if frame.stream_device != NO_DEVICE:
        if driver_get(frame.stream_device) != NULL:
            put_stream(owner, frame.stream_device, frame.stream, frame.stream_object)
        else:
            Py_XDECREF(frame.stream_object)
    return 0


# ---- device arguments ----

cdef int parse_text(str text, int index_without_number, str argument) except? -1000:
    cdef str kind, number
    cdef int index = 0
    cdef int limit
    kind, _, number = text.partition(":")
    if number:
        if not (number.isascii() and number.isdigit()):
            kind = ""
        else:
            index = int(number) if len(number) < 4 else MAX_DEVICES
    elif text.endswith(":"):
        kind = ""
    else:
        index = index_without_number if kind == "cuda" else 0
    if text == "cpu":       # PyTorch's name for the host
        kind = "host"
    if kind != "cuda" and kind != "host":
        raise argument_error(ValueError, argument, text, "'cuda', 'cuda:N', 'host' or 'host:N'")
    limit = MAX_DEVICES - HOST_DEVICES if kind == "cuda" else HOST_DEVICES
    if index >= limit:
        raise argument_error(ValueError, argument, text, f"N of '{kind}:N' below {limit}")
    return index if kind == "cuda" else HOST_DEVICE - index


cdef int cuda_index_now() except? -1000:
    cdef int device = current_device()
    return device if device >= 0 else 0


cdef int parse_device(object device) except? -1000:
    cdef object index, kind
    if device is None:
        return current_device()
    if isinstance(device, str):
        if device == "cuda":
            return cuda_index_now()
        return HOST_DEVICE if device in ("host", "cpu") else parse_text(device, 0, "device")
    if isinstance(device, int) and not isinstance(device, bool):
        if -HOST_DEVICES <= device < MAX_DEVICES - HOST_DEVICES:
            return device
        raise argument_error(
            ValueError, "device", device,
            f"0 to {MAX_DEVICES - HOST_DEVICES - 1} (CUDA) or {-HOST_DEVICES} to -1 (host devices)",
        )
    kind = getattr(device, "type", None)
    if isinstance(kind, str) and hasattr(device, "index"):
        index = device.index
        if index is None:
            return parse_device(kind)
        if kind == "host" and type(index) is int and 0 <= index < HOST_DEVICES:
            return HOST_DEVICE - <int> index
        return parse_text(f"{kind}:{index}", 0, "device")
    raise argument_error(TypeError, "device", device, "None, a str, an int or a device")


cdef int resolve_device(object device) except? -1000:
    cdef int number = parse_device(device)
    if thread_state().tracer != NULL:
        number = traced_device(number)
    if driver_get(number) == NULL:
        driver_open(number)
    return number


cdef str device_text(int device):
    if device >= 0:
        return f"cuda:{device}"
    return "host" if device == HOST_DEVICE else f"host:{HOST_DEVICE - device}"
