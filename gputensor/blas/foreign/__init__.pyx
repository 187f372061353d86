# Matrix products for C callers.

from libc.stdint cimport int32_t, int64_t, uint16_t, uint64_t, uint8_t

from gputensor._arrays cimport DT_BFLOAT16, DT_FLOAT16, DT_FLOAT32, Operand, dtype_itemsize
from gputensor._driver.registry cimport context_enter, context_leave, driver_get, driver_open
from gputensor._driver.table cimport HOST_DEVICE, HOST_DEVICES, MAX_DEVICES, STATUS_OK, Driver
from gputensor._kernels.launch cimport host_call, host_view
from gputensor.blas.backends cimport (
    dispatch_is_loaded, dispatch_load, library_emulates, plan_build, plan_drop, plan_run,
)
from gputensor.blas.kernels cimport PAD_NONE
from gputensor.blas.libraries cimport (
    BLAS_ALLOC_FAILED, BLAS_OK, COMPUTE_32F, COMPUTE_32F_EMULATED_16BFX9, SCALE_TENSOR,
    Workspace, preferred_library, workspace_return, workspace_take,
)
from gputensor.blas.plan cimport (
    ACT_NONE, CHOICE_ANY, FP32_MASK, Choice, Plan, PlanKey, Product, check_out, compute_type,
    extent_of, plan_find, plan_hash, plan_insert, plan_key, precision_current, prepare,
)

from gputensor.blas.host import gemm as gemm_host

include "c_entry.pxi"
