# Work on a host device: a call, queued on one of its streams as its row's NumPy function.
#
# A queued call is a small C record that holds references until it has run. The driver passes it to
# `run_record` in the thread that advances the stream, so that function takes the GIL itself. In a
# section (_driver/section.h) the call runs at the section's end at the earliest. Outside a section
# it may run at once, so the driver is called without the GIL and other Python threads can run. A
# call queued during a capture runs once for each replay of the graph, so its record stays until
# host_call_release() for the capture.

cdef extern from "Python.h":
    const int PyBUF_WRITE

cdef struct Record:
    PyObject* function
    PyObject* arguments
    int device
    int is_captured             # the record outlives its first run

cdef object numpy_dtypes = tuple(row.numpy for row in DTYPES)
cdef object ndarray = np.ndarray

# The state of each open device.
cdef struct HostCalls:
    PyObject* error             # owned: the first exception of queued work
    PyObject* captured          # owned dict: capture id -> addresses of its records
    PyObject* recorder          # owned: records the calls; NULL: calls run


# NumPy keeps its handling of floating-point errors in the context of a thread. Entering a context
# in which they are ignored costs a tenth of np.errstate. NumPy before 2 does not use contexts.
cdef object contexts = threading.local()
cdef bint has_contexts = np.lib.NumpyVersion(np.__version__) >= "2.0.0"


cdef object in_silence(object function, tuple arguments):
    """Call a function of NumPy arrays without warnings about values."""
    if not has_contexts:
        with np.errstate(all="ignore"):
            return function(*arguments)
    context = getattr(contexts, "silent", None)
    if context is None or contexts.is_inside:
        # A call inside another call has a context of its own.
        context = contextvars.copy_context()
        context.run(np.seterr, all="ignore")
        if not hasattr(contexts, "silent"):
            contexts.silent, contexts.is_inside = context, False
        else:
            return context.run(function, *arguments)
    contexts.is_inside = True
    try:
        return context.run(function, *arguments)
    finally:
        contexts.is_inside = False


cdef void run_record(void* argument) noexcept with gil:
    cdef Record* record = <Record*>argument
    try:
        in_silence(<object>record.function, <tuple>record.arguments)
    except BaseException as error:
        keep_error(record.device, error)
    if not record.is_captured:
        drop_record(record)


cdef inline HostCalls* calls_of(int device) noexcept nogil:
    return <HostCalls*>device_slot(device, launch_slot)


cdef void keep_error(int device, object error) noexcept:
    cdef HostCalls* calls = calls_of(device)
    if calls.error == NULL:
        Py_INCREF(error)
        calls.error = <PyObject*>error


cdef dict captured_of(int device):
    cdef HostCalls* calls = calls_of(device)
    cdef dict made
    if calls.captured == NULL:
        made = {}
        Py_INCREF(made)
        calls.captured = <PyObject*>made
    return <dict>calls.captured


cdef void drop_record(Record* record) noexcept:
    Py_DECREF(<object>record.function)
    Py_DECREF(<object>record.arguments)
    free(record)


cdef int host_call(int device, uint64_t stream, object row, tuple arguments) except -1:
    cdef Driver* driver = driver_open(device)
    cdef HostCalls* calls = calls_of(device)
    cdef Record* record
    cdef int status, active = 0
    cdef uint64_t capture_id = 0
    if calls.recorder != NULL:
        (<object>calls.recorder).call(row, stream, arguments)
        return 0
    raise_pending(device)
    status = driver.capture_info(driver.self, stream, &active, &capture_id)
    if status != 0:
        # Without the capture's state, a record that a graph runs again might be freed too early.
        raise_for_status(status, "capture_info", f"on stream {stream:#x} of {device_text(device)}")
    record = <Record*>malloc(sizeof(Record))
    if record == NULL:
        raise MemoryError("no memory for a queued call")
    function = row.run
    Py_INCREF(function)
    Py_INCREF(arguments)
    record.function = <PyObject*>function
    record.arguments = <PyObject*>arguments
    record.device = device
    record.is_captured = active
    if active:
        captured_of(device).setdefault(capture_id, []).append(<uint64_t>record)
    if section_entered():
        status = driver.host_launch(driver.self, run_record, record, stream)
    else:
        with nogil:
            status = driver.host_launch(driver.self, run_record, record, stream)
    if status != 0:
        if active:
            captured_of(device)[capture_id].remove(<uint64_t>record)
        drop_record(record)
        raise_for_status(status, "host_launch", f"on stream {stream:#x} of {device_text(device)}")
    return raise_pending(device)


cdef int host_work(int device, uint64_t stream, void (*function)(void*) noexcept nogil,
                   void* record) except -1:
    cdef Driver* driver = driver_open(device)
    cdef int status, active = 0
    cdef uint64_t capture_id = 0
    if calls_of(device).recorder != NULL:
        return 0
    raise_pending(device)
    status = driver.capture_info(driver.self, stream, &active, &capture_id)
    if status != 0 or active:
        return 0
    if section_entered():
        status = driver.host_launch(driver.self, function, record, stream)
    else:
        with nogil:
            status = driver.host_launch(driver.self, function, record, stream)
    return status == 0


cdef int raise_pending(int device) except -1:
    cdef HostCalls* calls = calls_of(device)
    if calls != NULL and calls.error != NULL:
        error = <object>calls.error
        Py_CLEAR(calls.error)
        raise error
    return 0


# Clears errors, so that a later device of the same number does not raise them. Records of captures
# stay, since queued graphs may still run them.
cdef int _close(int device) except -1:
    cdef HostCalls* calls = calls_of(device)
    forget_kernels(device)
    Py_CLEAR(calls.error)
    Py_CLEAR(calls.captured)
    Py_CLEAR(calls.recorder)
    return 0


cdef int _reopen(int device) except -1:
    forget_kernels(device)
    return 0


cdef Slot slot
slot.nbytes = sizeof(HostCalls)
slot.close = _close
slot.reopen = _reopen
slot.synchronize = raise_pending
slot.release = host_call_release
cdef int launch_slot = register_slot(&slot)


# Frees the records of calls that were queued while the capture `capture_id` was active.
cdef int host_call_release(int device, uint64_t capture_id) except -1:
    for address in captured_of(device).pop(capture_id, ()):
        drop_record(<Record*><uint64_t>address)
    return 0


cdef object scalar_array(Operand* operand):
    cdef int kind = dtype_kind(operand.dtype)
    cdef object dtype = numpy_dtypes[operand.dtype]
    if kind == KIND_COMPLEX:
        return np.array(complex(operand.real, operand.imag)).astype(dtype)
    if kind == KIND_FLOAT or kind == KIND_SMALL:
        return np.array(operand.real).astype(dtype)
    if operand.dtype == 0:
        return np.array(operand.integer != 0)
    return np.array(operand.integer, dtype=np.int64).astype(dtype)


cdef object host_view(Operand* operand):
    cdef int axis, ndim = operand.ndim
    cdef int64_t low = 0, high = 0, reach
    cdef int64_t itemsize = dtype_itemsize(operand.dtype)
    cdef object dtype = numpy_dtypes[operand.dtype]
    if operand.is_scalar:
        return scalar_array(operand)
    shape = tuple([operand.shape[axis] for axis in range(ndim)])
    if 0 in shape:
        return np.empty(shape, dtype)
    for axis in range(ndim):
        reach = (operand.shape[axis] - 1) * operand.strides[axis] * itemsize
        if reach < 0:
            low += reach
        else:
            high += reach
    memory = PyMemoryView_FromMemory(<char*>(<int64_t>operand.ptr + low),
                                     high - low + itemsize, PyBUF_WRITE)
    strides = tuple([operand.strides[axis] * itemsize for axis in range(ndim)])
    return ndarray(shape, dtype, memory, -low, strides)
