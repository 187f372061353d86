# alpha and beta in the type that the library wants for a compute type.
#
# A factor is two doubles, the real and the imaginary part. Of a product of integers it is an
# integer modulo 2**64, the sum of both: one double holds 53 bits.

from libc.stdint cimport int64_t

from gputensor.blas.product cimport Product

cdef struct ScaleFactor:
    double parts[2]             # up to a complex128; narrower types start at the first byte

# The library's number for a DType code; -1 when it has none.
cdef int library_type(int dtype) noexcept nogil
# The type of alpha and beta of a product.
cdef int scale_type(const Product* product) noexcept nogil
# Complex products take real and imag as they are, real ones real, those of integers this.
cdef inline int64_t integer_factor(double real, double imag) noexcept nogil:
    return <int64_t>real + <int64_t>imag

# The two parts of the low 64 bits of a Python integer.
cdef int split_integer(object value, double* real, double* imag) except -1
# A factor of a product into a DType code as a Python number.
cdef object factor_object(int dtype, double real, double imag)
cdef void store_scale(int library_type, double real, double imag, ScaleFactor* out) noexcept nogil
