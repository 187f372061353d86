# Element-wise kernels on Operands.
#
# Inputs come broadcast to the shape of `out` (stride 0 along broadcast axes) or as scalars; each is
# first cast to `compute_dtype`, and the result is cast to the dtype of `out`. The 16-bit floats are
# computed with in float32 and rounded once. Values are NumPy's: integers wrap, x // 0 is 0 for
# integers, % has the divisor's sign. `out` may be an input with the same layout; any other overlap
# is the caller's to avoid. Nothing here waits for the device.
#
#   COPY                  casts input 0 to the dtype of out; compute_dtype is not looked at
#   EQ ... GE, IS...      give truth values; out is usually bool
#   AND OR XOR NOT        logical with compute_dtype bool, bitwise with integers
#   WHERE                 (condition, a, b); the condition is read as bool
#   CLIP                  (x, low, high)
#   ABS REAL IMAG         of a complex compute_dtype give its real type
#   GELU                  exact (erf); GELU_TANH the tanh form

from libc.stdint cimport uint64_t

from gputensor._kernels.operand cimport Operand

cdef enum ElementwiseOp:
    OP_COPY = 0
    OP_NEG = 1
    OP_POSITIVE = 2
    OP_ABS = 3
    OP_ADD = 4
    OP_SUB = 5
    OP_MUL = 6
    OP_DIV = 7
    OP_FLOORDIV = 8
    OP_MOD = 9
    OP_POW = 10
    OP_MAXIMUM = 11
    OP_MINIMUM = 12
    OP_EQ = 13
    OP_NE = 14
    OP_LT = 15
    OP_LE = 16
    OP_GT = 17
    OP_GE = 18
    OP_AND = 19
    OP_OR = 20
    OP_XOR = 21
    OP_NOT = 22
    OP_LSHIFT = 23
    OP_RSHIFT = 24
    OP_WHERE = 25
    OP_EXP = 26
    OP_EXPM1 = 27
    OP_LOG = 28
    OP_LOG1P = 29
    OP_LOG2 = 30
    OP_LOG10 = 31
    OP_SQRT = 32
    OP_RSQRT = 33
    OP_SQUARE = 34
    OP_RECIPROCAL = 35
    OP_SIN = 36
    OP_COS = 37
    OP_TAN = 38
    OP_ASIN = 39
    OP_ACOS = 40
    OP_ATAN = 41
    OP_SINH = 42
    OP_COSH = 43
    OP_TANH = 44
    OP_ASINH = 45
    OP_ACOSH = 46
    OP_ATANH = 47
    OP_ATAN2 = 48
    OP_FLOOR = 49
    OP_CEIL = 50
    OP_TRUNC = 51
    OP_ROUND = 52
    OP_SIGN = 53
    OP_ISNAN = 54
    OP_ISINF = 55
    OP_ISFINITE = 56
    OP_ERF = 57
    OP_SIGMOID = 58
    OP_RELU = 59
    OP_GELU = 60
    OP_SILU = 61
    OP_CLIP = 62
    OP_REAL = 63
    OP_IMAG = 64
    OP_CONJ = 65
    OP_GELU_TANH = 66

# Apart from the names: Cython 3.0 takes a member of a named enum for no array dimension.
cdef enum:
    ELEMENTWISE_COUNT = 67

# Raises TypeError when the operation does not exist for compute_dtype (sin of int32, bool - bool),
# ValueError when shapes do not match; nothing has changed then.
cdef int elementwise(int op, int device, uint64_t stream, int compute_dtype,
                     Operand* out, int count, Operand* inputs) except -1
