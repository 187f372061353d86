# What other rooms may call of blas/kernels; each section is named after its part.

from libc.stdint cimport int64_t, uint64_t

from gputensor._arrays cimport Operand
from gputensor._driver.registry cimport DeviceFacts
from gputensor.blas.libraries cimport Workspace
from gputensor.blas.plan cimport Plan, PlanKey, Product

# ---- padding

# Products whose rows are not multiples of 16 bytes, in place or in length, run several times
# slower: the tensor cores' load paths need that alignment. Padding copies such a matrix to one with
# longer, aligned rows (a relayout), multiplies, and brings the result back the same way when it has
# to.

cdef enum:                      # which matrices of a product, in the library's terms
    PAD_NONE = 0
    PAD_A = 1
    PAD_B = 2
    PAD_D = 4

# One matrix in two places, in bytes, and what one launch copies (relayout.cuh).
cdef extern from "gputensor/blas/kernels/padding/relayout.h" namespace "gputensor" nogil:
    cdef struct Piece "gputensor::RelayoutPiece":
        uint64_t source
        uint64_t target
        int64_t source_pitch
        int64_t target_pitch
        int64_t source_batch
        int64_t target_batch
        int64_t row_nbytes              # of the target; what the source lacks is filled with zeros
        int64_t source_nbytes
        uint64_t rows
        uint64_t source_rows
        uint64_t blocks
        uint64_t last

    cdef struct Relayout "gputensor::RelayoutParameters":
        Piece pieces[3]
        uint64_t total
        unsigned int count
        unsigned int step

# The matrices of a product whose addresses, pitches or row lengths are not multiples of 16 bytes,
# and those that share a size with one whose length is rounded up.
cdef int odd_matrices(const Product* product) noexcept nogil
# Which matrices to pad for the shortest time, by the cost model of pad.pyx.
cdef int pad_choose(const Product* product) noexcept nogil
# The size of the padded copy of a matrix (one PAD_* bit), its leading dimension and batch stride.
cdef size_t pad_nbytes(const Product* product, int which, int64_t* ld,
                       int64_t* stride) noexcept nogil
# Puts the padded copies at these addresses (those of `padded` matter) in the place of the matrices
# of `product`: `before` copies the inputs, `after` brings the result back. Copies are added only
# where the addresses are not 0, so that 0 gives the geometry alone. The sizes of the product become
# those of the copies; a bias that would be read past its end is dropped, with the activation.
cdef void pad_bind(Product* product, int padded, uint64_t a, uint64_t b, uint64_t d,
                   Relayout* before, Relayout* after) noexcept nogil
# Queues the copies on the stream. Needs the GIL, for the first compilation.
cdef int relayout_launch(const Relayout* relayout, int device, uint64_t stream) except -1


# ---- tiny

# Tiny products by a kernel of our own: see tiny.pyx for which and why.

# The plan of a product that is tiny; NULL for any other, and where nothing compiles tiny_kernels. The
# plan is the caller's until plan_insert takes it. Needs the GIL; compiles on first use.
cdef Plan* tiny_plan(const Product* product, const PlanKey* key,
                     uint64_t hash_value) except? NULL
# Queues one repetition: one launch, nothing allocated, no object made.
cdef int tiny_run(const Plan* plan, const Product* product, uint64_t stream) except -1


# ---- unaligned

# Odd products of small and middle size by a kernel of our own that takes matrices of any alignment
# as they are: see direct.pyx for which and why.

# The plan of an odd product that the kernel is expected to be quickest with; NULL for any other,
# and where nothing compiles it. The plan is the caller's until plan_insert takes it. Needs the GIL;
# compiles on first use.
cdef Plan* direct_plan(const Product* product, const PlanKey* key,
                       uint64_t hash_value) except? NULL
# Queues one repetition: one launch, nothing allocated, no object made.
cdef int direct_run(const Plan* plan, const Product* product, uint64_t stream) except -1


# ---- skinny_product

# A skinny product: y = alpha * x w^T + beta * addend + bias for at most 16 rows of x, as the own
# kernels take it (small_m.pyx).

cdef enum:
    SMALL_M = 16                # rows of x at most

cdef enum Form:                 # how the weights lie, as in skinny_mma.cuh
    FORM_PLAIN = 0              # [n, k], of the type of x
    FORM_INT8 = 1               # [n, k], with scales
    FORM_INT4 = 2               # tiles of 16 x 64 (int4_layout.py), with scales

cdef struct SmallProduct:
    int device
    int form
    int type_x                  # DType codes
    int type_y                  # also of bias and addend
    int group                   # k that share a scale; 0: all
    int64_t m, n, k
    uint64_t x, w, y
    int64_t x_pitch             # elements from row to row
    int64_t w_pitch             # elements; for INT4 tiles from tile row to tile row
    int64_t y_pitch
    int64_t addend_pitch
    uint64_t scales             # [groups, n] of type_x; 0 for plain weights
    uint64_t bias               # [n], or 0
    uint64_t addend             # [m, n]; read when beta is not 0
    float alpha, beta

ctypedef DeviceFacts SmallDevice    # what the shape of blocks depends on


# ---- skinny

# Skinny products by our own kernels (skinny.cuh, skinny_mma.cuh): at most 16 rows of
# x, the weights read once at the speed of memory.

# The plan of a product for which it is expected to be the quickest way; NULL for any other, and
# where nothing compiles skinny_kernels. The plan is the caller's until plan_insert takes it. Needs the
# GIL.
cdef Plan* small_m_plan(const Product* product, const PlanKey* key,
                        uint64_t hash_value) except? NULL
cdef int small_m_run(const Product* product, uint64_t stream) except -1


# ---- packed_schedule

# How a packed product is cut into tiles, and the tiles into shares of the clusters; arithmetic.

# D here is row-major, m x n; see packed.cuh for the words.
cdef struct Schedule:
    int columns                 # of a tile: 256 or 128
    int steps                   # tiles along K that hold any of it
    int line                    # tiles along K in memory; strips read them in pairs
    int main_m, main_n
    int edge_m, edge_n
    int whole, divided
    int strips_n, strips_m
    int strips_from
    int weight_tile, weight_strip
    int64_t units_tiles, units
    int64_t tiles_a, tiles_b    # packed tiles of the operands
    double cost                 # estimated, in microseconds


# ---- packed

# Large products of matrices that are not aligned, on Hopper, by our own kernel: both operands are
# packed into tiles, and the product is written straight into its place.

# The plan of a product for which this is expected to be the quickest way; NULL for any other, and
# where nothing compiles packed_kernels. The plan is the caller's until plan_insert takes it. Needs the
# GIL; compiles on first use.
cdef Plan* packed_plan(const Product* product, const PlanKey* key,
                       uint64_t hash_value) except? NULL
# The scratch memory of one run, which repetitions share.
cdef size_t packed_nbytes(const Product* product) noexcept nogil
# Queues one repetition: two launches for each matrix of the batch.
cdef int packed_run(const Plan* plan, const Product* product, uint64_t scratch,
                    uint64_t stream) except -1


# ---- pointers

# Batches that no single stride describes, as one call with arrays of addresses on the device.

# Whether the repetitions of a product (its `outer` dimensions) are to go as one pointer-array call:
# pure arithmetic.
cdef bint pointer_batch_wins(const Product* product) noexcept nogil
# Whether the library takes matrices at these addresses by pointer.
cdef bint pointers_are_aligned(const Product* product, int a, int b, int d) noexcept nogil
# Compile what writes the table; False where nothing compiles kernels.
cdef bint pointer_batch_ready(int device) except -1
# The bytes of the table.
cdef size_t pointer_batch_nbytes(const Product* product) noexcept nogil
# Write the table and make the call; a cuBLAS status.
cdef int pointer_batch_run(const Product* product, uint64_t table, const Workspace* workspace,
                           uint64_t stream) except -1
# Write a table of `total` products whose addresses are `products[i].a`, `.b`, `.d`.
cdef int pointer_table_write(int device, uint64_t stream, uint64_t table, int64_t total,
                             const Product* products) except -1


# ---- epilogue

# What follows a product and is not the library's to do, in one launch on a GPU:
#
#   target = (activation(source * scale * scale2 + bias) + residual) * result_scale
#
# Every operand has the target's shape, broadcast by strides of 0; absent ones are NULL. Scales are
# float32. The arithmetic is float32, or float64 for a float64 target; the result is rounded once.
# `target` may be `source`, or `residual` when both have the same strides.

cdef struct Epilogue:
    int activation              # ACT_* of product.pxd
    const Operand* scale
    const Operand* scale2
    const Operand* bias
    const Operand* residual
    const Operand* result_scale     # one element

cdef void epilogue_init(Epilogue* epilogue) noexcept nogil
# A vector along the last axis, broadcast to the shape of `target`.
cdef void along_last_axis(const Operand* vector, const Operand* target, Operand* out) noexcept nogil
# Queues the launch. Types that are not floats know a bias only.
cdef int epilogue_run(int device, uint64_t stream, const Epilogue* epilogue,
                      const Operand* source, const Operand* target) except -1


# ---- quantized

# Products with quantized weights, on operands: x[m, k] row-major, the weights int8 [n, k] row-major
# or packed int4 (int4_layout.py), scales [groups, n] of x's type, bias [n] or NULL, out[m, n] of
# x's type, row-major. The caller has checked shapes and types. CUDA devices only.

# Queues the product by the kernel for skinny products; 0 when that does not fit it.
cdef int quantized_run(int device, uint64_t stream, const Operand* x, const Operand* weight,
                       const Operand* scales, const Operand* bias, const Operand* out) except -1
# Queues out[n, k] = weights * scales, rounded to the type of out and scales.
cdef int dequantize_run(int device, uint64_t stream, const Operand* weight, const Operand* scales,
                        const Operand* out) except -1
