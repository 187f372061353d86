from libc.stdint cimport uint32_t, uint64_t

from gputensor._kernels.operand cimport Operand

from gputensor.errors import DeviceError


cdef int cuda_reduce(int op, int device, uint64_t stream, int compute_dtype,
                     Operand* out, Operand* input, uint32_t axes_mask) except -1:
    raise DeviceError("CUDA kernels are not built yet")
