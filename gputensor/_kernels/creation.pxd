# Kernels that write an Operand from no array: a constant, a progression.

from libc.stdint cimport int64_t, uint64_t

from gputensor._kernels.operand cimport Operand

# out[...] = value, a scalar operand, cast to the dtype of out.
cdef int fill(int device, uint64_t stream, Operand* out, Operand* value) except -1

# out[i] = start + i * step, out of one dimension. Integer dtypes (and bool) use the integer pair,
# which wraps; floating-point and complex dtypes use the double pair, rounded once at the end.
cdef int arange(int device, uint64_t stream, Operand* out, double start, double step,
                int64_t integer_start, int64_t integer_step) except -1
