# Sizes and kinds of the element types, in C. The Python twin is dtypes.py; a test compares them.
# Nothing here has state, so a cimport costs no import at run time.

from gputensor._kernels.operand cimport DT_BFLOAT16, DT_COMPLEX64, DT_COMPLEX128, DT_FLOAT16

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

# The 16-bit floats are computed with in float32 and rounded once.
cdef inline bint dtype_is_half(int dtype) noexcept nogil:
    return dtype == DT_FLOAT16 or dtype == DT_BFLOAT16
