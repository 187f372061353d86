"""What this room keeps for each open device: one object, for accounts.py (registry.pxd)."""


def kept_for(int device):
    """Return what was last given to :func:`keep_for` since the device opened, or None."""
    cdef PyObject** kept = <PyObject**>device_slot(device, observe_slot)
    return None if kept == NULL or kept[0] == NULL else <object>kept[0]


def keep_for(int device, value):
    """Keep an object until the open device closes; the child of a fork does not have it."""
    cdef PyObject** kept = <PyObject**>device_slot(device, observe_slot)
    Py_XDECREF(kept[0])
    Py_INCREF(value)
    kept[0] = <PyObject*>value


cdef int _close(int device) except -1:
    Py_CLEAR((<PyObject**>device_slot(device, observe_slot))[0])
    return 0


cdef Slot slot
slot.nbytes = sizeof(PyObject*)
slot.close = _close
cdef int observe_slot = register_slot(&slot)
