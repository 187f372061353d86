"""The context of a device, current in the calling thread for the length of a library call."""

from libc.stdint cimport uint64_t

from gputensor._driver.registry cimport driver_get
from gputensor._driver.table cimport STATUS_NOT_INITIALIZED, Driver, status_t


cdef status_t context_bind(int device, uint64_t stream) noexcept nogil:
    cdef Driver* driver = driver_get(device)
    cdef int is_capturing = 0
    cdef uint64_t capture_id = 0
    if driver is NULL:
        return STATUS_NOT_INITIALIZED
    # A thread without a context keeps the device's after any entry; this one changes nothing else.
    return driver.capture_info(driver.self, stream, &is_capturing, &capture_id)
