# The parts of blas/libraries that other rooms may call; each section is named after its file.

from libc.stdint cimport int64_t, uint64_t

from gputensor._alloc.core cimport Block
from gputensor._arrays cimport Operand
from gputensor._driver.table cimport status_t

# ---- library

# cuBLAS and cuBLASLt as two tables of function pointers, found at run time and resolved once.
#
# The numbers below are the libraries' public ABI (cublas_api.h, cublasLt.h, library_types.h of the
# CUDA toolkit documentation); a test checks them against nvmath.bindings when that is installed.
# They are the same in CUDA 12 and 13. Every index and size is 64 bits wide.

cdef enum:
    BLAS_OK = 0
    BLAS_NOT_INITIALIZED = 1
    BLAS_ALLOC_FAILED = 3
    BLAS_INVALID_VALUE = 7
    BLAS_ARCH_MISMATCH = 8
    BLAS_EXECUTION_FAILED = 13
    BLAS_INTERNAL_ERROR = 14
    BLAS_NOT_SUPPORTED = 15

cdef enum:
    OP_N = 0                    # not transposed, in column-major memory
    OP_T = 1                    # transposed
    OP_C = 2                    # transposed and conjugated

cdef enum:                      # cudaDataType
    TYPE_R_32F = 0
    TYPE_R_64F = 1
    TYPE_R_16F = 2
    TYPE_R_8I = 3
    TYPE_C_32F = 4
    TYPE_C_64F = 5
    TYPE_R_32I = 10
    TYPE_R_16BF = 14
    TYPE_R_8F_E4M3 = 28
    TYPE_R_8F_E5M2 = 29

cdef enum:                      # cublasComputeType_t
    COMPUTE_16F = 64
    COMPUTE_32F = 68
    COMPUTE_64F = 70
    COMPUTE_32I = 72
    COMPUTE_32F_FAST_16BF = 75
    COMPUTE_32F_FAST_TF32 = 77
    COMPUTE_32F_EMULATED_16BFX9 = 78

cdef enum:                      # cublasMath_t and cublasGemmAlgo_t
    MATH_DEFAULT = 0
    MATH_DISALLOW_REDUCED_REDUCTION = 16
    GEMM_DEFAULT = -1

cdef enum:                      # cublasLtMatmulDescAttributes_t
    DESC_TRANSA = 3
    DESC_TRANSB = 4
    DESC_EPILOGUE = 7
    DESC_BIAS_POINTER = 8
    DESC_BIAS_BATCH_STRIDE = 10
    DESC_A_SCALE_POINTER = 17
    DESC_B_SCALE_POINTER = 18
    DESC_FAST_ACCUM = 25
    DESC_BIAS_DATA_TYPE = 26
    DESC_A_SCALE_MODE = 31
    DESC_B_SCALE_MODE = 32

cdef enum:                      # cublasLtMatmulMatrixScale_t
    SCALE_TENSOR = 0
    SCALE_OUTER_VECTOR = 3
    SCALE_VECTOR_128 = 4
    SCALE_BLOCK_128 = 5

cdef enum:                      # cublasLtMatrixLayoutAttribute_t
    LAYOUT_BATCH_COUNT = 5
    LAYOUT_BATCH_STRIDE = 6

cdef enum:                      # cublasLtMatmulPreferenceAttributes_t
    PREF_MAX_WORKSPACE = 1
    PREF_REDUCTION_MASK = 3
    PREF_ALIGNMENT_A = 5
    PREF_ALIGNMENT_B = 6
    PREF_ALIGNMENT_C = 7
    PREF_ALIGNMENT_D = 8

cdef enum:                      # cublasLtReductionScheme_t
    REDUCTION_NONE = 0
    REDUCTION_INPLACE = 1
    REDUCTION_COMPUTE_TYPE = 2
    REDUCTION_OUTPUT_TYPE = 4
    REDUCTION_ANY = 7

cdef enum:                      # cublasLtEpilogue_t
    EPILOGUE_DEFAULT = 1
    EPILOGUE_RELU = 2
    EPILOGUE_BIAS = 4
    EPILOGUE_GELU = 32

cdef enum:                      # cublasLtMatmulAlgoCapAttributes_t
    CAP_SPLITK = 0
    CAP_REDUCTION_MASK = 1
    CAP_SWIZZLING = 2
    CAP_TILE_IDS = 6
    CAP_CUSTOM_OPTION_MAX = 7
    CAP_STAGES_IDS = 13

cdef enum:                      # cublasLtMatmulAlgoConfigAttributes_t
    CONFIG_ID = 0
    CONFIG_TILE = 1
    CONFIG_SPLITK = 2
    CONFIG_REDUCTION = 3
    CONFIG_SWIZZLING = 4
    CONFIG_CUSTOM_OPTION = 5
    CONFIG_STAGES = 6
    CONFIG_INNER_SHAPE = 7
    CONFIG_CLUSTER = 8

# cublasLtMatmulAlgo_t: may be stored and used again with the same library version.
cdef struct LtAlgo:
    uint64_t data[8]

# cublasLtMatmulHeuristicResult_t
cdef struct LtHeuristic:
    LtAlgo algo
    size_t workspace_nbytes
    int state
    float waves
    int reserved[4]

cdef struct LtTable:
    size_t (*version)() noexcept nogil
    int (*create)(void** handle) noexcept nogil
    int (*destroy)(void* handle) noexcept nogil
    int (*desc_create)(void** desc, int compute, int scale_type) noexcept nogil
    int (*desc_destroy)(void* desc) noexcept nogil
    int (*desc_set)(void* desc, int attribute, const void* value, size_t nbytes) noexcept nogil
    int (*layout_create)(void** layout, int dtype, uint64_t rows, uint64_t columns,
                         int64_t ld) noexcept nogil
    int (*layout_destroy)(void* layout) noexcept nogil
    int (*layout_set)(void* layout, int attribute, const void* value, size_t nbytes) noexcept nogil
    int (*preference_create)(void** preference) noexcept nogil
    int (*preference_destroy)(void* preference) noexcept nogil
    int (*preference_set)(void* preference, int attribute, const void* value,
                          size_t nbytes) noexcept nogil
    int (*heuristic)(void* handle, void* desc, void* a, void* b, void* c, void* d,
                     void* preference, int requested, LtHeuristic* results,
                     int* returned) noexcept nogil
    int (*algo_ids)(void* handle, int compute, int scale_type, int type_a, int type_b, int type_c,
                    int type_d, int requested, int* ids, int* returned) noexcept nogil
    int (*algo_init)(void* handle, int compute, int scale_type, int type_a, int type_b, int type_c,
                     int type_d, int algo_id, LtAlgo* algo) noexcept nogil
    int (*algo_check)(void* handle, void* desc, void* a, void* b, void* c, void* d,
                      const LtAlgo* algo, LtHeuristic* result) noexcept nogil
    int (*algo_cap)(const LtAlgo* algo, int attribute, void* value, size_t nbytes,
                    size_t* written) noexcept nogil
    int (*algo_set)(LtAlgo* algo, int attribute, const void* value, size_t nbytes) noexcept nogil
    int (*algo_get)(const LtAlgo* algo, int attribute, void* value, size_t nbytes,
                    size_t* written) noexcept nogil
    int (*matmul)(void* handle, void* desc, const void* alpha, const void* a, void* layout_a,
                  const void* b, void* layout_b, const void* beta, const void* c, void* layout_c,
                  void* d, void* layout_d, const LtAlgo* algo, void* workspace,
                  size_t workspace_nbytes, void* stream) noexcept nogil

cdef struct CublasTable:
    int (*create)(void** handle) noexcept nogil
    int (*destroy)(void* handle) noexcept nogil
    int (*version)(void* handle, int* version) noexcept nogil
    int (*set_stream)(void* handle, void* stream) noexcept nogil
    int (*set_workspace)(void* handle, void* workspace, size_t nbytes) noexcept nogil
    int (*set_math)(void* handle, int mode) noexcept nogil
    int (*gemm)(void* handle, int op_a, int op_b, int64_t m, int64_t n, int64_t k,
                const void* alpha, const void* a, int type_a, int64_t lda, const void* b,
                int type_b, int64_t ldb, const void* beta, void* c, int type_c, int64_t ldc,
                int compute, int algorithm) noexcept nogil
    int (*gemm_strided)(void* handle, int op_a, int op_b, int64_t m, int64_t n, int64_t k,
                        const void* alpha, const void* a, int type_a, int64_t lda,
                        long long stride_a, const void* b, int type_b, int64_t ldb,
                        long long stride_b, const void* beta, void* c, int type_c, int64_t ldc,
                        long long stride_c, int64_t batch, int compute,
                        int algorithm) noexcept nogil
    # The next two take matrices as arrays of addresses on the device.
    int (*gemm_batched)(void* handle, int op_a, int op_b, int64_t m, int64_t n, int64_t k,
                        const void* alpha, const void* a, int type_a, int64_t lda, const void* b,
                        int type_b, int64_t ldb, const void* beta, void* c, int type_c,
                        int64_t ldc, int64_t batch, int compute, int algorithm) noexcept nogil
    # NULL before cuBLAS 12.5. All arguments except the addresses are in arrays on the host.
    int (*gemm_grouped)(void* handle, const int* op_a, const int* op_b, const int64_t* m,
                        const int64_t* n, const int64_t* k, const void* alpha, const void* a,
                        int type_a, const int64_t* lda, const void* b, int type_b,
                        const int64_t* ldb, const void* beta, void* c, int type_c,
                        const int64_t* ldc, int64_t group_count, const int64_t* group_size,
                        int compute) noexcept nogil

# Load the library at the first call (with the GIL); raise DeviceError when it is not found.
cdef LtTable* lt_table() except NULL
cdef CublasTable* cublas_table() except NULL


# ---- preference

# The library that the process prefers for products.

cdef enum Library:
    LIBRARY_AUTO = 0
    LIBRARY_CUBLAS = 1
    LIBRARY_LT = 2

cdef int preferred_library() noexcept nogil
# Whether the environment variable has a bad value and no library was chosen since; planning raises.
cdef bint preference_is_unread() noexcept nogil


# ---- handle

# Library handles: one cuBLASLt handle for each device (it has no state, so threads share it), one
# cuBLAS handle for each (device, thread).

# A cuBLAS handle with its last settings. set_stream drops the workspace, so it comes first.
cdef struct CublasHandle:
    void* handle
    uint64_t stream
    uint64_t workspace
    int math
    int is_bound                # stream and workspace were set at least once

# The device's cuBLASLt handle, made at the first call. NULL and a cuBLAS status when that fails.
cdef void* lt_handle(int device, int* status) noexcept nogil
# This thread's cuBLAS handle for the device, bound to the stream, workspace and math mode.
cdef CublasHandle* cublas_handle(int device, uint64_t stream, uint64_t workspace, size_t nbytes,
                                 int math, int* status) noexcept nogil
# Loads both tables, with the GIL; they must be loaded before the calls above.
cdef int load_libraries(bint with_cublas) except -1


# ---- workspace

# Scratch memory that a library call may use while it runs: one block for each (device, stream).

# The memory of one call. `lent` is not NULL when the block belongs to this call alone (the stream
# is capturing); workspace_return gives it back once the call is queued.
cdef struct Workspace:
    uint64_t ptr
    size_t nbytes
    Block* lent

# Takes at least `nbytes` of scratch memory; for 0 bytes it takes none.
cdef status_t workspace_take(int device, uint64_t stream, size_t nbytes,
                             Workspace* out) noexcept nogil
# Raises the error that taking one would raise, before any work is queued.
cdef int workspace_ask(int device, uint64_t stream, size_t nbytes) except -1 nogil
cdef void workspace_return(Workspace* workspace) noexcept nogil
# The size of new workspaces of the device; 0 before it is known.
cdef size_t workspace_nbytes(int device) noexcept nogil
# Finds that size; with the GIL, before the first use of a device.
cdef int workspace_configure(int device) except -1


# ---- temporaries

# Memory that a call needs until its work is done: taken before the work is queued, given back in
# stream order once all of it is queued.

cdef enum:
    MAX_TEMPORARIES = 8

cdef struct Temporaries:
    int device
    int count
    uint64_t stream
    Block* blocks[MAX_TEMPORARIES]

cdef void temporaries_init(Temporaries* temporaries, int device, uint64_t stream) noexcept nogil
# Raises OutOfMemoryError; memory taken before stays and has to be released.
cdef int take_memory(Temporaries* temporaries, size_t nbytes, uint64_t* ptr) except -1 nogil
# The same for memory that the call can do without: returns false when there is none. Raises for any
# other failure.
cdef bint take_memory_if_any(Temporaries* temporaries, size_t nbytes,
                             uint64_t* ptr) except -1 nogil
# Gives all blocks after the first `count` back at once; no queued work may use them yet.
cdef void give_back(Temporaries* temporaries, int count) noexcept nogil
# A row-major operand of the shape of `like`.
cdef int take_operand(Temporaries* temporaries, const Operand* like, int dtype,
                      Operand* out) except -1 nogil
# Releases in stream order: work queued from here on may reuse the memory.
cdef void temporaries_release(Temporaries* temporaries) noexcept nogil
