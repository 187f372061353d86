# Kernels that write an Operand from no array (see creation.pxd).


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
        return host_call(device, stream, ARANGE_CALL,
                         (integer_start, integer_step, call_argument(device, out)))
    return host_call(device, stream, ARANGE_CALL, (start, step, call_argument(device, out)))
