"""Listeners: functions of the program that receive driver calls.

A call may be made with any lock held and without the GIL, so it is recorded (layer.h), and the main
thread passes it to the listeners soon after. Other rooms deliver their own events in the same way.
"""

ctypedef int (*pending_t)(void* argument) noexcept

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


cdef int _deliver_pending(void* nothing) noexcept:
    deliver()
    return 0


def deliver():
    """Pass recorded calls to the listeners now; otherwise the main thread does so soon after."""
    cdef int index
    cdef vector[Call] calls
    delivery_begins()
    for index in range(MAX_DEVICES):
        if stacks[index] != NULL:
            calls = stacks[index].take_unheard()
            for name, status, arguments in shown(calls):
                tell(listeners, index - HOST_DEVICES, name, status, arguments)
    for delivery in tuple(deliveries):
        delivery()


def on_delivery(function):
    """Register a function that is called at each delivery, to deliver its room's events."""
    deliveries.append(function)


def tell(functions, *facts):
    """Call functions. An exception of one is reported but not raised and does not stop the rest."""
    for function in tuple(functions):
        try:
            function(*facts)
        except Exception as error:
            sys.unraisablehook(Unraisable(error, function))


class Unraisable:
    """The argument of ``sys.unraisablehook``."""

    def __init__(self, error, function):
        self.exc_type, self.exc_value, self.exc_traceback = type(error), error, error.__traceback__
        self.err_msg, self.object = "Exception ignored in a listener", function


def attach_listener(function):
    """Call ``function(device, name, status, arguments)`` for each call of observed devices."""
    listeners.append(function)
    _listen(request_delivery)


def detach_listener(function):
    """Deliver the recorded calls, then remove a listener; ``ValueError`` if it is not attached."""
    deliver()
    listeners.remove(function)
    if not listeners:
        _listen(NULL)


cdef int _listen(void (*notify)() noexcept nogil) except -1:
    cdef int index
    for index in range(MAX_DEVICES):
        if stacks[index] != NULL:
            stacks[index].listen(notify)
    return 0
