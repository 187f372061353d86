# The parts of blas/kernels that other rooms may call; each section is named after its file.

from libc.stdint cimport int64_t, uint64_t

from gputensor._arrays cimport Operand
from gputensor.blas.plan cimport Product

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

# One matrix in two places, in bytes, and the copies of one launch (relayout.cuh).
cdef extern from "gputensor/blas/kernels/padding/relayout.h" namespace "gputensor" nogil:
    cdef struct Piece "gputensor::RelayoutPiece":
        uint64_t source
        uint64_t target
        int64_t source_pitch
        int64_t target_pitch
        int64_t source_batch
        int64_t target_batch
        int64_t row_nbytes              # of the target; zeros where the source is shorter
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
# Whether the cost model decides: no setting overrides it.
cdef bint padding_is_auto() noexcept nogil
# Which matrices to pad for the shortest time, by the cost model of padding.pxi.
ctypedef double (*SecondsAsItIs)(const Product* product) noexcept nogil
cdef int pad_choose(const Product* product, SecondsAsItIs seconds_of) noexcept nogil
# The size of the padded copy of a matrix (one PAD_* bit), its leading dimension and batch stride.
cdef size_t pad_nbytes(const Product* product, int which, int64_t* ld,
                       int64_t* stride) noexcept nogil
# Replaces the matrices of `product` that `padded` names by padded copies at these addresses (the
# others are ignored): `before` copies the inputs, `after` brings the result back. Copies are added
# only where the addresses are not 0, so that 0 gives the geometry alone. The sizes of the product
# become those of the copies; a bias that would be read past its end is dropped, with the
# activation.
cdef void pad_bind(Product* product, int padded, uint64_t a, uint64_t b, uint64_t d,
                   Relayout* before, Relayout* after) noexcept nogil
# Queues the copies on the stream.
cdef int relayout_launch(const Relayout* relayout, int device, uint64_t stream) except -1 nogil


# ---- epilogue

# The steps after a product that its launch does not do, in one launch on a GPU:
#
#   target = (activation(source * scale * scale2 + bias) + residual) * result_scale
#
# Every operand has the target's shape, broadcast by strides of 0; absent ones are NULL. Scales are
# float32. The arithmetic is float32, or float64 for a float64 target; the result is rounded once.
# `target` may be `source`, or `residual` when both have the same strides.

cdef struct Epilogue:
    int activation              # ACT_* of blas/plan
    const Operand* scale
    const Operand* scale2
    const Operand* bias
    const Operand* residual
    const Operand* result_scale     # one element

cdef void epilogue_init(Epilogue* epilogue) noexcept nogil
# A vector along the last axis, broadcast to the shape of `target`.
cdef void along_last_axis(const Operand* vector, const Operand* target, Operand* out) noexcept nogil
# Queues the launch. Types that are not floats support only a bias.
cdef int epilogue_run(int device, uint64_t stream, const Epilogue* epilogue,
                      const Operand* source, const Operand* target) except -1 nogil
