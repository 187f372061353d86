# Products whose rows are not multiples of 16 bytes, in place or in length, run several times
# slower: the tensor cores' load paths need that alignment. Padding copies such a matrix to one with
# longer, aligned rows (a relayout), multiplies, and brings the result back the same way when it has
# to.

from libc.stdint cimport int64_t, uint64_t

from gputensor.blas.product cimport Product

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
cdef void relayout_init(Relayout* relayout) noexcept nogil
# Adds a matrix: from (source, ld, stride) with its sizes in `source_of` to (target, ld, stride)
# with its sizes in `target_of`; in elements.
cdef void relayout_add(Relayout* relayout, const Product* source_of, const Product* target_of,
                       int which, uint64_t source, int64_t source_ld, int64_t source_stride,
                       uint64_t target, int64_t target_ld, int64_t target_stride) noexcept nogil
# Queues the copies on the stream. Needs the GIL, for the first compilation.
cdef int relayout_launch(const Relayout* relayout, int device, uint64_t stream) except -1
