"""The BLAS libraries' functions and constants, for comparison with their declarations."""

cdef extern from "gputensor/blas/libraries/gemm/half.h" nogil:
    uint16_t gt_half_of(double value) noexcept


def check_symbols():
    """Resolve every symbol of both tables; raise DeviceError with the first missing name.

    Needs the libraries, not a GPU.
    """
    lt_table()
    cublas_table()
    assert len(LT_SYMBOLS) * sizeof(void*) == sizeof(LtTable)
    assert len(CUBLAS_SYMBOLS) * sizeof(void*) == sizeof(CublasTable)


def constants():
    """Return the constants by their names in ``nvmath.bindings``, ``"module.Enum.NAME"``."""
    return {
        "cublas.Status.SUCCESS": BLAS_OK,
        "cublas.Status.NOT_INITIALIZED": BLAS_NOT_INITIALIZED,
        "cublas.Status.ALLOC_FAILED": BLAS_ALLOC_FAILED,
        "cublas.Status.INVALID_VALUE": BLAS_INVALID_VALUE,
        "cublas.Status.ARCH_MISMATCH": BLAS_ARCH_MISMATCH,
        "cublas.Status.EXECUTION_FAILED": BLAS_EXECUTION_FAILED,
        "cublas.Status.INTERNAL_ERROR": BLAS_INTERNAL_ERROR,
        "cublas.Status.NOT_SUPPORTED": BLAS_NOT_SUPPORTED,
        "cublas.Operation.N": OP_N,
        "cublas.Operation.T": OP_T,
        "cublas.Operation.C": OP_C,
        "cublas.ComputeType.COMPUTE_16F": COMPUTE_16F,
        "cublas.ComputeType.COMPUTE_32F": COMPUTE_32F,
        "cublas.ComputeType.COMPUTE_64F": COMPUTE_64F,
        "cublas.ComputeType.COMPUTE_32I": COMPUTE_32I,
        "cublas.ComputeType.COMPUTE_32F_FAST_16BF": COMPUTE_32F_FAST_16BF,
        "cublas.ComputeType.COMPUTE_32F_FAST_TF32": COMPUTE_32F_FAST_TF32,
        "cublas.ComputeType.COMPUTE_32F_EMULATED_16BFX9": COMPUTE_32F_EMULATED_16BFX9,
        "cublas.Math.DEFAULT_MATH": MATH_DEFAULT,
        "cublas.Math.DISALLOW_REDUCED_PRECISION_REDUCTION": MATH_DISALLOW_REDUCED_REDUCTION,
        "cublas.GemmAlgo.DEFAULT": GEMM_DEFAULT,
        "cublasLt.MatmulDescAttribute.TRANSA": DESC_TRANSA,
        "cublasLt.MatmulDescAttribute.TRANSB": DESC_TRANSB,
        "cublasLt.MatmulDescAttribute.EPILOGUE": DESC_EPILOGUE,
        "cublasLt.MatmulDescAttribute.BIAS_POINTER": DESC_BIAS_POINTER,
        "cublasLt.MatmulDescAttribute.BIAS_BATCH_STRIDE": DESC_BIAS_BATCH_STRIDE,
        "cublasLt.MatmulDescAttribute.A_SCALE_POINTER": DESC_A_SCALE_POINTER,
        "cublasLt.MatmulDescAttribute.B_SCALE_POINTER": DESC_B_SCALE_POINTER,
        "cublasLt.MatmulDescAttribute.FAST_ACCUM": DESC_FAST_ACCUM,
        "cublasLt.MatmulDescAttribute.BIAS_DATA_TYPE": DESC_BIAS_DATA_TYPE,
        "cublasLt.MatmulDescAttribute.A_SCALE_MODE": DESC_A_SCALE_MODE,
        "cublasLt.MatmulDescAttribute.B_SCALE_MODE": DESC_B_SCALE_MODE,
        "cublasLt.MatmulMatrixScale.SCALAR_32F": SCALE_TENSOR,
        "cublasLt.MatmulMatrixScale.OUTER_VEC_32F": SCALE_OUTER_VECTOR,
        "cublasLt.MatmulMatrixScale.VEC128_32F": SCALE_VECTOR_128,
        "cublasLt.MatmulMatrixScale.BLK128x128_32F": SCALE_BLOCK_128,
        "cublasLt.MatrixLayoutAttribute.BATCH_COUNT": LAYOUT_BATCH_COUNT,
        "cublasLt.MatrixLayoutAttribute.STRIDED_BATCH_OFFSET": LAYOUT_BATCH_STRIDE,
        "cublasLt.MatmulPreferenceAttribute.MAX_WORKSPACE_BYTES": PREF_MAX_WORKSPACE,
        "cublasLt.MatmulPreferenceAttribute.REDUCTION_SCHEME_MASK": PREF_REDUCTION_MASK,
        "cublasLt.MatmulPreferenceAttribute.MIN_ALIGNMENT_A_BYTES": PREF_ALIGNMENT_A,
        "cublasLt.MatmulPreferenceAttribute.MIN_ALIGNMENT_B_BYTES": PREF_ALIGNMENT_B,
        "cublasLt.MatmulPreferenceAttribute.MIN_ALIGNMENT_C_BYTES": PREF_ALIGNMENT_C,
        "cublasLt.MatmulPreferenceAttribute.MIN_ALIGNMENT_D_BYTES": PREF_ALIGNMENT_D,
        "cublasLt.ReductionScheme.NONE": REDUCTION_NONE,
        "cublasLt.ReductionScheme.INPLACE": REDUCTION_INPLACE,
        "cublasLt.ReductionScheme.COMPUTE_TYPE": REDUCTION_COMPUTE_TYPE,
        "cublasLt.ReductionScheme.OUTPUT_TYPE": REDUCTION_OUTPUT_TYPE,
        "cublasLt.ReductionScheme.MASK": REDUCTION_ANY,
        "cublasLt.Epilogue.DEFAULT": EPILOGUE_DEFAULT,
        "cublasLt.Epilogue.RELU": EPILOGUE_RELU,
        "cublasLt.Epilogue.BIAS": EPILOGUE_BIAS,
        "cublasLt.Epilogue.GELU": EPILOGUE_GELU,
        "cublasLt.MatmulAlgoCapAttribute.SPLITK_SUPPORT": CAP_SPLITK,
        "cublasLt.MatmulAlgoCapAttribute.REDUCTION_SCHEME_MASK": CAP_REDUCTION_MASK,
        "cublasLt.MatmulAlgoCapAttribute.CTA_SWIZZLING_SUPPORT": CAP_SWIZZLING,
        "cublasLt.MatmulAlgoCapAttribute.TILE_IDS": CAP_TILE_IDS,
        "cublasLt.MatmulAlgoCapAttribute.CUSTOM_OPTION_MAX": CAP_CUSTOM_OPTION_MAX,
        "cublasLt.MatmulAlgoCapAttribute.STAGES_IDS": CAP_STAGES_IDS,
        "cublasLt.MatmulAlgoConfigAttribute.ID": CONFIG_ID,
        "cublasLt.MatmulAlgoConfigAttribute.TILE_ID": CONFIG_TILE,
        "cublasLt.MatmulAlgoConfigAttribute.SPLITK_NUM": CONFIG_SPLITK,
        "cublasLt.MatmulAlgoConfigAttribute.REDUCTION_SCHEME": CONFIG_REDUCTION,
        "cublasLt.MatmulAlgoConfigAttribute.CTA_SWIZZLING": CONFIG_SWIZZLING,
        "cublasLt.MatmulAlgoConfigAttribute.CUSTOM_OPTION": CONFIG_CUSTOM_OPTION,
        "cublasLt.MatmulAlgoConfigAttribute.STAGES_ID": CONFIG_STAGES,
        "cublasLt.MatmulAlgoConfigAttribute.INNER_SHAPE_ID": CONFIG_INNER_SHAPE,
        "cublasLt.MatmulAlgoConfigAttribute.CLUSTER_SHAPE_ID": CONFIG_CLUSTER,
    }


def half_bits(double value):
    """Return the bits of `value` rounded to float16."""
    return gt_half_of(value)


cdef extern from "gputensor/blas/libraries/proposal.h" namespace "gputensor":
    cdef struct Proposal:
        int id
        int tile
        int split
        int stages
        size_t workspace
        float waves
    bint second_is_better(int64_t m, int64_t n, int64_t k, const Proposal& first,
                          const Proposal& second)
    double unaligned_seconds(const Proposal& one, int64_t m, int64_t n, int64_t k, int64_t batch,
                             int itemsize)


def takes_second(int64_t m, int64_t n, int64_t k, first, second):
    """Return whether the second of two proposals of cuBLASLt is taken.

    A proposal is (workspace, waves, id, tile, split, stages).
    """
    cdef Proposal one, other
    one.workspace, one.waves, one.id, one.tile, one.split, one.stages = first
    other.workspace, other.waves, other.id, other.tile, other.split, other.stages = second
    return second_is_better(m, n, k, one, other)


def unaligned_us(int64_t m, int64_t n, int64_t k, int itemsize, proposal):
    """Return the estimated microseconds of a proposal for unaligned matrices, written as above."""
    cdef Proposal one
    one.workspace, one.waves, one.id, one.tile, one.split, one.stages = proposal
    return 1e6 * unaligned_seconds(one, m, n, k, 1, itemsize)
