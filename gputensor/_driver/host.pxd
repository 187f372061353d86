# Host devices: opening one gives a filled driver table; closing frees all that it holds.

from libc.stdint cimport uint64_t

from gputensor._driver.table cimport Driver

cdef Driver* host_open(int device, size_t capacity, bint phantom, bint deferred,
                       uint64_t seed) noexcept nogil
cdef void host_close(Driver* table) noexcept nogil
