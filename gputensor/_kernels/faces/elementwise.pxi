# Element-wise kernels: the kinds that each operation takes, and the call of the device's executor.

cdef unsigned char[MAX_OPERATIONS] elementwise_kinds     # bit k: the operation takes kind k
cdef (const LoopRow*)[MAX_OPERATIONS] host_loops         # NULL: the operation has none
cdef tuple OPERATION_NAMES = tuple(row.name for row in ELEMENTWISE)
cdef tuple REDUCTION_NAMES = tuple(row.name for row in REDUCTIONS)
cdef tuple DTYPE_NAMES = tuple(row.name for row in DTYPES)


cdef int _elementwise_load_table() except -1:
    named = dict(copy=OP_COPY, add=OP_ADD, sub=OP_SUB, mul=OP_MUL, div=OP_DIV, pow=OP_POW,
                 maximum=OP_MAXIMUM, minimum=OP_MINIMUM, where=OP_WHERE, square=OP_SQUARE,
                 gelu=OP_GELU, clip=OP_CLIP, conj=OP_CONJ, gelu_tanh=OP_GELU_TANH)
    if len(ELEMENTWISE) > MAX_OPERATIONS or named.items() - {(r.name, r.code) for r in ELEMENTWISE}:
        raise ImportError("operations.py and faces/__init__.pxd differ in the codes of operations")
    for row in ELEMENTWISE:
        elementwise_kinds[row.code] = kind_bits(row)
        host_loops[row.code] = find_loop(row.name)


cdef int kind_bits(row):
    """The kinds of a row of operations.py as bits."""
    return sum([1 << KINDS.index(kind) for kind in row.kinds])


_elementwise_load_table()


cdef int raise_for_kind(row, int dtype) except -1:
    element = DTYPES[dtype]
    allowed = " or ".join([kind for kind in KINDS if kind in row.kinds])
    raise TypeError(f"{row.public_name}: dtype: got {element.name}; expected {allowed}")


cdef int elementwise_check(int op, int compute_dtype) except -1:
    if not (elementwise_kinds[op] >> dtype_kind(compute_dtype)) & 1:
        raise_for_kind(ELEMENTWISE[op], compute_dtype)
    return 0


cdef int elementwise(int op, int device, uint64_t stream, int compute_dtype,
                     Operand* out, int count, Operand* inputs) except -1 nogil:
    cdef Layout layout
    if op == OP_COPY:
        compute_dtype = out.dtype
    if has_no_elements(out):
        return 0
    if op == OP_COPY and not is_recorded(device):
        layout_merge(&layout, out, count, inputs)
        if copy_by_driver(device, stream, &layout, out, inputs):
            return 0
    return executors[device_kind(device)].elementwise(op, device, stream, compute_dtype, out, count,
                                                      inputs)


cdef enum:
    MOST_LOOPED = 1 << 15       # above it NumPy's own loops, which release the GIL, cost no more


cdef int host_looped(int op, int device, uint64_t stream, int compute_dtype, const Operand* out,
                     const Operand* inputs) except -1:
    """Queue the loop of an operation on contiguous floats; return 0 for any other call.

    NumPy's own operations give the same bits, but making views and calling NumPy cost more than the
    work on a few thousand elements.
    """
    cdef const LoopRow* row = host_loops[op]
    cdef QueuedLoop* queued
    cdef Layout layout
    cdef int i, arrays = 0, done = 0
    if row == NULL or compute_dtype != out.dtype or (
            compute_dtype not in (DT_FLOAT32, DT_FLOAT64)):
        return 0
    for i in range(row.arity):
        if not inputs[i].is_scalar and inputs[i].dtype != out.dtype:
            return 0
    layout_merge(&layout, out, row.arity, inputs)
    if layout.ndim > 1 or not is_contiguous(&layout, OUT):
        return 0
    if OP_ADD <= op <= OP_DIV and layout_size(&layout) > MOST_LOOPED:
        return 0
    for i in range(row.arity):
        if not inputs[i].is_scalar:
            arrays += 1
            if not is_contiguous(&layout, i):
                return 0
    if arrays == 0:
        return 0
    queued = <QueuedLoop*> malloc(sizeof(QueuedLoop))
    if queued == NULL:
        raise MemoryError("no memory for a queued call")
    queued.loop = row.single if compute_dtype == DT_FLOAT32 else row.wide
    queued.call.count, queued.call.out = layout_size(&layout), <void*> layout.ptrs[OUT]
    for i in range(row.arity):
        queued.call.steps[i] = not inputs[i].is_scalar
        queued.call.inputs[i] = <void*> layout.ptrs[i]
        if inputs[i].is_scalar:
            queued.call.inputs[i] = &queued.numbers[i]
            if compute_dtype == DT_FLOAT32:
                queued.numbers[i].single = <float> inputs[i].real
            else:
                queued.numbers[i].wide = inputs[i].real
    try:
        done = host_work(device, stream, run_queued_loop, queued)
    finally:
        if not done:
            free(queued)
    return done


cdef int host_elementwise(int op, int device, uint64_t stream, int compute_dtype,
                          Operand* out, int count, Operand* inputs) except -1 with gil:
    cdef int i
    if host_looped(op, device, stream, compute_dtype, out, inputs):
        return 0
    arguments = [OPERATION_NAMES[op], DTYPE_NAMES[compute_dtype], call_argument(device, out)]
    for i in range(count):
        arguments.append(call_argument(device, &inputs[i]))
    return host_call(device, stream, ELEMENTWISE_CALL, tuple(arguments))


cdef bint is_contiguous(const Layout* layout, int k) noexcept nogil:
    return layout.ndim == 0 or (layout.ndim == 1 and layout.strides[k][0] == 1)


cdef bint copy_by_driver(int device, uint64_t stream, const Layout* layout, const Operand* out,
                         const Operand* value) except -1 nogil:
    # One contiguous run of memory on any device: a memset with zero, or a copy of bytes.
    cdef Driver* driver = driver_get(device)
    cdef status_t status
    cdef size_t nbytes
    if driver == NULL or not is_contiguous(layout, OUT):
        return False
    nbytes = <size_t>layout_size(layout) * layout.itemsizes[OUT]
    if value.is_scalar:
        if not scalar_is_zero(value):
            return False
        if nbytes % 4 == 0 and layout.ptrs[OUT] % 4 == 0:
            status = driver.fill_async(driver.self, layout.ptrs[OUT], 0, 4, nbytes // 4, stream)
        else:
            status = driver.fill_async(driver.self, layout.ptrs[OUT], 0, 1, nbytes, stream)
        if status != 0:
            raise_for_bytes(status, b"fill_async", device, nbytes)
        return True
    if value.dtype != out.dtype or not is_contiguous(layout, 0):
        return False
    if layout.ptrs[0] == layout.ptrs[OUT]:
        return True
    status = driver.copy_async(driver.self, layout.ptrs[OUT], layout.ptrs[0], nbytes, stream)
    if status != 0:
        raise_for_bytes(status, b"copy_async", device, nbytes)
    return True


cdef int raise_for_bytes(status_t status, const char* call, int device,
                         size_t nbytes) except -1 with gil:
    raise_for_status(status, call.decode(), f"of {nbytes} bytes on device {device}")
    return 0
