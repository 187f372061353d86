# Products with quantized weights, on operands: x[m, k] row-major, the weights int8 [n, k] row-major
# or packed int4 (int4_layout.py), scales [groups, n] of x's type, bias [n] or NULL, out[m, n] of
# x's type, row-major. The caller has checked shapes and types. CUDA devices only.

from libc.stdint cimport uint64_t

from gputensor._kernels.operand cimport Operand

# Queues the product by the kernel for skinny products; 0 when that does not fit it.
cdef int quantized_run(int device, uint64_t stream, const Operand* x, const Operand* weight,
                       const Operand* scales, const Operand* bias, const Operand* out) except -1
# Queues out[n, k] = weights * scales, rounded to the type of out and scales.
cdef int dequantize_run(int device, uint64_t stream, const Operand* weight, const Operand* scales,
                        const Operand* out) except -1
