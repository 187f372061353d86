# Our own product kernels and those around products: padding, pointers, epilogues.

from libc.stdint cimport int64_t, uint32_t, uint64_t
from libc.stdlib cimport llabs
from libc.string cimport memset

from gputensor._arrays cimport (
    DT_BFLOAT16, DT_FLOAT16, DT_FLOAT32, DT_FLOAT64, DT_INT8, DT_UINT8, KIND_COMPLEX,
    KIND_FLOAT, KIND_SMALL, MAX_NDIM, Operand, dtype_itemsize, dtype_kind,
)
from gputensor._driver.registry cimport device_facts, known_facts
from gputensor._kernels.faces cimport OP_ADD, elementwise
from gputensor._kernels.launch cimport (
    Kernel, KernelTable, kernel_find, kernel_function, launch_kernel, launch_kernel_3d,
)
from gputensor.blas.libraries cimport (
    COMPUTE_32F, COMPUTE_32F_FAST_16BF, COMPUTE_32F_FAST_TF32, OP_N, OP_T, Workspace,
)
from gputensor.blas.libraries.gemm cimport cublas_run_pointers
from gputensor.blas.plan cimport (
    ACT_GELU_TANH, ACT_NONE, ACT_RELU, BACKEND_DIRECT, BACKEND_PACKED, BACKEND_SMALL_M,
    BACKEND_TINY, PRODUCT_AS_IT_IS, Plan, PlanKey, Product, alignment_of, plan_make,
    product_alignments,
)

from gputensor._arrays.element_types import DTYPES
from gputensor.blas.kernels import programs
from gputensor.errors import DeviceError

include "padding/padding.pxi"
include "tiny/tiny.pxi"
include "unaligned/unaligned.pxi"
include "skinny/skinny_mma.pxi"
include "skinny/skinny.pxi"
include "packed/packed_schedule.pxi"
include "packed/packed.pxi"
include "pointers/pointers.pxi"
include "epilogue/epilogue.pxi"
include "quantized/quantized.pxi"
