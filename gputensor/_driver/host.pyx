# The embedded host device behind the driver table. The device itself is C++ (host_device.h).

from libc.stdint cimport uint64_t
from libc.stdlib cimport calloc, free

from gputensor._driver.table cimport Driver

cdef extern from "gputensor/_driver/host_device.h" namespace "gputensor" nogil:
    cdef cppclass HostDevice:
        HostDevice(size_t capacity, bint phantom, bint deferred, uint64_t seed)
    void bind_entries(Driver* table, HostDevice* device)


cdef Driver* host_open(int device, size_t capacity, bint phantom, bint deferred,
                       uint64_t seed) noexcept nogil:
    cdef Driver* table = <Driver*>calloc(1, sizeof(Driver))
    bind_entries(table, new HostDevice(capacity, phantom, deferred, seed))
    table.name = "host"
    table.device = device
    table.page_granularity = 2 << 20
    return table


cdef void host_close(Driver* table) noexcept nogil:
    cdef HostDevice* device = <HostDevice*>table.self
    del device
    free(table)
