# What is copied before a scaled product: fp8 matrices and their scales, brought to where and how
# the library wants them, or to plain values.
#
# A side is one operand of the product as `rows` lines of k terms each: a as it is, b transposed.
# Its scales are a matrix too, with one line (shared), one for each line of the side or one for each
# 128 of them, and with one column or one for each 128 terms.

from libc.stdint cimport int64_t, uint64_t

from gputensor._kernels.operand cimport Operand
from gputensor.blas.temporaries cimport Temporaries

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
    # What the staging functions say:
    int64_t padded_rows
    uint64_t ptr
    int64_t ld
    uint64_t scale_ptr

cdef struct Step:               # one element-wise launch; of no inputs: zeros
    int operation
    int count
    Operand target
    Operand[2] inputs

cdef struct Steps:
    int count
    Step[MAX_STEPS] items

# `scale` may be NULL. `is_transposed` for b.
cdef void side_init(Side* side, const Operand* matrix, const Operand* scale,
                    bint is_transposed) noexcept nogil
# Whether scales of a kind exist in this form.
cdef bint scale_fits(int64_t lines, int64_t columns, int64_t rows, int64_t k) noexcept nogil
# The matrix with lines of padded_k terms at multiples of 16 bytes, zeros after the k-th.
cdef int stage_matrix(Side* side, int64_t padded_rows, int64_t padded_k, Temporaries* temporaries,
                      Steps* steps) except -1
# The scales as the library reads them in a mode (SCALE_* of library.pxd).
cdef int stage_scale(Side* side, int mode, Temporaries* temporaries, Steps* steps) except -1
# The values without scales, as a contiguous matrix of a 16-bit type, which holds them exactly.
cdef int stage_values(Side* side, int dtype, Temporaries* temporaries, Steps* steps) except -1
# The values times their scales, in float32.
cdef int stage_scaled_values(Side* side, Temporaries* temporaries, Steps* steps) except -1
cdef int steps_launch(Steps* steps, int device, uint64_t stream) except -1
