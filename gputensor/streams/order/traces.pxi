"""The tracer of a thread: while a function is traced, a phantom device stands for the real one.

The tracer is an object of programs/trace_device.py. The library consults it where an eager call
without a tracer pays at most one load, and otherwise only where such a call would raise an error.
"""


cdef bint is_tracing() noexcept nogil:
    return thread_state().tracer != NULL


cdef object current_tracer():
    cdef void* tracer = thread_state().tracer
    return None if tracer == NULL else <object>tracer


cdef int traced_device(int device) except? -1000:
    return current_tracer().device(device)


def set_tracer(tracer):
    """Give this thread a tracer; None removes it.

    A tracer is an object with these methods, whose exceptions reach the user:

    ``device(number)``
        The device that stands for a device which the traced function names.
    ``stream(stream)``
        The stream of the phantom device that stands for a Stream.
    ``lift(function, tensors, out)``
        Tensors of several devices in one call, all moved to the phantom device; see
        `on_one_device`.
    ``made(storage)``, ``refuse_write(storage, name)``
        Called when the function writes to memory of another device: memory that it has made itself,
        or memory that it may not have made.
    ``extents(number, values)``, ``length(number, extent)``
        The shape or size, and the length, that the function sees of a tensor of device `number`.
    ``fact(name, function, device)``
        The result of a query about a device.
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
