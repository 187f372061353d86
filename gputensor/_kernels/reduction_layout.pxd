# The axes of a reduction in their simplest form: kept and reduced axes apart, innermost first.

from libc.stdint cimport int64_t, uint32_t

from gputensor._kernels.operand cimport Operand

cdef extern from "gputensor/_kernels/cuda/reduction.h" namespace "gputensor" nogil:
    cdef struct KeptAxis:
        int64_t size
        int64_t in_stride
        int64_t out_stride

    cdef struct ReducedAxis:
        int64_t size
        int64_t stride

cdef struct ReductionLayout:
    int kept_ndim
    int reduced_ndim
    int64_t kept                # products of the sizes
    int64_t reduced
    KeptAxis[16] kept_axes
    ReducedAxis[16] reduced_axes

# `is_ordered` keeps the reduced axes in C order, so that an index into them has a meaning.
cdef void reduction_layout(ReductionLayout* layout, const Operand* out, const Operand* input,
                           uint32_t axes_mask, bint is_ordered) noexcept nogil
# Whether threads should run along the kept axes (the input's smallest stride is there).
cdef bint is_column(const ReductionLayout* layout) noexcept nogil
# The most elements, at most `largest`, that one aligned load may take along the innermost kept
# (`column`) or reduced axis.
cdef int load_width(const ReductionLayout* layout, const Operand* input, bint column, int itemsize,
                    int largest) noexcept nogil
