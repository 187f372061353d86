"""This room's state for each open device: the Python objects of its slot (registry.pxd)."""

cdef class DeviceStreams:
    cdef Stream default_stream      # with handle 0; None: not made yet
    cdef dict reusable              # priority -> handles of dropped streams; None -> for captures
    cdef set capture_handles        # handles made for captures

    def __cinit__(self):
        self.reusable = {}
        self.capture_handles = set()


# The state of an open device.
cdef DeviceStreams streams_of(int device):
    cdef PyObject** kept = <PyObject**>device_slot(device, queue_slot)
    cdef DeviceStreams made
    if kept == NULL:
        raise DeviceError(f"{device_text(device)} is closed")
    if kept[0] == NULL:
        made = DeviceStreams()
        Py_INCREF(made)
        kept[0] = <PyObject*>made
    return <DeviceStreams>kept[0]


cdef int _close(int device) except -1:
    Py_CLEAR((<PyObject**>device_slot(device, queue_slot))[0])
    return 0


cdef Slot slot
slot.nbytes = sizeof(PyObject*)
slot.close = _close
cdef int queue_slot = register_slot(&slot)
