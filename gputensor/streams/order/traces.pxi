"""The tracer of a thread: while a function is traced, a phantom device stands for the real one.

The tracer is an object of programs/trace_device.py. It is consulted where an eager call of another
thread pays one load at most, and otherwise only where that would raise an error.
"""


cdef bint is_tracing() noexcept nogil:
    return thread_state().tracer != NULL


cdef object current_tracer():
    cdef void* tracer = thread_state().tracer
    return None if tracer == NULL else <object>tracer


cdef int traced_device(int device) except? -1000:
    return current_tracer().device(device)


def set_tracer(tracer):
    """Give this thread a tracer; None ends that.

    A tracer is an object with these methods, which raise what the user gets to see:

    ``device(number)``
        The device that stands for a device which the traced function names.
    ``stream(stream)``
        The stream of the phantom device that stands for a Stream.
    ``lift(function, tensors, out)``
        Tensors that meet on several devices, all on the phantom device; see `on_one_device`.
    ``made(storage)``, ``refuse_write(storage, name)``
        The function writes to memory of another device that it has made; or may not have.
    ``extents(number, values)``, ``length(number, extent)``
        The shape or size of a tensor of device `number`, as the function is to see it; and it asks
        for a length.
    ``fact(name, function, device)``
        The answer about a device.
    ``refuse(what, way_out)``
        Raise for something that a traced function cannot do.
    """
    thread_storage.tracer = tracer      # keeps it alive
    thread_state().tracer = NULL if tracer is None else <void*>tracer


def tracer():
    """Return the tracer of this thread, or None.

    >>> tracer() is None
    True
    """
    return current_tracer()
