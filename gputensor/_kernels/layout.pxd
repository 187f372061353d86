# The common index space of a kernel's operands, in its simplest form.
#
# Up to four operands share one shape: inputs are 0, 1, 2 and the output is OUT. Axes of length 1
# are dropped, axes are ordered by the output's strides (innermost first), an axis that the output
# walks backwards is turned round, and neighbours that every operand walks as one are merged.

from libc.stdint cimport int32_t, int64_t, uint32_t, uint64_t

from gputensor._kernels.operand cimport Operand

cdef enum:
    OUT = 3                     # number of the output among the operands
    OPERANDS = 4

cdef struct Layout:
    int ndim
    uint64_t[4] ptrs            # of element [0, ..., 0] after turning; 0 for an absent operand
    int[4] itemsizes            # 0 for an absent or scalar operand
    int64_t[16] shape           # innermost first
    int64_t[4][16] strides      # in elements

# What a kernel needs to find an index along one axis.
cdef extern from "gputensor/_kernels/cuda/axis.h" namespace "gputensor" nogil:
    cdef struct Axis "gputensor::LaunchAxis":
        uint32_t size
        uint32_t magic
        uint32_t shift
        int32_t[4] strides

cdef void layout_merge(Layout* layout, const Operand* out, int count,
                       const Operand* inputs) noexcept nogil
cdef int64_t layout_size(const Layout* layout) noexcept nogil
# Whether all element offsets and the index itself fit 31 bits.
cdef bint layout_is_small(const Layout* layout) noexcept nogil
# Cuts the longest axis in two; `layout` keeps the first half, `rest` gets the second.
cdef void layout_cut(Layout* layout, Layout* rest) noexcept nogil
# Fills `axes` for all axes of a small layout.
cdef void layout_axes(const Layout* layout, Axis* axes) noexcept nogil
