"""The library's types of matrices and of alpha and beta, and these two in that type."""

cdef extern from *:
    """
    #include <cstdint>
    #include <cstring>
    // By DType code (operand.pxd); -1: the library has no such type.
    static const int gt_library_types[17] =
        {-1, 3, -1, 10, -1, 8, -1, -1, -1, 2, 14, 0, 1, 4, 5, 28, 29};
    // Rounds to nearest even; overflow gives infinity. Subnormal results are rounded as well.
    static inline uint16_t gt_half_of(double value) {
        float single = (float)value;
        uint32_t bits;
        std::memcpy(&bits, &single, 4);
        uint32_t sign = (bits >> 16) & 0x8000u;
        uint32_t rest = bits & 0x7fffffffu;
        if (rest > 0x7f800000u) return (uint16_t)(sign | 0x7e00u);
        if (rest >= 0x477ff000u) return (uint16_t)(sign | 0x7c00u);
        if (rest < 0x38800000u) {
            float magnitude;
            std::memcpy(&magnitude, &rest, 4);
            // Adding 0.5 leaves the bits of a half subnormal at the end of the mantissa.
            float shifted = magnitude + 0.5f;
            uint32_t out;
            std::memcpy(&out, &shifted, 4);
            return (uint16_t)(sign | (out - 0x3f000000u));
        }
        rest += 0xfffu + ((rest >> 13) & 1u);
        return (uint16_t)(sign | ((rest - 0x38000000u) >> 13));
    }
    """
    const int[17] gt_library_types
    uint16_t gt_half_of(double value) noexcept nogil


cdef int64_t EXACT = 1 << 53     # every integer up to it is a double


# The library's number for a DType code; -1 when it has none.
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
    # Both are exact: a multiple of 2**32 of 64 bits, and 32 bits; most numbers need the first only.
    cdef int64_t low = 0 if -EXACT <= number <= EXACT else number & 0xFFFFFFFF
    real[0] = <double>(number - low)
    imag[0] = <double>low
    return 0


cdef object factor_object(int dtype, double real, double imag):
    cdef int kind = dtype_kind(dtype)
    if kind == KIND_INT or kind == KIND_UINT:
        return integer_factor(real, imag)
    return complex(real, imag)


def half_bits(double value):
    """Return the bits of `value` rounded to float16; for the test against NumPy.

    >>> hex(half_bits(1.0)), hex(half_bits(-65504.0)), hex(half_bits(1e9))
    ('0x3c00', '0xfbff', '0x7c00')
    """
    return gt_half_of(value)
