"""cuBLAS and cuBLASLt: found, opened and resolved once, into two tables of function pointers.

The search asks ``cuda.pathfinder`` first (it knows wheels, conda, the toolkit and what the process
has loaded already), then the loader by soname. Nothing is loaded at import. This is the only file
that knows the libraries' names and symbols; no header of theirs is needed to build.

Why not ``nvmath.bindings``: importing it took 0.5 s beyond NumPy where it was measured, more than
three times the 150 ms that a first product may cost.
"""

cdef LtTable lt_functions
cdef CublasTable cublas_functions
cdef bint lt_is_resolved = False
cdef bint cublas_is_resolved = False
cdef dict paths = {}

# In the order of the fields of LtTable and CublasTable.
LT_SYMBOLS = (
    "cublasLtGetVersion",
    "cublasLtCreate",
    "cublasLtDestroy",
    "cublasLtMatmulDescCreate",
    "cublasLtMatmulDescDestroy",
    "cublasLtMatmulDescSetAttribute",
    "cublasLtMatrixLayoutCreate",
    "cublasLtMatrixLayoutDestroy",
    "cublasLtMatrixLayoutSetAttribute",
    "cublasLtMatmulPreferenceCreate",
    "cublasLtMatmulPreferenceDestroy",
    "cublasLtMatmulPreferenceSetAttribute",
    "cublasLtMatmulAlgoGetHeuristic",
    "cublasLtMatmulAlgoGetIds",
    "cublasLtMatmulAlgoInit",
    "cublasLtMatmulAlgoCheck",
    "cublasLtMatmulAlgoCapGetAttribute",
    "cublasLtMatmulAlgoConfigSetAttribute",
    "cublasLtMatmulAlgoConfigGetAttribute",
    "cublasLtMatmul",
)
CUBLAS_SYMBOLS = (
    "cublasCreate_v2",
    "cublasDestroy_v2",
    "cublasGetVersion_v2",
    "cublasSetStream_v2",
    "cublasSetWorkspace_v2",
    "cublasSetMathMode",
    "cublasGemmEx_64",
    "cublasGemmStridedBatchedEx_64",
    "cublasGemmBatchedEx_64",
    "cublasGemmGroupedBatchedEx_64",
)
# Functions newer than CUDA 12.0; their callers do without.
OPTIONAL_SYMBOLS = {"cublasGemmGroupedBatchedEx_64"}
SONAMES = {
    "cublasLt": ("libcublasLt.so.13", "libcublasLt.so.12"),
    "cublas": ("libcublas.so.13", "libcublas.so.12"),
}


def _candidates(name):
    """Give the file names to try, best first."""
    try:
        from cuda.pathfinder import load_nvidia_dynamic_lib
    except ImportError:
        pass
    else:
        try:
            found = load_nvidia_dynamic_lib(name).abs_path
        except Exception:  # its error class differs between versions; the sonames come next
            found = None
        if found:
            yield found
    yield from SONAMES[name]


cdef void* open_library(str name) except NULL:
    cdef void* library
    tried = []
    for candidate in _candidates(name):
        library = dlopen(candidate.encode(), RTLD_NOW | RTLD_LOCAL)
        if library is not NULL:
            paths[name] = candidate
            return library
        tried.append(f"{candidate}: {dlerror().decode(errors='replace')}")
    raise DeviceError(
        f"the CUDA library {name} was not found. Install it with the extra gputensor[cuda12] or "
        f"gputensor[cuda13]. Tried: " + "; ".join(tried)
    )


cdef int resolve(str name, tuple symbols, void** table) except -1:
    cdef void* library = open_library(name)
    cdef Py_ssize_t index
    for index in range(len(symbols)):
        table[index] = dlsym(library, symbols[index].encode())
        if table[index] is NULL and symbols[index] not in OPTIONAL_SYMBOLS:
            raise DeviceError(
                f"{paths[name]} has no symbol {symbols[index]}; CUDA 12.0 or newer is needed"
            )
    return 0


cdef LtTable* lt_table() except NULL:
    global lt_is_resolved
    if not lt_is_resolved:
        resolve("cublasLt", LT_SYMBOLS, <void**>&lt_functions)
        lt_is_resolved = True
    return &lt_functions


cdef CublasTable* cublas_table() except NULL:
    global cublas_is_resolved
    if not cublas_is_resolved:
        resolve("cublas", CUBLAS_SYMBOLS, <void**>&cublas_functions)
        cublas_is_resolved = True
    return &cublas_functions


def library_path(name):
    """Return the file that `name` (``"cublas"`` or ``"cublasLt"``) was opened from, or None."""
    return paths.get(name)


def library_versions():
    """Return the version numbers of the libraries that are in use, by name.

    Empty before the first product on a GPU.

    >>> sorted(library_versions()) in ([], ["cublasLt"], ["cublas", "cublasLt"])
    True
    """
    versions = {}
    if lt_is_resolved:
        versions["cublasLt"] = int(lt_functions.version())
    if cublas_is_resolved:
        versions["cublas"] = paths["cublas"]
    return versions


def check_symbols():
    """Resolve every symbol of both tables; raise DeviceError naming the first that is missing.

    Needs the libraries, not a GPU.
    """
    lt_table()
    cublas_table()
    assert len(LT_SYMBOLS) * sizeof(void*) == sizeof(LtTable)
    assert len(CUBLAS_SYMBOLS) * sizeof(void*) == sizeof(CublasTable)


def constants():
    """Return our numbers by their names in ``nvmath.bindings``, ``"module.Enum.NAME"``."""
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
