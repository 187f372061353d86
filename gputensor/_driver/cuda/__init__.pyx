# The CUDA filler of the driver table: libcuda, found at run time and called without the GIL.

from libc.stdint cimport uint32_t, uint64_t
from libc.stdlib cimport calloc

import os

from gputensor._driver.table cimport (
    ATTRIBUTE_CAPABILITY_MAJOR, ATTRIBUTE_CAPABILITY_MINOR, Driver,
)

from gputensor.errors import DeviceError, status_text

include "cuda.pxi"
