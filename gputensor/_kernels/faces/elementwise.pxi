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


# The LoopType of a dtype; -1: there are no loops of it.
cdef int loop_type(int dtype) noexcept nogil:
    if dtype == DT_FLOAT32:
        return LOOP_FLOAT
    if dtype == DT_FLOAT64:
        return LOOP_DOUBLE
    if dtype == DT_INT32:
        return LOOP_INT32
    if dtype == DT_INT64:
        return LOOP_INT64
    return LOOP_BOOL if dtype == DT_BOOL else -1


cdef void set_number(LoopNumber* number, int kind, const Operand* operand) noexcept nogil:
    if kind == LOOP_FLOAT:
        number.single = <float> operand.real
    elif kind == LOOP_DOUBLE:
        number.wide = operand.real
    elif kind == LOOP_INT32:
        number.int32 = <int32_t> operand.integer
    elif kind == LOOP_INT64:
        number.int64 = operand.integer
    else:
        number.byte = operand.integer != 0


cdef int host_looped(int op, int device, uint64_t stream, int compute_dtype, const Operand* out,
                     const Operand* inputs) except -1:
    """Queue the loop of an operation; return 0 for any other call.

    NumPy's own operations give the same bits, but making views and calling NumPy cost more than the
    work on a few thousand elements.
    """
    cdef const LoopRow* row = host_loops[op]
    cdef QueuedLoop* queued
    cdef Layout layout
    cdef bint has_arrays = False
    cdef int i, dtype, kind = loop_type(compute_dtype), done = 0
    if row == NULL or kind < 0 or row.loops[kind] == NULL or (
            out.dtype != (DT_BOOL if row.gives_bool else compute_dtype)):
        return 0
    for i in range(row.arity):
        dtype = DT_BOOL if op == OP_WHERE and i == 0 else compute_dtype
        if not inputs[i].is_scalar:
            has_arrays = True
            if inputs[i].dtype != dtype:
                return 0
    layout_merge(&layout, out, row.arity, inputs)
    if not has_arrays or layout_size(&layout) > MOST_LOOPED and (
            row.has_ufunc or not is_one_line(&layout, row.arity)):
        return 0
    queued = loop_record(&layout, row.arity)
    queued.loop = row.loops[kind]
    for i in range(row.arity):
        if inputs[i].is_scalar:
            set_number(&queued.numbers[i], LOOP_BOOL if op == OP_WHERE and i == 0 else kind,
                       &inputs[i])
            queued.operands[i].place = <char*> &queued.numbers[i]
    try:
        done = host_work(device, stream, run_queued_loop, queued)
    finally:
        if not done:
            free(queued)
    return done


# Whether all operands are contiguous, or one element.
cdef bint is_one_line(const Layout* layout, int arity) noexcept nogil:
    cdef int i
    for i in range(arity):
        if layout.ndim and not 0 <= layout.strides[i][0] <= 1:
            return False
    return layout.ndim == 0 or layout.ndim == 1 and layout.strides[OUT][0] == 1


# A record with the operands of a layout, and behind it the room to pack their lines.
cdef QueuedLoop* loop_record(const Layout* layout, int arity) except NULL:
    cdef QueuedLoop* queued
    cdef LoopOperand* operand
    cdef int64_t count = layout.shape[0] if layout.ndim else 1
    cdef int64_t line = (count * 8 + 15) & ~15
    cdef char* room
    cdef int k, axis, packed = 0
    for k in range(OPERANDS):
        packed += layout.ndim and not 0 <= layout.strides[k][0] <= 1
    queued = <QueuedLoop*> malloc(sizeof(QueuedLoop) + 16 + packed * line)
    if queued == NULL:
        raise MemoryError("no memory for a queued call")
    room = <char*> ((<uint64_t> queued + sizeof(QueuedLoop) + 15) & ~<uint64_t> 15)
    queued.arity, queued.count = arity, count
    queued.axes = max(layout.ndim - 1, 0)
    for axis in range(queued.axes):
        queued.shape[axis] = layout.shape[layout.ndim - 1 - axis]
    for k in range(OPERANDS):
        operand = &queued.operands[k]
        operand.place, operand.itemsize = <char*> layout.ptrs[k], layout.itemsizes[k]
        operand.step = layout.strides[k][0] if layout.ndim else operand.itemsize != 0
        operand.packed = NULL
        if not 0 <= operand.step <= 1:
            operand.packed, room = room, room + line
        for axis in range(queued.axes):
            operand.line_steps[axis] = (layout.strides[k][layout.ndim - 1 - axis]
                                        * operand.itemsize)
    return queued


cdef int host_elementwise(int op, int device, uint64_t stream, int compute_dtype,
                          Operand* out, int count, Operand* inputs) except -1 with gil:
    cdef int i
    if host_looped(op, device, stream, compute_dtype, out, inputs) or (
            op == OP_COPY and host_copied(device, stream, out, &inputs[0])):
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
