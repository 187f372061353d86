# Element-wise kernels: the kinds that each operation takes, and the executor of the device.

cdef unsigned char[MAX_OPERATIONS] elementwise_kinds     # bit k: the operation takes kind k
cdef object elementwise_host_run = host_elementwise.run


cdef int _elementwise_load_table() except -1:
    named = dict(copy=OP_COPY, add=OP_ADD, mul=OP_MUL, pow=OP_POW, maximum=OP_MAXIMUM,
                 minimum=OP_MINIMUM, where=OP_WHERE, square=OP_SQUARE, gelu=OP_GELU,
                 clip=OP_CLIP, conj=OP_CONJ, gelu_tanh=OP_GELU_TANH)
    if len(ELEMENTWISE) > MAX_OPERATIONS or named.items() - {(r.name, r.code) for r in ELEMENTWISE}:
        raise ImportError("operations.py and faces/__init__.pxd differ in the codes of operations")
    for row in ELEMENTWISE:
        elementwise_kinds[row.code] = kind_bits(row)


cdef int kind_bits(row):
    """The kinds of a row of operations.py as bits."""
    return sum([1 << KINDS.index(kind) for kind in row.kinds])


_elementwise_load_table()


cdef int raise_for_kind(row, int dtype) except -1:
    element = DTYPES[dtype]
    allowed = ", ".join([kind for kind in KINDS if kind in row.kinds])
    raise TypeError(f"{row.public_name} is not defined for {element.name}; it takes {allowed}")


cdef int elementwise_check(int op, int compute_dtype) except -1:
    if not (elementwise_kinds[op] >> dtype_kind(compute_dtype)) & 1:
        raise_for_kind(ELEMENTWISE[op], compute_dtype)
    return 0


cdef int elementwise(int op, int device, uint64_t stream, int compute_dtype,
                     Operand* out, int count, Operand* inputs) except -1:
    cdef int i
    if op == OP_COPY:
        compute_dtype = out.dtype
    for i in range(out.ndim):
        if out.shape[i] == 0:
            return 0
    if not is_host(device):
        return cuda_elementwise(op, device, stream, compute_dtype, out, count, inputs)
    views = tuple([host_view(&inputs[i]) for i in range(count)])
    return host_call(device, stream, elementwise_host_run,
                     (op, compute_dtype, host_view(out), views))
