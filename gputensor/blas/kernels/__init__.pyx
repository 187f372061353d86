# Padding and epilogues, which run before and after products. Kernels of products are in
# blas/backends.

from libc.stdint cimport int64_t, uint32_t, uint64_t
from libc.stdlib cimport llabs
from libc.string cimport memset

from gputensor._arrays cimport (
    DT_BFLOAT16, DT_FLOAT16, DT_FLOAT32, DT_INT8, KIND_FLOAT, KIND_SMALL, MAX_NDIM, Operand,
    dtype_itemsize, dtype_kind,
)
from gputensor._kernels.faces cimport OP_ADD, elementwise
from gputensor._kernels.launch cimport (
    Kernel, KernelTable, Launch, kernel_of, launch_init, launch_kernel,
)
from gputensor.blas.libraries cimport COMPUTE_32F_FAST_16BF, COMPUTE_32F_FAST_TF32, OP_N
from gputensor.blas.plan cimport ACT_NONE, PRODUCT_AS_IT_IS

from gputensor.blas.kernels import programs

include "padding/padding.pxi"
include "epilogue/epilogue.pxi"
