# Element-wise kernels on a CUDA device: layout, kernel choice, launch. The caller has checked.

from libc.stdint cimport uint64_t

from gputensor._kernels.operand cimport Operand

cdef int cuda_elementwise(int op, int device, uint64_t stream, int compute_dtype,
                          Operand* out, int count, Operand* inputs) except -1
