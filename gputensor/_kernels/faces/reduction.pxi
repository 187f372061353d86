# Reductions: checks once, then the executor of the device (see reduction.pxd).

cdef unsigned char[REDUCTION_COUNT] reduction_allowed_kinds
cdef object reduction_host_run = host_reduction.run


def _reduction_load_table():
    cdef int code
    table = kind_table(REDUCTIONS)
    if len(table) != REDUCTION_COUNT:
        raise ImportError("operations.py and reduction.pxd do not list the same operations")
    for code in range(REDUCTION_COUNT):
        reduction_allowed_kinds[code] = table[code]


_reduction_load_table()


cdef int reduction_check_shapes(int op, Operand* out, Operand* input, uint32_t axes_mask) except -1:
    cdef int axis, kept = 0
    cdef int64_t out_size = 1, reduced = 1
    if axes_mask >> input.ndim:
        raise ValueError(f"a reduced axis is outside the {input.ndim} axes of the input")
    for axis in range(input.ndim):
        if (axes_mask >> axis) & 1:
            reduced *= input.shape[axis]
            continue
        if kept >= out.ndim or out.shape[kept] != input.shape[axis]:
            raise ValueError(f"the output does not have the input's kept axis {axis}")
        out_size *= input.shape[axis]
        kept += 1
    if kept != out.ndim:
        raise ValueError(f"the output has {out.ndim} axes, {kept} are kept")
    if out_size and not reduced and RED_MAX <= op <= RED_ARGMIN:
        raise ValueError(f"zero-size array to reduction {REDUCTIONS[op].name}, "
                         "which has no identity")
    return out_size != 0


cdef int reduce(int op, int device, uint64_t stream, int compute_dtype,
                Operand* out, Operand* input, uint32_t axes_mask) except -1:
    cdef int axis
    if not (reduction_allowed_kinds[op] >> dtype_kind(compute_dtype)) & 1:
        check_kind(REDUCTIONS[op], compute_dtype)
    if not reduction_check_shapes(op, out, input, axes_mask):
        return 0
    if not is_host(device):
        return cuda_reduce(op, device, stream, compute_dtype, out, input, axes_mask)
    axes = tuple([axis for axis in range(input.ndim) if (axes_mask >> axis) & 1])
    return host_call(device, stream, reduction_host_run,
                     (op, compute_dtype, host_view(out), host_view(input), axes))
