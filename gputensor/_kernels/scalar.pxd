# Scalar operands as kernel parameters: 16 bytes that hold one value of a compute dtype's
# arithmetic type (float for the 16- and 8-bit floats).

from gputensor._kernels.operand cimport Operand

# Writes the operand's value, rounded to its own dtype and then to `dtype`, as C's cast would.
cdef void scalar_pack(const Operand* operand, int dtype, double* packed) noexcept nogil
# 1 when every byte of the value is 0 in every dtype.
cdef bint scalar_is_zero(const Operand* operand) noexcept nogil
