# Matrix products for C callers.

from libc.stdint cimport int32_t, int64_t, uint16_t, uint64_t, uint8_t

from gputensor._arrays cimport DT_BFLOAT16, DT_FLOAT16, DT_FLOAT32, Operand, dtype_itemsize
from gputensor._driver.registry cimport driver_get, driver_open
from gputensor._driver.table cimport HOST_DEVICE, HOST_DEVICES, MAX_DEVICES, STATUS_OK, Driver
from gputensor._kernels.launch cimport call_argument, host_call
from gputensor.blas.backends cimport (
    STAGE_CONTEXT, STAGE_DONE, STAGE_LIBRARY, STAGE_WORKSPACE, Outcome, Wanted, Work,
    libraries_are_loaded, libraries_load, library_emulates, plan_build, plan_drop, plan_known,
    plan_publish, work_init, work_queue,
)
from gputensor.blas.kernels cimport PAD_NONE
from gputensor.blas.libraries cimport (
    BLAS_ALLOC_FAILED, COMPUTE_32F, COMPUTE_32F_EMULATED_16BFX9, SCALE_TENSOR, preferred_library,
)
from gputensor.blas.plan cimport (
    ACT_NONE, CHOICE_ANY, FP32_MASK, Choice, Plan, Product, check_out, compute_type, extent_of,
    precision_current, prepare,
)
from gputensor.blas.product cimport PRODUCT_CALL

include "c_entry.pxi"
