"""The library's types of matrices and factors, and the conversion of alpha and beta."""

cdef extern from *:
    """
    #include <cstdint>
    // By DType code (_arrays/__init__.pxd); -1: the library has no such type.
    static const int gt_library_types[17] =
        {-1, 3, -1, 10, -1, 8, -1, -1, -1, 2, 14, 0, 1, 4, 5, 28, 29};
    """
    const int[17] gt_library_types

cdef extern from "gputensor/blas/libraries/gemm/half.h" nogil:
    uint16_t gt_half_of(double value) noexcept


cdef int64_t EXACT = 1 << 53     # every integer up to it is a double


# The library's number for a DType code, or -1.
cdef int library_type(int dtype) noexcept nogil:
    return gt_library_types[dtype]


# The type of alpha and beta of a product.
cdef int scale_type(const Product* product) noexcept nogil:
    cdef bint is_complex = dtype_is_complex(product.type_a)
    if product.compute == COMPUTE_64F:
        return TYPE_C_64F if is_complex else TYPE_R_64F
    if product.compute == COMPUTE_16F:
        return TYPE_R_16F
    if product.compute == COMPUTE_32I:
        return TYPE_R_32I
    return TYPE_C_32F if is_complex else TYPE_R_32F


cdef void store_scale(int library_type, double real, double imag, ScaleFactor* out) noexcept nogil:
    if library_type == TYPE_R_64F or library_type == TYPE_C_64F:
        out.parts[0] = real
        out.parts[1] = imag
    elif library_type == TYPE_R_16F:
        (<uint16_t*>out)[0] = gt_half_of(real)
    elif library_type == TYPE_R_32I:
        (<int32_t*>out)[0] = <int32_t>real
    else:
        (<float*>out)[0] = <float>real
        (<float*>out)[1] = <float>imag


cdef int split_integer(object value, double* real, double* imag) except -1:
    cdef int64_t number = <int64_t><uint64_t>(value & 0xFFFFFFFFFFFFFFFF)
    # Both parts are exact: a 64-bit multiple of 2**32, and 32 bits. Most numbers need only the
    # first.
    cdef int64_t low = 0 if -EXACT <= number <= EXACT else number & 0xFFFFFFFF
    real[0] = <double>(number - low)
    imag[0] = <double>low
    return 0


cdef object factor_object(int dtype, double real, double imag):
    cdef int kind = dtype_kind(dtype)
    if kind == KIND_INT or kind == KIND_UINT:
        return integer_factor(real, imag)
    return complex(real, imag)
