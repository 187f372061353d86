# Products by the libraries: cuBLAS, cuBLASLt and its search, scale factors.

from libc.stdint cimport int32_t, int64_t, int8_t, uint16_t, uint32_t, uint64_t
from libc.stdlib cimport free, malloc
from libc.string cimport memset

import time

from gputensor._arrays cimport KIND_INT, KIND_UINT, dtype_is_complex, dtype_itemsize, dtype_kind
from gputensor.blas.libraries cimport (
    BLAS_ALLOC_FAILED, BLAS_NOT_SUPPORTED, BLAS_OK, CAP_CUSTOM_OPTION_MAX, CAP_SPLITK,
    CAP_STAGES_IDS, CAP_SWIZZLING, CAP_TILE_IDS, COMPUTE_16F, COMPUTE_32I, COMPUTE_64F,
    CONFIG_CLUSTER, CONFIG_CUSTOM_OPTION, CONFIG_ID, CONFIG_INNER_SHAPE, CONFIG_REDUCTION,
    CONFIG_SPLITK, CONFIG_STAGES, CONFIG_SWIZZLING, CONFIG_TILE, DESC_A_SCALE_MODE,
    DESC_A_SCALE_POINTER, DESC_BIAS_POINTER, DESC_B_SCALE_MODE, DESC_B_SCALE_POINTER,
    DESC_EPILOGUE, DESC_FAST_ACCUM, DESC_TRANSA, DESC_TRANSB, EPILOGUE_BIAS, EPILOGUE_DEFAULT,
    EPILOGUE_GELU, EPILOGUE_RELU, GEMM_DEFAULT, LAYOUT_BATCH_COUNT, LAYOUT_BATCH_STRIDE,
    MATH_DEFAULT, MATH_DISALLOW_REDUCED_REDUCTION, OP_N, PREF_ALIGNMENT_A, PREF_ALIGNMENT_B,
    PREF_ALIGNMENT_C, PREF_ALIGNMENT_D, PREF_MAX_WORKSPACE, PREF_REDUCTION_MASK,
    REDUCTION_COMPUTE_TYPE, REDUCTION_NONE, SCALE_TENSOR, TYPE_C_32F, TYPE_C_64F, TYPE_R_16F,
    TYPE_R_32F, TYPE_R_32I, TYPE_R_64F, CublasHandle, CublasTable, LtAlgo, LtHeuristic, LtTable,
    cublas_handle, cublas_table, load_libraries, lt_handle, lt_table,
)
from gputensor.blas.plan cimport (
    ACT_GELU_TANH, ACT_NONE, ACT_RELU, CONFIG_COUNT, PRODUCT_FAST_ACCUMULATION,
    PRODUCT_NO_SPLIT, PRODUCT_REDUCED_REDUCTION, Choice, Plan, Product, product_alignments,
)


include "scale_factor.pxi"
include "cublas.pxi"
include "cublaslt.pxi"
include "search.pxi"
