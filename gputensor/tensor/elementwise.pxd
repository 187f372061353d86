# One element-wise call: from Python arguments to a queued kernel.

from libc.stdint cimport int64_t

from gputensor._kernels.operand cimport Operand
from gputensor.tensor.tensor cimport Tensor

# How an operation chooses the dtype it computes in and the dtype of its result.
cdef enum Rule:
    RULE_SAME = 0           # both the common dtype of the arguments
    RULE_FLOAT = 1          # bool and integers become float32 first
    RULE_COMPARE = 2        # computes in the common dtype, gives bool
    RULE_LOGICAL = 3        # computes in bool, gives bool
    RULE_BITS = 4           # bool and integers only
    RULE_CLASSIFY = 5       # as FLOAT, gives bool
    RULE_MAGNITUDE = 6      # as SAME, but a complex argument gives its real dtype
    RULE_WHERE = 7          # the first argument is a condition and has no say

# The result of `op` on `arguments` (Tensors and Python numbers, at least one Tensor), written to
# `out` when that is not None. `name` is the public function's, for messages. Checks everything
# before it allocates, and allocates before it queues.
cdef Tensor elementwise_tensor(int op, str name, tuple arguments, object out, int rule)
# target[...] = source, cast and broadcast; the two may overlap and must share a device.
cdef int copy_into(Tensor target, Tensor source) except -1
# target[...] = a Python number.
cdef int fill_with(Tensor target, object value) except -1
# A row-major copy with dtype `dtype` on the same device.
cdef Tensor copied(Tensor source, int dtype)
# The tensor itself when it is row-major already, else a copy.
cdef Tensor contiguous(Tensor source)
# 0 bool, 1 int, 2 float, 3 complex; -1 when `value` is no number. NumPy scalars count as numbers.
cdef int number_kind(object value) except -2
# A number without its fraction, as a Python int; OverflowError (NaN: ValueError) when it does not
# fit the integer `dtype`.
cdef object whole_number(object value, int dtype)
# Fills a scalar operand; OverflowError when the number does not fit an integer `dtype`.
cdef int fill_scalar(Operand* out, object value, int dtype) except -1
# Widens shape[:ndim] by the tensor's shape; gives the new ndim. ValueError when they differ.
cdef int broadcast_shape(int64_t* shape, int ndim, Tensor a, str name) except -1
# The operand of a tensor broadcast to `shape`, which must admit it.
cdef void broadcast_operand(Tensor a, Operand* out, int ndim, const int64_t* shape) noexcept
# The common dtype of two codes.
cdef int promote_codes(int a, int b) except -1
# Whether the two may share bytes without being the same elements in the same order.
cdef bint overlaps(Tensor target, Tensor source) noexcept
# ValueError when `target` is read-only or several of its elements are one place in memory.
cdef int check_distinct(Tensor target, str name) except -1
