# What kernels and products know of an array: address, element type, shape, strides. Small, copied
# by value, owns nothing. A scalar operand has is_scalar set and its value in real/imag/integer.

from libc.stdint cimport int64_t, uint64_t

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
