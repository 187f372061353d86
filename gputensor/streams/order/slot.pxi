"""This room's state for each open device (registry.pxd), and its cleanup.

Captures are in a list of the process, since there are only a few, and the streams of graphs in
tables beside it.
"""

cdef struct OrderSlot:
    EventPool events
    Waits waits


# The slot of an open device.
cdef inline OrderSlot* order_of(int device) noexcept nogil:
    return <OrderSlot*>device_slot(device, order_slot)


cdef int _close(int device) except -1:
    forget_device(device)
    forget_graph_streams(device)
    forget_captures(device)
    release_events(device)
    free(order_of(device).events.events)
    order_of(device).events = EventPool(NULL, 0, 0, 0)
    forget_waits(device)
    return 0


cdef void _fork() noexcept nogil:
    graph_streams_fork()
    captures_fork()
    held_renew()


cdef Slot slot
slot.nbytes = sizeof(OrderSlot)
slot.close = _close
slot.fork = _fork
slot.reopen = forget_parent
cdef int order_slot = register_slot(&slot)
