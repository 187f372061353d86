# Descriptions of arrays for every layer above the driver: element types, operands, layouts and
# scalars. No kernels, no memory, no device.

from libc.math cimport HUGE_VAL, copysign, fabs, frexp, ldexp, nearbyint, signbit
from libc.stdint cimport int32_t, int64_t, uint32_t, uint64_t
from libc.string cimport memcpy, memset

include "layout.pxi"
include "scalar.pxi"
