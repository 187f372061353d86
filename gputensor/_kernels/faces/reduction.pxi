# Reductions: the kinds that each takes, and the call of the device's executor.

cdef unsigned char[MAX_OPERATIONS] reduction_kinds


def _reduction_load_table():
    named = dict(sum=RED_SUM, prod=RED_PROD, max=RED_MAX, min=RED_MIN, argmax=RED_ARGMAX,
                 argmin=RED_ARGMIN, any=RED_ANY, all=RED_ALL, mean=RED_MEAN, var=RED_VAR)
    if named != {row.name: row.code for row in REDUCTIONS}:
        raise ImportError("operations.py and faces/__init__.pxd differ in the codes of reductions")
    for row in REDUCTIONS:
        reduction_kinds[row.code] = kind_bits(row)


_reduction_load_table()


cdef int reduction_check(int op, int compute_dtype) except -1:
    if not (reduction_kinds[op] >> dtype_kind(compute_dtype)) & 1:
        raise_for_kind(REDUCTIONS[op], compute_dtype)
    return 0


cdef int reduce(int op, int device, uint64_t stream, int compute_dtype,
                Operand* out, Operand* input, uint32_t axes_mask) except -1 nogil:
    return executors[device_kind(device)].reduce(op, device, stream, compute_dtype, out, input,
                                                 axes_mask)


cdef int host_reduce(int op, int device, uint64_t stream, int compute_dtype,
                     Operand* out, Operand* input, uint32_t axes_mask) except -1 with gil:
    cdef int axis
    axes = tuple([axis for axis in range(input.ndim) if (axes_mask >> axis) & 1])
    return host_call(device, stream, REDUCE_CALL,
                     (REDUCTION_NAMES[op], DTYPE_NAMES[compute_dtype], axes,
                      call_argument(device, out), call_argument(device, input)))
