# Which backend computes a product, and building its plan.

from libc.stdint cimport int64_t, uint64_t
from libc.stdlib cimport calloc, free

from gputensor._arrays cimport DT_INT32, DT_INT8, KIND_SMALL, dtype_itemsize, dtype_kind
from gputensor._driver.registry cimport context_enter, context_leave, driver_get
from gputensor._driver.table cimport HOST_DEVICES, MAX_DEVICES, Driver
from gputensor.blas.kernels cimport (
    PAD_NONE, Relayout, direct_plan, direct_run, packed_nbytes, packed_plan, packed_run,
    pad_bind, pad_choose, pointer_batch_run, small_m_plan, small_m_run, tiny_plan, tiny_run,
)
from gputensor.blas.libraries cimport (
    BLAS_ALLOC_FAILED, BLAS_NOT_SUPPORTED, BLAS_OK, LIBRARY_AUTO, LIBRARY_CUBLAS, Workspace,
    load_libraries, workspace_configure, workspace_nbytes,
)
from gputensor.blas.libraries.gemm cimport (
    bind_cublas, bind_table, cublas_run, integer_run, lt_plan_build, lt_plan_destroy, lt_run,
    lt_version,
)
from gputensor.blas.plan cimport (
    ACT_NONE, BACKEND_CUBLAS, BACKEND_DIRECT, BACKEND_INTEGER, BACKEND_LT, BACKEND_PACKED,
    BACKEND_SMALL_M, BACKEND_TINY, CHOICE_ANY, CONFIG_COUNT, PRODUCT_AS_IT_IS, PRODUCT_FACTORS,
    PRODUCT_POINTERS, Choice, Plan, PlanKey, Product, plan_insert, product_signature,
)

from gputensor._arrays.element_types import DTYPES
from gputensor.blas.kernels import padding
from gputensor.blas.libraries import preferred_blas_library
from gputensor.blas.libraries.status import raise_for_blas
from gputensor.blas.tuning import tunable
from gputensor.blas.tuning.measured_algorithms import find_way
from gputensor.errors import raise_for_status

include "dispatch.pxi"
include "own_kernels.pxi"
include "repetition.pxi"
include "plan_build.pxi"
