# alpha and beta in the type that the library wants for a compute type.

from gputensor.blas.product cimport Product

cdef struct ScaleFactor:
    double parts[2]             # up to a complex128; narrower types start at the first byte

# The library's number for a DType code; -1 when it has none.
cdef int library_type(int dtype) noexcept nogil
# The type of alpha and beta of a product.
cdef int scale_type(const Product* product) noexcept nogil
cdef void store_scale(int library_type, double real, double imag, ScaleFactor* out) noexcept nogil
