# The CUDA filler of the driver table: libcuda, found at run time and called without the GIL.

from libc.stdint cimport uint64_t
from libc.stdlib cimport calloc

import os

from gputensor._driver.table cimport (
    HOST_DEVICES, MAX_DEVICES, STATUS_INVALID_DEVICE, Driver, status_t,
)

from gputensor.errors import DeviceError, status_text

include "cuda.pxi"
