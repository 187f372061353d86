# The parts of blas/plan that other rooms may call; each section is named after its file.

from libc.stdint cimport int64_t, uint32_t, uint64_t

from gputensor._arrays cimport Operand
from gputensor.blas.libraries cimport LtAlgo

# ---- precision

# The precision flags as one number: which shortcuts a product may take. 0 is the exact setting.

cdef enum:
    FP32_MASK = 3               # how float32 products are computed, one of the next four
    FP32_IEEE = 0
    FP32_TF32 = 1
    FP32_BF16 = 2
    FP32_BF16X9 = 3
    FP16_REDUCTION = 4          # partial sums of fp16 products may be rounded to fp16
    BF16_REDUCTION = 8
    FP16_ACCUMULATION = 16      # fp16 products may be summed in fp16
    DETERMINISTIC = 32          # the same bits from run to run and across streams
    FP16_NO_SPLIT = 64          # the libraries must not split the sums of fp16 products
    BF16_NO_SPLIT = 128

# A set of flags; a scope of the thread or the setting of a call.
cdef class Precision:
    cdef readonly uint32_t mask     # the flags that are given
    cdef readonly uint32_t value

# The flags in force in this thread: its innermost scope over the process default.
cdef uint32_t precision_current() noexcept nogil
# The same with a call's own setting on top: None, a Precision, or a string.
cdef uint32_t precision_for(object setting) except? 0xFFFFFFFF
# The library's compute type for products of a dtype with a result dtype. The libraries sum in
# float16 only if the result is float16.
cdef int compute_type(int dtype, int result, uint32_t flags) noexcept nogil
# Whether partial sums may be rounded to the output type.
cdef bint allows_reduced_reduction(int dtype, uint32_t flags) noexcept nogil
# Whether a library may cut a product's sums into partial sums at all.
cdef bint allows_split(int dtype, uint32_t flags) noexcept nogil


# ---- product

# A Product is one call of a library in the library's own terms, where every matrix is column-major:
#
#   D[m, n] = alpha * op_a(A) * op_b(B) + beta * C[m, n]      for each i in [0, batch)
#
# A lies in memory with lda elements from column to column; op_a(A) is m x k, op_b(B) is k x n. The
# matrices of item i start stride_x * i elements after x. Further batch dimensions that no single
# stride describes are `outer`: the call is repeated for each of their index tuples.
#
# A row-major result is the column-major transpose, so such a product is computed as
# D^T = op(B)^T op(A)^T: is_swapped says that A and B here are the caller's b and a.

cdef enum:
    MAX_OUTER = 16

cdef enum:                      # the activation, after alpha * AB + beta * C and the bias
    ACT_NONE = 0
    ACT_RELU = 1
    ACT_GELU_TANH = 2           # the tanh form, which the library has
    ACT_GELU = 3                # the exact form, only in our kernels
    ACT_SILU = 4

cdef extern from "gputensor/blas/plan/product.h" nogil:
    ctypedef struct Pinned "gt_pinned":
        uint64_t version            # of cuBLASLt; 0: no algorithm is pinned
        int config[9]               # CONFIG_COUNT, below

    ctypedef struct Product "gt_product":
        int64_t m, n, k, batch
        int64_t lda, ldb, ldc, ldd
        int64_t stride_a, stride_b, stride_c, stride_d
        int op_a, op_b
        int type_a, type_b, type_d  # DType codes; C has the type of D
        int compute                 # cublasComputeType_t
        int device
        int is_swapped
        uint32_t flags              # PRODUCT_*
        int activation              # of the library's epilogue
        uint64_t a, b, c, d         # addresses; c == d unless an addend lies elsewhere
        uint64_t bias               # 0, or one value for each row of D, of the type of D
        uint64_t scale_a, scale_b   # 0, or the address of float32 factors of A and B (fp8)
        int scale_mode_a, scale_mode_b  # SCALE_* of blas/libraries
        double alpha, beta          # the real parts; for integers see libraries/gemm
        double alpha_imag, beta_imag
        int outer_ndim
        int64_t outer_count[MAX_OUTER]
        Pinned pinned               # in the place of outer_count, if the product is described
        int64_t outer_a[MAX_OUTER]  # in elements
        int64_t outer_b[MAX_OUTER]
        int64_t outer_c[MAX_OUTER]
        int64_t outer_d[MAX_OUTER]

cdef enum:
    PRODUCT_REDUCED_REDUCTION = 1   # partial sums may be rounded to the output type
    PRODUCT_DETERMINISTIC = 2
    PRODUCT_FAST_ACCUMULATION = 4   # fp8: partial sums stay in the tensor core's accumulator
    PRODUCT_POINTERS = 8            # the repetitions go as one pointer-array call
    PRODUCT_AS_IT_IS = 16           # no copies for speed, because there is no memory for them
    PRODUCT_FACTORS = 32            # int8 into int32, where alpha is not 1 or beta not 0 or 1
    PRODUCT_NO_SPLIT = 64           # a library must not cut its sums into partial sums


# Fills the fields that are not geometry: device, compute type and flags for a precision, factors 1
# and 0, and no bias, activation or scales.
cdef void product_fill(Product* product, int device, uint32_t precision) noexcept nogil


# ---- prepare

# Makes a Product from operands: pure arithmetic on shapes, strides and addresses. It reads no
# elements, allocates no memory and launches no work, so it runs and is tested without a device.

cdef enum PrepareStatus:
    PREPARE_OK = 0
    PREPARE_NO_DIMENSION = 1    # an operand has no dimension
    PREPARE_INNER = 2           # the inner dimensions differ
    PREPARE_BATCH = 3           # the batch dimensions do not broadcast
    PREPARE_TOO_MANY = 4        # more than MAX_NDIM dimensions
    PREPARE_OUT_SHAPE = 5       # out has another shape
    PREPARE_OUT_REPEATS = 6     # an element of out has more than one index

cdef enum:                      # operands that no library layout describes
    COPY_A = 1
    COPY_B = 2
    COPY_OUT = 4
    COPY_ADDEND = 8             # into out, because the layouts of the two do not fit

# The shape of a @ b by the rules of the array API standard's matmul.
cdef int matmul_shape(const Operand* a, const Operand* b, int* ndim,
                      int64_t* shape) noexcept nogil
# Whether `out` has that shape and no index of it repeats another.
cdef int check_out(const Operand* a, const Operand* b, const Operand* out) noexcept nogil
# Fills the geometry, types and addresses of `product`; returns 0 or the COPY_* of the operands that
# must be replaced by a contiguous copy first. beta multiplies `addend` (NULL: out itself), which
# has the shape of out. Shapes were checked before.
cdef int prepare(const Operand* a, const Operand* b, const Operand* addend, const Operand* out,
                 Product* product) noexcept nogil
# The largest power of two, at most 256, that divides every address `ptr + i * stride` in bytes.
cdef int alignment_of(uint64_t ptr, int64_t stride_nbytes) noexcept nogil
# The bytes from the lowest to one past the highest element; 0 for an empty operand.
cdef void extent_of(const Operand* operand, uint64_t* low, uint64_t* high) noexcept nogil
# A smaller operand of the same elements: dimensions of stride 0 shrunk to 1 element.
cdef void compact(const Operand* operand, Operand* out) noexcept nogil


# ---- choice

# A Choice is the outcome of tuning for one product: how to pad it, which library, which algorithm.

cdef enum:
    CONFIG_COUNT = 9            # the CONFIG_* attributes of blas/libraries, by their numbers
    CHOICE_ANY = -1             # the cost model or the library's heuristic decides

cdef struct Choice:
    int pad                     # a mask of PAD_*, or CHOICE_ANY
    int backend                 # the number of a backend, or CHOICE_ANY
    int has_config              # whether `config` names a cuBLASLt algorithm
    int config[CONFIG_COUNT]


# ---- plan

# A Plan holds all decisions about a product that do not change from call to call: the padding, the
# library, its descriptors, the algorithm, the workspace. Plans are found by an integer key; a hit
# builds nothing.

cdef enum:
    KEY_WORDS = 14

cdef enum:                      # backends that are named outside their table (blas/backends)
    BACKEND_LT = 0
    BACKEND_CUBLAS = 1

# The facts that a plan depends on, packed: sizes, leading dimensions, batch strides, then types,
# operations, compute type, device, epilogue, alignments and flags in two words.
cdef struct PlanKey:
    int64_t words[KEY_WORDS]

cdef struct Plan:
    PlanKey key
    uint64_t hash
    int backend
    int pad                     # PAD_* of blas/kernels; the rest describes the padded product
    void* handle                # of cuBLASLt, or the data of a kernel of ours
    int[2] shape                # of blocks: what the launch of some kernels of ours needs
    void* desc
    void* layout_a
    void* layout_b
    void* layout_c
    void* layout_d
    LtAlgo algo
    size_t workspace_nbytes
    int is_transient            # not in the table: destroyed after its call

# The plan of a key, or NULL, found without a lock; `hash` is plan_hash(key).
cdef Plan* plan_find(const PlanKey* key, uint64_t hash) noexcept nogil
cdef uint64_t plan_hash(const PlanKey* key) noexcept nogil
# Returns false when the table is full (it holds 65,536 plans); the caller then keeps the plan.
cdef bint plan_insert(Plan* plan) noexcept nogil
# The key of a product. `preference` is the requested library.
cdef void plan_key(const Product* product, int preference, PlanKey* key) noexcept nogil
# The alignment in bytes (up to 256) of each matrix over all its repetitions.
cdef void product_alignments(const Product* product, int* a, int* b, int* c,
                             int* d) noexcept nogil


# ---- signature

# Converts the facts of a product that tuning depends on to integers, and back.

cdef enum:
    SIGNATURE_COUNT = 26

cdef struct Signature:
    int64_t numbers[SIGNATURE_COUNT]

cdef void signature_of(const Product* product, Signature* signature) noexcept nogil
cdef tuple product_signature(const Product* product)
# Fills a product without addresses; raises ValueError for a tuple that is not a signature.
cdef int product_of_signature(tuple signature, Product* product) except -1


# ---- known

# Results of tuning and measurements for products of a device, valid once `known_is_filled` holds.

# Reads a tuple (pad, backend, configuration or None) into a Choice.
cdef int choice_read(object found, Choice* choice) except -1
cdef bint known_is_filled(int device) noexcept nogil
# The result of tuning, that of a near product, and the measured algorithm; False if there is none.
cdef bint known_tuned(const Product* product, Choice* choice) noexcept nogil
cdef bint known_near(const Product* product, Choice* choice) noexcept nogil
cdef bint known_measured(const Product* product, Choice* choice) noexcept nogil
# Whether planning calls `tunable.find` for products without a result, to tune, note, or raise.
cdef bint tuning_asks() noexcept nogil
