# Scalar operands as kernel parameters (see __init__.pxd).
#
# The dtype of a scalar operand decides which of its fields hold the value: `integer` for bool and
# integers, `real` and `imag` for the others. A Python scalar is weak, so it is rounded to the
# compute dtype before it is used: x + 0.1 with float16 x adds float16(0.1), as in NumPy.

cdef double round_to(double value, int mantissa, int min_exponent, double largest) noexcept nogil:
    # Rounds to nearest even, with gradual underflow, and to infinity beyond the largest value.
    cdef int exponent = 0
    cdef double rounded
    if value != value or value == 0 or fabs(value) == HUGE_VAL:
        return value
    frexp(value, &exponent)             # value = f * 2^exponent with 0.5 <= |f| < 1
    exponent -= 1
    if exponent < min_exponent:
        exponent = min_exponent
    rounded = ldexp(nearbyint(ldexp(value, mantissa - exponent)), exponent - mantissa)
    return copysign(HUGE_VAL, value) if fabs(rounded) > largest else rounded


cdef double round_float(double value, int dtype) noexcept nogil:
    # bfloat16 and fp8 are rounded through float, as in ml_dtypes; the storing kernel rounds to fp8.
    if dtype == DT_FLOAT16:
        return round_to(value, 10, -14, 65504.0)
    if dtype == DT_BFLOAT16:
        return round_to(<float>value, 7, -126, 3.3895313892515355e38)
    if dtype == DT_FLOAT64 or dtype == DT_COMPLEX128:
        return value
    return <float>value


cdef void scalar_pack(const Operand* operand, int dtype, double* packed) noexcept nogil:
    cdef int kind = dtype_kind(dtype), own = dtype_kind(operand.dtype)
    cdef bint is_integer = own == KIND_BOOL or own == KIND_INT or own == KIND_UINT
    cdef int64_t integer = operand.integer
    cdef double real, imag = 0.0
    cdef float[2] narrow
    if own == KIND_BOOL:
        integer = integer != 0
    if is_integer:
        real = <double>(<uint64_t>integer) if operand.dtype == DT_UINT64 else <double>integer
    else:
        real = round_float(operand.real, operand.dtype)
        imag = round_float(operand.imag, operand.dtype) if own == KIND_COMPLEX else 0.0
    memset(packed, 0, 16)
    if kind == KIND_BOOL:
        if not is_integer:
            integer = real != 0 or imag != 0
        integer = integer != 0
        memcpy(packed, &integer, 8)
    elif kind == KIND_INT or kind == KIND_UINT:
        # Little endian: the low bytes are the value wrapped to any narrower integer.
        if not is_integer:
            integer = <int64_t>real if real < 9.2233720368547758e18 else <int64_t><uint64_t>real
        memcpy(packed, &integer, 8)
    elif dtype == DT_FLOAT64 or dtype == DT_COMPLEX128:
        packed[0] = real
        packed[1] = imag if kind == KIND_COMPLEX else 0.0
    else:
        narrow[0] = <float>round_float(real, dtype)
        narrow[1] = <float>imag if kind == KIND_COMPLEX else 0
        memcpy(packed, narrow, 8)


cdef bint scalar_is_zero(const Operand* operand) noexcept nogil:
    if dtype_kind(operand.dtype) <= KIND_UINT:
        return operand.integer == 0
    return (operand.real == 0 and not signbit(operand.real)
            and operand.imag == 0 and not signbit(operand.imag))
