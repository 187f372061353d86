# Precision, products in the layouts that the libraries take, and the table of plans.

from libc.stdint cimport int64_t, uint32_t, uint64_t

import operator

from gputensor._arrays cimport (
    DTYPE_COUNT, DT_BFLOAT16, DT_COMPLEX128, DT_COMPLEX64, DT_FLOAT16, DT_FLOAT32, DT_FLOAT64,
    DT_INT8, MAX_NDIM, Operand, dtype_itemsize,
)
from gputensor._driver.registry cimport Slot, register_slot
from gputensor._driver.table cimport HOST_DEVICES
from gputensor.blas.libraries cimport (
    COMPUTE_16F, COMPUTE_32F, COMPUTE_32F_EMULATED_16BFX9, COMPUTE_32F_FAST_16BF,
    COMPUTE_32F_FAST_TF32, COMPUTE_32I, COMPUTE_64F, OP_N, OP_T, SCALE_TENSOR,
)

include "precision.pxi"
include "prepare.pxi"
include "plan.pxi"
include "signature.pxi"
include "known.pxi"
