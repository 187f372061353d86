# Open devices by number, and the Python functions that open, close and observe them.

import os

from libc.stdint cimport uint64_t

from gputensor._driver.host cimport host_close, host_open
from gputensor._driver.table cimport HOST_DEVICE, HOST_DEVICES, MAX_DEVICES, Driver

from gputensor.errors import DeviceError

cdef Driver* tables[MAX_DEVICES]


cdef Driver* driver_get(int device) noexcept nogil:
    if device < -HOST_DEVICES or device >= MAX_DEVICES - HOST_DEVICES:
        return NULL
    return tables[device + HOST_DEVICES]


cdef Driver* driver_open(int device) except NULL:
    cdef Driver* table = driver_get(device)
    if table != NULL:
        return table
    if device != HOST_DEVICE:
        raise DeviceError(f"device {device} is not open")
    table = host_open(device, os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2,
                      False, False, 0)
    tables[device + HOST_DEVICES] = table
    return table


cdef void driver_replace(int device, Driver* table) noexcept nogil:
    tables[device + HOST_DEVICES] = table


def cuda_device_count():
    """Return the number of CUDA devices; 0 without a driver library."""
    return 0


def open_host(capacity=None, seed=None, phantom=False):
    """Open a further host device and return its number."""
    cdef int device
    for device in range(-2, -HOST_DEVICES - 1, -1):
        if driver_get(device) == NULL:
            break
    else:
        raise DeviceError("too many host devices are open")
    if capacity is None:
        capacity = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2
    tables[device + HOST_DEVICES] = host_open(device, capacity, phantom, seed is not None,
                                              seed or 0)
    return device


def close_host(int device):
    """Close a host device that `open_host` made."""
    host_close(driver_get(device))
    tables[device + HOST_DEVICES] = NULL
