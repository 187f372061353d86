# Gather, scatter and progressions on a CUDA device. The caller has checked.

from libc.stdint cimport int64_t, uint64_t

from gputensor._kernels.operand cimport Operand

cdef int cuda_arange(int device, uint64_t stream, Operand* out, double start, double step,
                     int64_t integer_start, int64_t integer_step) except -1
cdef int cuda_gather(int device, uint64_t stream, Operand* out, Operand* source, int first_axis,
                     int count, Operand* indices) except -1
cdef int cuda_scatter(int device, uint64_t stream, Operand* target, int first_axis, int count,
                      Operand* indices, Operand* values) except -1
