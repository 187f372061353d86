"""Listeners: functions of the program that receive driver calls.

A call may be made with any lock held and without the GIL, so it is recorded (layer.h), and the main
thread passes it to the listeners soon after. Other rooms deliver their own events in the same way.
"""

ctypedef int (*pending_t)(void* argument) except -1

cdef extern from "Python.h":
    int Py_AddPendingCall(pending_t function, void* argument) noexcept nogil

cdef extern from *:
    """
    #include <atomic>
    static std::atomic<bool> gputensor_delivery_is_due{false};
    static inline bool delivery_requested() { return gputensor_delivery_is_due.exchange(true); }
    static inline void delivery_begins() { gputensor_delivery_is_due = false; }
    """
    bint delivery_requested() nogil
    void delivery_begins() nogil

cdef list listeners = []
cdef list deliveries = []       # functions that deliver the recorded events of other rooms


cdef void request_delivery() noexcept nogil:
    if not delivery_requested() and Py_AddPendingCall(_deliver_pending, NULL) != 0:
        delivery_begins()


cdef int _deliver_pending(void* nothing) except -1:
    deliver()
    return 0


def deliver():
    """Pass recorded calls to the listeners now; otherwise the main thread does so soon after."""
    cdef int index
    cdef vector[Call] calls
    cdef list raised = []
    delivery_begins()
    for index in range(MAX_DEVICES):
        if stacks[index] != NULL:
            calls = stacks[index].take_unheard()
            for name, status, arguments in shown(calls):
                tell(listeners, raised, index - HOST_DEVICES, name, status, arguments)
    for delivery in tuple(deliveries):
        delivery(raised)
    if raised:
        try:
            raise raised[0]
        finally:
            raised.clear()  # the traceback leads to this frame


def on_delivery(function):
    """Register a function that delivers its room's events; it gets `raised` for :func:`tell`."""
    deliveries.append(function)


def tell(functions, list raised, *facts):
    """Call functions. An exception of one is reported but not raised and does not stop the rest.

    KeyboardInterrupt and SystemExit are meant for the main thread: they are added to `raised`, and
    raised when all events are delivered.
    """
    for function in tuple(functions):
        try:
            function(*facts)
        except Exception as error:
            report_unraisable(error, function)
        except BaseException as error:
            raised.append(error)


cdef int report_unraisable(error, function) except -1:
    """Pass an exception to ``sys.unraisablehook``."""
    kind, trace = type(error), error.__traceback__
    for part in (kind, error, trace):
        Py_INCREF(part)  # PyErr_Restore takes the references over
    PyErr_Restore(<PyObject*>kind, <PyObject*>error, <PyObject*>trace)
    PyErr_WriteUnraisable(function)
    return 0


def attach_listener(function):
    """Call ``function(device, name, status, arguments)`` for each driver call of a device."""
    listeners.append(function)
    _listen(request_delivery)


def detach_listener(function):
    """Deliver the recorded calls, then remove a listener; ``ValueError`` if it is not attached."""
    try:
        deliver()
    finally:
        listeners.remove(function)
        if not listeners:
            _listen(NULL)


cdef int _listen(void (*notify)() noexcept nogil) except -1:
    cdef int index
    for index in range(MAX_DEVICES):
        if stacks[index] != NULL:
            stacks[index].listen(notify)
    return 0
