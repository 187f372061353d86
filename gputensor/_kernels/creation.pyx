# Kernels that write an Operand from no array (see creation.pxd).

from libc.stdint cimport int64_t, uint64_t

from gputensor._kernels.cuda_index cimport cuda_arange
from gputensor._kernels.dtypes cimport KIND_UINT, dtype_kind
from gputensor._kernels.elementwise cimport OP_COPY, elementwise
from gputensor._kernels.host_call cimport host_call, host_view, is_host
from gputensor._kernels.operand cimport Operand

from gputensor._kernels import host_index

cdef object host_arange = host_index.run_arange


cdef int fill(int device, uint64_t stream, Operand* out, Operand* value) except -1:
    if not value.is_scalar:
        raise ValueError("fill takes a scalar operand")
    return elementwise(OP_COPY, device, stream, out.dtype, out, 1, value)


cdef int arange(int device, uint64_t stream, Operand* out, double start, double step,
                int64_t integer_start, int64_t integer_step) except -1:
    if out.ndim != 1:
        raise ValueError(f"arange writes one axis; the output has {out.ndim}")
    if out.shape[0] == 0:
        return 0
    if not is_host(device):
        return cuda_arange(device, stream, out, start, step, integer_start, integer_step)
    if dtype_kind(out.dtype) <= KIND_UINT:
        return host_call(device, stream, host_arange,
                         (host_view(out), integer_start, integer_step))
    return host_call(device, stream, host_arange, (host_view(out), start, step))
