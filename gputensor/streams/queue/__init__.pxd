# The functions of streams/queue that other rooms may call; each section is named after its part.

from libc.stdint cimport uint64_t

from gputensor._driver.table cimport Driver, status_t

# ---- device

# The Device of a device number; equal numbers give the same object.

cdef class Device:
    cdef readonly int number

cdef Device device_object(int device)


# ---- stream

# Stream: one queue of work on one device.

cdef class Stream:
    cdef readonly int device_number
    cdef readonly int priority
    cdef int generation         # of the device number; it differs after the device was closed
    cdef uint64_t handle
    cdef bint is_owned          # made by this library; goes to the reuse list when dropped
    cdef bint is_private        # made for captures, and not used otherwise yet
    cdef object owner           # keeps the object behind an external stream alive
    cdef object __weakref__

    cdef int drop(self) except -1
    cdef int open(self) except -1
    cdef Driver* driver(self) except NULL
    cdef int check(self, status_t status, str call) except -1

# The Stream of a stream argument: a Stream, or an object with __cuda_stream__, which belongs to
# `device`. None means the current stream of `device`. Raises TypeError for anything else and
# ValueError for a stream of another device.
cdef Stream stream_argument(object stream, int device)
# The handle of a stream argument, without making a Stream for None.
cdef int resolve_stream(object stream, int device, uint64_t* handle) except -1
# The Stream of a stream argument on any device; `device` is the device of a foreign stream.
cdef Stream any_stream(object stream, int device)
# Runs the `synchronize` functions of the slots after a wait for a host device from Python.
cdef int after_synchronize(int device) except -1


# ---- event

# Event: a mark in a stream that other streams and threads can wait for.

cdef class Event:
    cdef uint64_t handle            # 0 until the first record
    cdef int device_number          # NO_DEVICE until the first record
    cdef int generation             # of the device number when it was made (see Stream)
    cdef uint64_t stream            # of the latest record, and its moment (waited.pxi)
    cdef uint64_t moment
    cdef readonly bint enable_timing
    cdef readonly bint blocking
    cdef readonly bint interprocess
    cdef readonly bint external
    cdef object __weakref__

    cdef bint is_own(self) noexcept
    cdef Driver* driver(self) except NULL
    cdef uint64_t create(self, int device) except 0
    cdef int check(self, status_t status, str call) except -1
