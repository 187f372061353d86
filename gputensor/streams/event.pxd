# Event: a mark in a stream that other streams and threads can wait for.

from libc.stdint cimport uint64_t

from gputensor._driver.table cimport Driver, status_t

cdef class Event:
    cdef uint64_t handle            # 0 until the first record
    cdef int device_number          # NO_DEVICE until the first record
    cdef int generation             # of the device number when it was made (see Stream)
    cdef uint64_t stream            # of the latest record, and its moment (waited.pxd)
    cdef uint64_t moment
    cdef readonly bint enable_timing
    cdef readonly bint blocking

    cdef Driver* driver(self) except NULL
    cdef uint64_t create(self, int device) except 0
    cdef int check(self, status_t status, str call) except -1
