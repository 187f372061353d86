# Public functions, element by element and reductions. Several have the names of builtins (`all`,
# `max`, `sum`): code that needs those of Python belongs in another room.

from libc.stdint cimport int64_t, uint64_t

from gputensor._arrays cimport (
    DT_BOOL, DT_FLOAT32, DT_FLOAT64, DT_INT64, DT_UINT64, KIND_BOOL, KIND_COMPLEX, KIND_FLOAT,
    KIND_INT, KIND_SMALL, KIND_UINT, Operand, dtype_kind,
)
from gputensor._kernels.faces cimport (
    OP_ABS, OP_ACOS, OP_ACOSH, OP_ADD, OP_AND, OP_ASIN, OP_ASINH, OP_ATAN, OP_ATAN2, OP_ATANH,
    OP_CEIL, OP_CLIP, OP_CONJ, OP_COPY, OP_COS, OP_COSH, OP_DIV, OP_EQ, OP_ERF, OP_EXP,
    OP_EXPM1, OP_FLOOR, OP_FLOORDIV, OP_GE, OP_GELU, OP_GELU_TANH, OP_GT, OP_IMAG, OP_ISFINITE,
    OP_ISINF, OP_ISNAN, OP_LE, OP_LOG, OP_LOG10, OP_LOG1P, OP_LOG2, OP_LSHIFT, OP_LT,
    OP_MAXIMUM, OP_MINIMUM, OP_MOD, OP_MUL, OP_NE, OP_NEG, OP_NOT, OP_OR, OP_POSITIVE, OP_POW,
    OP_REAL, OP_RECIPROCAL, OP_RELU, OP_ROUND, OP_RSHIFT, OP_RSQRT, OP_SIGMOID, OP_SIGN,
    OP_SILU, OP_SIN, OP_SINH, OP_SQRT, OP_SQUARE, OP_SUB, OP_TAN, OP_TANH, OP_TRUNC, OP_WHERE,
    OP_XOR, RED_ALL, RED_ANY, RED_ARGMAX, RED_ARGMIN, RED_MAX, RED_MEAN, RED_MIN, RED_PROD,
    RED_SUM, reduce as reduce_kernel,
)
from gputensor.streams.order cimport current_handle
from gputensor.tensor.core cimport (
    RULE_BITS, RULE_CLASSIFY, RULE_COMPARE, RULE_FLOAT, RULE_LOGICAL, RULE_MAGNITUDE, RULE_SAME,
    RULE_WHERE, Tensor, axes_mask, axis_argument, check_distinct, common_device, copied,
    dtype_argument, elementwise_tensor, empty_tensor, flag_argument, number_kind, overlaps,
    tensor_argument, tensor_over, work_begin, work_end,
)

from gputensor._arrays import promotion
from gputensor._arrays.element_types import DTYPES
from gputensor._kernels.operations import REDUCTIONS, check_kind

include "arithmetic.pxi"
include "comparison.pxi"
include "mathematics.pxi"
include "trigonometry.pxi"
include "activation.pxi"
include "reduction.pxi"
