# Element-wise kernels: checks once, then the executor of the device (see elementwise.pxd).

cdef unsigned char[ELEMENTWISE_COUNT] elementwise_allowed_kinds
cdef unsigned char[ELEMENTWISE_COUNT] arities
cdef object elementwise_host_run = host_elementwise.run


def _elementwise_load_table():
    table = kind_table(ELEMENTWISE)
    if len(table) != ELEMENTWISE_COUNT:
        raise ImportError("operations.py and elementwise.pxd do not list the same operations")
    for row in ELEMENTWISE:
        elementwise_allowed_kinds[row.code] = table[row.code]
        arities[row.code] = row.arity


_elementwise_load_table()


cdef int elementwise_check_shapes(Operand* out, int count, Operand* inputs) except -1:
    cdef int i, axis
    for i in range(count):
        if inputs[i].is_scalar:
            continue
        if inputs[i].ndim != out.ndim:
            raise ValueError(f"input {i} has {inputs[i].ndim} axes, the output {out.ndim}")
        for axis in range(out.ndim):
            if inputs[i].shape[axis] != out.shape[axis]:
                raise ValueError(f"input {i} has length {inputs[i].shape[axis]} along axis {axis}, "
                                 f"the output {out.shape[axis]}")
    return 0


cdef int elementwise(int op, int device, uint64_t stream, int compute_dtype,
                     Operand* out, int count, Operand* inputs) except -1:
    cdef int i
    if op == OP_COPY:
        compute_dtype = out.dtype
    if not (elementwise_allowed_kinds[op] >> dtype_kind(compute_dtype)) & 1 or arities[op] != count:
        check_kind(ELEMENTWISE[op], compute_dtype, count)
    elementwise_check_shapes(out, count, inputs)
    for i in range(out.ndim):
        if out.shape[i] == 0:
            return 0
    if not is_host(device):
        return cuda_elementwise(op, device, stream, compute_dtype, out, count, inputs)
    views = tuple([host_view(&inputs[i]) for i in range(count)])
    return host_call(device, stream, elementwise_host_run, (op, compute_dtype, host_view(out), views))
