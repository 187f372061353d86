# CUDA devices behind the driver table.

from gputensor._driver.table cimport Driver

from gputensor.errors import DeviceError


cdef Driver* cuda_open(int ordinal) except NULL:
    raise DeviceError(f"there is no CUDA device {ordinal}")


def cuda_device_count():
    """Return the number of CUDA devices; 0 without a driver library."""
    return 0
