# Timing products, for tuning and measurements.

from libc.stdint cimport int64_t, uint32_t, uint64_t
from libc.string cimport memset

import numpy as np

from gputensor._alloc.allocator cimport allocator_free, allocator_malloc, raise_for_malloc
from gputensor._alloc.core cimport Block
from gputensor._arrays cimport (
    DT_BFLOAT16, DT_COMPLEX128, DT_COMPLEX64, DT_FLOAT16, DT_FLOAT32, DT_FLOAT64,
    DT_FLOAT8_E4M3, DT_FLOAT8_E5M2, dtype_itemsize,
)
from gputensor._driver.registry cimport Slot, device_slot, driver_open, register_slot
from gputensor._driver.table cimport EVENT_TIMING, STATUS_OK, Driver, status_t
from gputensor._kernels.launch cimport Kernel, Launch, launch_init, launch_kernel
from gputensor.blas.backends cimport (
    PLAN_PLAIN, STAGE_CONTEXT, Outcome, Wanted, Work, is_own, libraries_load, own_plan, plan_build,
    plan_destroy, plan_known, scratch_nbytes, wanted_init, work_init, work_launch,
)
from gputensor.blas.kernels cimport (
    PAD_A, PAD_B, PAD_D, PAD_NONE, Relayout, odd_matrices, pad_bind, pad_nbytes,
    relayout_launch,
)
from gputensor.blas.libraries cimport BLAS_OK, COMPUTE_32F, LIBRARY_AUTO, OP_N, workspace_nbytes
from gputensor.blas.libraries.gemm cimport (
    lt_config_of, lt_enumerate, lt_neighbours, lt_proposals, lt_version,
)
from gputensor.blas.plan cimport (
    BACKEND_CUBLAS, BACKEND_LT, CONFIG_COUNT, Choice, Plan, Product, choice_read,
    product_of_signature,
)

from gputensor._arrays.element_types import DTYPES
from gputensor.blas.backends import backend_table
from gputensor.blas.kernels import programs
from gputensor.errors import raise_for_status

include "product_bench.pxi"
