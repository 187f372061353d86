# Kernels that write an Operand and read no array: constants and arithmetic progressions.

cdef int fill(int device, uint64_t stream, Operand* out, Operand* value) except -1 nogil:
    return elementwise(OP_COPY, device, stream, out.dtype, out, 1, value)


cdef int arange(int device, uint64_t stream, Operand* out, double start, double step,
                int64_t integer_start, int64_t integer_step) except -1 nogil:
    if out.shape[0] == 0:
        return 0
    return executors[device_kind(device)].arange(device, stream, out, start, step, integer_start,
                                                 integer_step)


cdef int host_arange(int device, uint64_t stream, Operand* out, double start, double step,
                     int64_t integer_start, int64_t integer_step) except -1 with gil:
    cdef HostRange numbers
    numbers.start, numbers.step = start, step
    numbers.whole_start, numbers.whole_step = <uint64_t> integer_start, <uint64_t> integer_step
    if host_ranged(device, stream, out, &numbers):
        return 0
    if dtype_kind(out.dtype) <= KIND_UINT:
        return host_call(device, stream, ARANGE_CALL,
                         (integer_start, integer_step, call_argument(device, out)))
    return host_call(device, stream, ARANGE_CALL, (start, step, call_argument(device, out)))
