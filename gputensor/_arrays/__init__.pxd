# The functions of _arrays that other rooms may call; each section is named after its part.

from libc.stdint cimport int32_t, int64_t, uint32_t, uint64_t

# ---- operand

# An array as kernels and products see it: address, element type, shape, strides. It is small,
# copied by value, and owns nothing. A scalar operand has is_scalar set and its value in
# real/imag/integer.

cdef enum:
    MAX_NDIM = 16

cdef enum DType:
    DT_BOOL = 0
    DT_INT8 = 1
    DT_INT16 = 2
    DT_INT32 = 3
    DT_INT64 = 4
    DT_UINT8 = 5
    DT_UINT16 = 6
    DT_UINT32 = 7
    DT_UINT64 = 8
    DT_FLOAT16 = 9
    DT_BFLOAT16 = 10
    DT_FLOAT32 = 11
    DT_FLOAT64 = 12
    DT_COMPLEX64 = 13
    DT_COMPLEX128 = 14
    DT_FLOAT8_E4M3 = 15     # ml_dtypes.float8_e4m3fn
    DT_FLOAT8_E5M2 = 16
    DTYPE_COUNT = 17

cdef struct Operand:
    uint64_t ptr                # address of element [0, ..., 0]
    int dtype                   # a DType
    int ndim
    int is_scalar               # 1: a Python scalar, ptr unused
    int64_t shape[16]
    int64_t strides[16]         # in elements; may be 0 or negative
    double real                 # value of a scalar operand, as float ...
    double imag
    int64_t integer             # ... and exactly, for integer dtypes

cdef inline bint has_no_elements(const Operand* operand) noexcept nogil:
    cdef int axis
    for axis in range(operand.ndim):
        if operand.shape[axis] == 0:
            return True
    return False


# ---- dtypes

# Sizes and kinds of the element types, in C. The Python twin is element_types.py; a test compares
# them.
# This section has no state, so a cimport of it causes no import at run time.

cdef enum Kind:
    KIND_BOOL = 0
    KIND_INT = 1
    KIND_UINT = 2
    KIND_FLOAT = 3
    KIND_COMPLEX = 4
    KIND_SMALL = 5          # fp8: stored and cast, never computed with

cdef extern from *:
    """
    static const unsigned char gt_itemsizes[17] =
        {1, 1, 2, 4, 8, 1, 2, 4, 8, 2, 2, 4, 8, 8, 16, 1, 1};
    static const unsigned char gt_kinds[17] =
        {0, 1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3, 4, 4, 5, 5};
    """
    const unsigned char[17] gt_itemsizes
    const unsigned char[17] gt_kinds

cdef inline int dtype_itemsize(int dtype) noexcept nogil:
    return gt_itemsizes[dtype]

cdef inline int dtype_kind(int dtype) noexcept nogil:
    return gt_kinds[dtype]

cdef inline bint dtype_is_complex(int dtype) noexcept nogil:
    return dtype == DT_COMPLEX64 or dtype == DT_COMPLEX128

# 16-bit floats are computed in float32 and rounded once.
cdef inline bint dtype_is_half(int dtype) noexcept nogil:
    return dtype == DT_FLOAT16 or dtype == DT_BFLOAT16


# ---- layout

# The common index space of a kernel's operands, in its simplest form.
#
# Up to four operands share one shape: inputs are 0, 1, 2 and the output is OUT. Axes of length 1
# are dropped, axes are ordered by the output's strides (innermost first), axes with a negative
# stride of the output are reversed, and neighbouring axes are merged if every operand allows it.

cdef enum:
    OUT = 3                     # number of the output among the operands
    OPERANDS = 4

cdef struct Layout:
    int ndim
    uint64_t[4] ptrs            # of element [0, ..., 0] after reversing; 0 for an absent operand
    int[4] itemsizes            # 0 for an absent or scalar operand
    int64_t[16] shape           # innermost first
    int64_t[4][16] strides      # in elements

# The values from which a kernel computes an index along one axis.
cdef extern from "gputensor/_kernels/cuda/axis.h" namespace "gputensor" nogil:
    cdef struct Axis "gputensor::LaunchAxis":
        uint32_t size
        uint32_t magic
        uint32_t shift
        int32_t[4] strides

cdef void layout_merge(Layout* layout, const Operand* out, int count,
                       const Operand* inputs) noexcept nogil
cdef int64_t layout_size(const Layout* layout) noexcept nogil
# Whether all element offsets, and the index itself, fit 31 bits.
cdef bint layout_is_small(const Layout* layout) noexcept nogil
# Cuts the longest axis in two; `layout` keeps the first half, `rest` gets the second.
cdef void layout_cut(Layout* layout, Layout* rest) noexcept nogil
cdef void layout_split(Layout* layout, Layout* rest, int axis, int64_t length) noexcept nogil
# Fills `axes` for all axes of a small layout.
cdef void layout_axes(const Layout* layout, Axis* axes) noexcept nogil


# ---- scalar

# Scalar operands as kernel parameters: 16 bytes that hold one value of a compute dtype's
# arithmetic type (float for the 16- and 8-bit floats).

# Writes the operand's value, rounded to its own dtype and then to `dtype`, as C's cast would.
cdef void scalar_pack(const Operand* operand, int dtype, double* packed) noexcept nogil
# Whether every byte of the value is 0 in every dtype.
cdef bint scalar_is_zero(const Operand* operand) noexcept nogil
