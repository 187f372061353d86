# Matrix products for C callers.

from libc.stdint cimport int32_t, int64_t, uint16_t, uint64_t, uint8_t

from gputensor._arrays cimport DT_BFLOAT16, DT_FLOAT16, DT_FLOAT32, Operand, dtype_itemsize
from gputensor._driver.registry cimport driver_get, driver_open
from gputensor._driver.table cimport HOST_DEVICE, HOST_DEVICES, MAX_DEVICES, STATUS_OK, Driver
from gputensor._kernels.launch cimport call_argument, host_call
from gputensor.blas.backends cimport (
    PLAN_PLAIN, STAGE_CONTEXT, STAGE_DONE, STAGE_LIBRARY, STAGE_WORKSPACE, Outcome, Wanted, Work,
    libraries_are_loaded, libraries_load, plan_drop, plan_of, wanted_init, work_init, work_queue,
)
from gputensor.blas.libraries cimport BLAS_ALLOC_FAILED, preferred_library
from gputensor.blas.plan cimport (
    FP32_MASK, Plan, Product, check_out, extent_of, precision_current, prepare, product_fill,
)
from gputensor.blas.product cimport PRODUCT_CALL

include "c_entry.pxi"
