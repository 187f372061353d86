"""SharedPages: memory of one page that other processes can map as well.

The memory lives as long as any process maps it, so no process has to wait until another has
finished with it, and the allocator never reuses it. The allocator's statistics do not include it.
"""

cdef extern from "unistd.h" nogil:
    int close_descriptor "close"(int descriptor)


cdef class SharedPages:
    """New shared memory, or that of another process.

    Parameters
    ----------
    device : int
        The number of an open device.
    nbytes : int
        Above 0; rounded up to the device's page size.
    descriptor : int, optional
        The file descriptor of another process's memory; the object closes it. Default: new memory.

    Raises
    ------
    DeviceError
        The device has no virtual memory.
    OutOfMemoryError, DriverError
        The device has no memory, or shares none.
    """

    cdef readonly int device
    cdef readonly size_t nbytes
    cdef readonly uint64_t ptr
    cdef readonly int descriptor
    cdef int generation
    cdef uint64_t page

    def __cinit__(self, int device, size_t nbytes, descriptor=None):
        cdef Driver* driver
        cdef size_t unit
        cdef status_t status
        self.descriptor = -1 if descriptor is None else descriptor
        driver = driver_open(device)
        unit = driver.page_granularity
        if unit == 0:
            raise DeviceError(f"device {device} has no virtual memory: it can share none")
        self.device = device
        self.generation = device_generation(device)
        self.nbytes = (nbytes + unit - 1) // unit * unit
        if descriptor is None:
            status = driver.page_create_shared(driver.self, &self.page, self.nbytes,
                                               &self.descriptor)
        else:
            status = driver.page_import(driver.self, &self.page, self.nbytes, self.descriptor)
        if status == STATUS_OK:
            status = driver.va_reserve(driver.self, &self.ptr, self.nbytes, 0)
        if status == STATUS_OK:
            status = driver.page_map(driver.self, self.ptr, self.nbytes, self.page)
            if status != STATUS_OK:
                driver.va_release(driver.self, self.ptr, self.nbytes)
                self.ptr = 0
        if status == STATUS_OUT_OF_MEMORY:
            raise OutOfMemoryError(f"out of memory on {device_text(device)}: {amount(self.nbytes)} "
                                   "of memory for several processes requested")
        raise_for_status(status, "page_create_shared" if descriptor is None else "page_import",
                         f"of {self.nbytes} bytes on device {device}")

    def __dealloc__(self):
        cdef Driver* driver = driver_get(self.device)
        if self.descriptor >= 0:
            close_descriptor(self.descriptor)
        if driver == NULL or self.generation != device_generation(self.device):
            return
        with nogil:
            if self.ptr:
                driver.page_unmap(driver.self, self.ptr, self.nbytes)
                driver.va_release(driver.self, self.ptr, self.nbytes)
            if self.page:
                driver.page_destroy(driver.self, self.page)
