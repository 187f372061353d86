# The parts of blas/product that other rooms may call; each section is named after its file.

from libc.stdint cimport int64_t, uint32_t, uint64_t

from gputensor._alloc.core cimport Block
from gputensor._arrays cimport Operand
from gputensor._kernels.launch cimport CallOperand
from gputensor.blas.backends cimport SkinnyProduct
from gputensor.blas.kernels cimport Epilogue, Relayout
from gputensor.blas.libraries cimport Temporaries
from gputensor.blas.plan cimport Plan, Product

# ---- check

# The checks of a product's operands; each raises before any state changes.

# Raises ValueError for a status of check_out.
cdef int raise_for_shapes(int status, const Operand* a, const Operand* b,
                          const Operand* out) except -1 with gil
# Raises ValueError when `out` shares memory with `other`, which the message calls `name`.
cdef int check_extents(const Operand* out, const Operand* other, const char* name) except -1 nogil


# ---- matmul

# One product from operands to queued work, in two steps, so that a caller can put its stream
# ordering between them:
#
#   task_prepare   checks types and overlap, plans, and takes temporary memory; may raise, queues no
#                  work; the shapes were checked before (check_out)
#   task_launch    queues the work; raises only errors of a library or the driver
#   task_release   gives the temporary memory back, in stream order; must always be called
#
# The steps need no GIL; they take it on a host device and for new products (plan_of).

cdef struct Options:
    double alpha, alpha_imag, beta, beta_imag
    uint32_t precision          # flags of blas/plan
    int activation              # ACT_* of blas/plan
    int conj_a, conj_b
    const Operand* addend       # beta multiplies it; NULL: out itself
    const Operand* bias         # added to every row: one dimension of out's last extent; or NULL
    const Operand* scale        # float32 factor of the product, broadcast to out; or NULL
    const Operand* residual     # added after the activation, broadcast to out; or NULL
    # Scale and residual are allowed only if beta is 0.

cdef struct Copy:
    int operation               # an ElementwiseOp of one input
    Operand source
    Operand target

cdef struct Task:
    int device
    int kind                    # TASK_* of matmul.pxi
    uint64_t stream
    const Operand* a            # the caller's operands
    const Operand* b
    Operand* out
    const Options* options
    Temporaries temporaries
    int copy_count              # copies that run before the product
    Copy copies[4]
    int has_copy_back           # `result` is a temporary, which is copied to out afterwards
    int has_late_bias           # the bias and the activation that the library does not apply
    int late_activation
    Operand result              # the product is written here
    int has_padding             # `padding` runs before the product, `unpadding` after it
    int has_unpadding
    Relayout padding
    Relayout unpadding
    Plan* plan
    uint64_t scratch            # of the plan's backend; 0: none
    Product product

cdef void options_init(Options* options, uint32_t precision) noexcept nogil
cdef int task_prepare(Task* task, int device, uint64_t stream, const Operand* a, const Operand* b,
                      Operand* out, const Options* options) except -1 nogil
cdef int task_launch(Task* task) except -1 nogil
cdef void task_release(Task* task) noexcept nogil


# ---- grouped

# Many products of different shapes as one piece of work, in the steps of a task: prepare (may
# raise, queues no work), launch, release.

cdef struct Pairs:              # out[i] = a[i] @ b[i]
    int64_t count
    const Operand* a
    const Operand* b
    Operand* out

cdef struct GroupedTask:
    int device
    uint64_t stream
    const Options* options
    Task* singles               # products outside the grouped call
    int64_t single_count
    Product* products           # products of one grouped call
    int64_t product_count
    uint64_t table              # their addresses, on the device
    Block* block                # holds the table

# The operands and the options must stay in place until the release. Alpha, beta, bias, activation
# and conjugation are not supported; `out` arrays must not overlap.
cdef int grouped_prepare(GroupedTask* task, int device, uint64_t stream, const Pairs* pairs,
                         const Options* options) except -1 nogil
cdef int grouped_launch(GroupedTask* task) except -1 nogil
cdef void grouped_release(GroupedTask* task) noexcept nogil
# Raises ValueError when a result shares memory with another or with an operand of any pair.
cdef int check_grouped_extents(const Pairs* pairs) except -1 nogil


# ---- grouped_offsets

# Grouped products whose row offsets are on the device; the host does not wait for the offsets.

# Checks out[o[g - 1]:o[g]] = a[o[g - 1]:o[g]] @ b[g] for int32 offsets o; rows after the last
# become 0. Shapes are (tokens, k), (groups, k, n), (tokens, n), (groups,). Raises for wrong shapes
# or types and for overlap.
cdef int offsets_check(const Operand* a, const Operand* b, const Operand* out,
                       const Operand* offsets) except -1
# Queues the work, without the GIL on a GPU. `offsets` is contiguous.
cdef int offsets_launch(int device, uint64_t stream, Operand* a, Operand* b, Operand* out,
                        Operand* offsets) except -1 nogil


# ---- fp8_copies

# Copies before a scaled product: fp8 matrices and their scales, in the layout that the library
# takes or as plain values.
#
# A side is one operand of the product as `rows` lines of k terms each: a itself, or b transposed.
# Its scales are a matrix too, with one line (shared), one for each line of the side or one for each
# 128 lines, and with one column or one for each 128 terms.

cdef enum:
    SCALE_BLOCK = 128
    MAX_STEPS = 16

cdef struct Side:
    int64_t rows
    int64_t k
    Operand matrix              # [rows, k]
    int has_scale
    int is_blocked              # the scales differ along k, or change every 128 lines
    int has_row_scales          # one for each line
    Operand scale
    # Set by the staging functions:
    int64_t padded_rows
    uint64_t ptr
    int64_t ld
    uint64_t scale_ptr

cdef struct Step:               # one element-wise launch; without inputs, it writes zeros
    int operation
    int count
    Operand target
    Operand[2] inputs

cdef struct Steps:
    int count
    Step[MAX_STEPS] items

# Whether scales of a kind exist in this form.
cdef bint scale_fits(int64_t lines, int64_t columns, int64_t rows, int64_t k) noexcept nogil


# ---- scaled

# Products of fp8 matrices with scales:
#
#   out = activation((a * scale_a) @ (b * scale_b) + bias) * result_scale
#
# In three steps like every task.

# The operands must outlive the task.
cdef struct ScaledProduct:
    const Operand* a            # m x k
    const Operand* b            # k x n
    const Operand* scale_a      # float32: 1, m or m / 128 by 1 or k / 128; NULL with scale_b
    const Operand* scale_b      # 1 or k / 128 by 1, n or n / 128
    const Operand* bias         # n values of out's type, or of float32 if that is fp8; or NULL
    const Operand* result_scale     # one float32; or NULL
    int activation              # ACT_* of blas/plan
    int is_fast                 # partial sums may stay in the tensor core's accumulator
    uint32_t precision          # flags of blas/plan

cdef struct ScaledTask:
    const ScaledProduct* given
    Operand out
    int kind                    # SCALED_* of scaled.pxi
    Temporaries temporaries
    Steps steps                 # before the product
    Task task                   # the library's product, or the product of plain values
    Options options
    Operand left                # plain values
    Operand right
    Operand result              # the product is written here, with the shape of out
    int has_epilogue            # from result into out
    int has_copy
    Epilogue epilogue
    Operand bias                # this and the next two are broadcast to out
    Operand row_scale
    Operand column_scale

cdef int scaled_prepare(ScaledTask* task, int device, uint64_t stream, const ScaledProduct* given,
                        const Operand* out) except -1 nogil
cdef int scaled_launch(ScaledTask* task) except -1 nogil
cdef void scaled_release(ScaledTask* task) noexcept nogil


# ---- quantized

# Products with quantized weights, out = x @ (weights * scales).T + bias, in three steps like every
# task; the caller has checked shapes and types.

# The operands must outlive the task; all are row-major.
cdef struct QuantizedProduct:
    const Operand* x            # [m, k]
    const Operand* weight       # int8 [n, k], or packed int4 (int4_layout.py)
    const Operand* scales       # [groups, n], of the type of x
    const Operand* bias         # [n], of the type of x; or NULL
    const Operand* out          # [m, n], of the type of x
    uint32_t precision          # flags of blas/plan

# The block of tile.cuh or wgmma.cuh; in tests, the parts that are forced, 0 for those that the rule
# chooses.
cdef struct TileShape:
    int has_wgmma               # forced: 1 without, 2 with
    int tokens
    int rows                    # features
    int k_warps                 # of tile.cuh
    int stages
    int parts                   # of wgmma.cuh: blocks of a cluster among which K is cut, or 1
    int splits                  # of K, besides these; their sums go through memory
    int shared_nbytes

cdef enum:
    MOST_TILE_OPERANDS = 3      # of a formula, besides the product

cdef extern from "gputensor/blas/kernels/quantized/tile.h" namespace "gputensor" nogil:
    cdef struct TileOperand "gputensor::QuantizedTileOperand":
        uint64_t at
        int64_t row             # elements from row to row, and from column to column
        int64_t column

cdef struct QuantizedTask:
    const QuantizedProduct* given
    int kind                    # QUANTIZED_* of quantized.pxi
    SkinnyProduct small
    TileShape shape
    void* ending                # a TileEnding: the formula of the sums, with its operands; or NULL
    TileOperand[MOST_TILE_OPERANDS] others
    uint64_t sums               # memory of tile_sums_nbytes and tile_order_nbytes
    uint64_t ordered
    Temporaries temporaries
    Operand plain               # the weights, and their transpose
    Operand right
    Operand out
    Options options
    Task task                   # of plain weights

cdef int quantized_prepare(QuantizedTask* task, int device, uint64_t stream,
                           const QuantizedProduct* given) except -1 nogil
cdef int quantized_launch(QuantizedTask* task) except -1 nogil
cdef void quantized_release(QuantizedTask* task) noexcept nogil
# For tests and measurements: parts of blocks, and the rows of x that tiles take.
cdef void tile_force(const TileShape* forced, int64_t least_rows, int64_t most_rows) noexcept


# ---- doors

# The row of `product` in the registry of calls, bound.
cdef object PRODUCT_CALL
# The operand of a recorded argument; NULL for None.
cdef const Operand* operand_or_null(CallOperand given) noexcept
