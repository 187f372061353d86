# From operands to a Product: pure arithmetic on shapes, strides and addresses; nothing is read,
# allocated or launched, so it runs and is tested without a device.

from libc.stdint cimport int64_t, uint64_t

from gputensor._kernels.operand cimport Operand
from gputensor.blas.product cimport Product

cdef enum PrepareStatus:
    PREPARE_OK = 0
    PREPARE_NO_DIMENSION = 1    # an operand has no dimension
    PREPARE_INNER = 2           # the inner dimensions differ
    PREPARE_BATCH = 3           # the batch dimensions do not broadcast
    PREPARE_TOO_MANY = 4        # more than MAX_NDIM dimensions
    PREPARE_OUT_SHAPE = 5       # out has another shape
    PREPARE_OUT_REPEATS = 6     # an element of out has more than one index

cdef enum:                      # operands that no library layout describes
    COPY_A = 1
    COPY_B = 2
    COPY_OUT = 4
    COPY_ADDEND = 8             # into out: its layout does not go with that of out

# The shape of a @ b by the rules of the array API standard's matmul.
cdef int matmul_shape(const Operand* a, const Operand* b, int* ndim,
                      int64_t* shape) noexcept nogil
# Whether `out` has that shape and no index of it repeats another.
cdef int check_out(const Operand* a, const Operand* b, const Operand* out) noexcept nogil
# Fills the geometry, types and addresses of `product`; gives 0 or the COPY_* of the operands that
# must be replaced by a contiguous copy first. `addend` (NULL: out itself) is what beta multiplies,
# with the shape of out. Shapes were checked before.
cdef int prepare(const Operand* a, const Operand* b, const Operand* addend, const Operand* out,
                 Product* product) noexcept nogil
# The largest power of two, at most 256, that divides every address `ptr + i * stride` in bytes.
cdef int alignment_of(uint64_t ptr, int64_t stride_nbytes) noexcept nogil
# The bytes from the lowest to one past the highest element; 0 for an empty operand.
cdef void extent_of(const Operand* operand, uint64_t* low, uint64_t* high) noexcept nogil
# A smaller operand of the same elements: dimensions of stride 0 shrunk to 1 element.
cdef void compact(const Operand* operand, Operand* out) noexcept nogil
