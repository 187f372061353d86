# Which backend computes a product, its plan, and its way to the stream.

from libc.math cimport ceil, pow, sqrt
from libc.stdint cimport int64_t, uint32_t, uint64_t
from libc.stdlib cimport calloc, free
from libc.string cimport memset

from gputensor._alloc.allocator cimport raise_for_malloc
from gputensor._arrays cimport (
    DTYPE_COUNT,
    DT_BFLOAT16, DT_FLOAT16, DT_FLOAT32, DT_FLOAT64, DT_INT32, DT_INT8, KIND_COMPLEX, KIND_FLOAT,
    KIND_SMALL, dtype_is_half, dtype_itemsize, dtype_kind,
)
from gputensor._driver.host cimport phantom_recorder
from gputensor._driver.registry cimport (
    DeviceFacts, context_enter, context_leave, device_facts, driver_get, known_facts,
    stream_captures,
)
from gputensor._driver.table cimport HOST_DEVICES, MAX_DEVICES, STATUS_OK, status_t
from gputensor._kernels.launch cimport (
    Kernel, KernelTable, Launch, kernel_load, kernel_of, launch_init, launch_kernel,
)
from gputensor.blas.kernels cimport (
    PAD_D, PAD_NONE, Relayout, odd_matrices, pad_bind, pad_choose, padding_is_auto,
)
from gputensor.blas.libraries cimport (
    BLAS_ALLOC_FAILED, BLAS_NOT_SUPPORTED, BLAS_OK, COMPUTE_32F, COMPUTE_32F_EMULATED_16BFX9,
    COMPUTE_32F_FAST_16BF, COMPUTE_32F_FAST_TF32, LIBRARY_AUTO, LIBRARY_CUBLAS, OP_N, OP_T,
    load_libraries, preference_is_unread,
    workspace_configure, workspace_nbytes, workspace_return, workspace_take,
)
from gputensor.blas.libraries.gemm cimport (
    bind_cublas, bind_table, cublas_run, cublas_run_grouped, cublas_run_pointers, integer_factor,
    lt_plan_build, lt_plan_destroy, lt_run, lt_unaligned_seconds, lt_version,
)
from gputensor.blas.plan cimport (
    ACT_GELU, ACT_GELU_TANH, ACT_NONE, ACT_RELU, BACKEND_CUBLAS, BACKEND_LT, CHOICE_ANY,
    CONFIG_COUNT, MAX_OUTER, PRODUCT_AS_IT_IS, PRODUCT_FACTORS, PRODUCT_NO_SPLIT,
    PRODUCT_POINTERS, Pinned,
    alignment_of,
    choice_read, known_is_filled, known_measured, known_near, known_tuned, plan_find, plan_hash,
    plan_insert,
    plan_key, product_alignments, product_signature, tuning_asks,
)

from gputensor._arrays.element_types import DTYPES
from gputensor.blas.kernels import panel_programs, programs
from gputensor.blas.libraries import preferred_blas_library
from gputensor.blas.libraries.status import raise_for_blas
from gputensor.blas.tuning import measured_algorithms, tunable
from gputensor.errors import DeviceError, raise_for_status

include "work.pxi"
include "../kernels/tiny/tiny.pxi"
include "../kernels/skinny/skinny_mma.pxi"
include "../kernels/skinny/skinny.pxi"
include "../kernels/few_rows/few_rows.pxi"
include "../kernels/narrow/narrow.pxi"
include "../kernels/held/held.pxi"
include "../kernels/panel/panel.pxi"
include "../kernels/unaligned/unaligned.pxi"
include "../kernels/packed/packed_schedule.pxi"
include "../kernels/packed/packed.pxi"
include "../kernels/pointers/pointers.pxi"
include "../kernels/integer/integer.pxi"
include "described.pxi"
include "libraries.pxi"
include "table.pxi"
include "planning.pxi"
