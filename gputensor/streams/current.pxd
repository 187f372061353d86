# The device and the stream that this thread works on. Reading them makes no driver call.
#
# A device number that current_device() or resolve_device() gives is open: driver_get() of it is
# not NULL.

from libc.stdint cimport uint64_t

cdef enum:
    NO_DEVICE = -1000

cdef extern from "gputensor/streams/thread_state.h":
    cdef struct ThreadState:
        int device
        uint64_t* streams
        void* owner

# Opens the default device at its first use in the process.
cdef int current_device() except? -1000
# The current stream's handle on `device` in this thread; 0 is the default stream.
cdef uint64_t current_stream(int device) noexcept nogil
# None (the current device), "cuda", "cuda:1", "host", a device number, or an object with .type and
# .index. Opens the device. Raises ValueError or TypeError naming what came, DeviceError when the
# machine has no such device.
cdef int resolve_device(object device) except? -1000
# The same without opening it.
cdef int parse_device(object device) except? -1000
# "cuda:1" or "host" for a device number.
cdef str device_text(int device)

# How often a device of this number was closed: what was made before belongs to another device.
cdef int device_generation(int device) noexcept nogil
# Raises the DeviceError of using a `what` ("tensor") that was made in another generation.
cdef int raise_closed(int device, int generation, str what) except -1

# For streams/ only. `stream_object` is the Stream of `stream`, or None for the default stream; the
# thread keeps it alive while it is current.
cdef int make_device_current(int device) except -1
cdef int make_stream_current(int device, uint64_t stream, object stream_object) except -1
cdef object current_stream_object(int device)
# Enters a device (stream_object is None and stream_device NO_DEVICE) or a stream, remembering what
# was current; leave() restores it. Frames of one thread form a stack.
cdef int enter_device(int device) except -1
cdef int enter_stream(int device, uint64_t stream, object stream_object) except -1
cdef int leave() except -1
