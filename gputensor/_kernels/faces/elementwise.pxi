# Element-wise kernels: the kinds that each operation takes, and the call of the device's executor.

cdef unsigned char[MAX_OPERATIONS] elementwise_kinds     # bit k: the operation takes kind k
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


cdef extern from "gputensor/_kernels/faces/host_map.h" namespace "gputensor" nogil:
    struct HostMap:
        int operation, is_double
        int64_t count
        void* out
        void* inputs[2]
        double numbers[2]

    void run_host_map(void* map) noexcept

cdef enum:
    MOST_MAPPED = 1 << 15       # above it NumPy's loops, which release the GIL, cost no more


cdef int host_mapped(int op, int device, uint64_t stream, int compute_dtype, const Operand* out,
                     const Operand* inputs) except -1:
    """Queue a sum, difference, product or quotient of short runs; return 0 for any other call."""
    cdef HostMap* map
    cdef Layout layout
    cdef int i, done = 0
    if compute_dtype != out.dtype or compute_dtype not in (DT_FLOAT32, DT_FLOAT64):
        return 0
    for i in range(2):
        if not inputs[i].is_scalar and inputs[i].dtype != out.dtype:
            return 0
    layout_merge(&layout, out, 2, inputs)
    if layout.ndim > 1 or layout_size(&layout) > MOST_MAPPED or not is_contiguous(&layout, OUT):
        return 0
    for i in range(2):
        if not inputs[i].is_scalar and not is_contiguous(&layout, i):
            return 0
    if inputs[0].is_scalar and inputs[1].is_scalar:
        return 0
    map = <HostMap*> malloc(sizeof(HostMap))
    if map == NULL:
        raise MemoryError("no memory for a queued call")
    map.operation, map.is_double = op - OP_ADD, compute_dtype == DT_FLOAT64
    map.count, map.out = layout_size(&layout), <void*> layout.ptrs[OUT]
    for i in range(2):
        map.inputs[i] = NULL if inputs[i].is_scalar else <void*> layout.ptrs[i]
        map.numbers[i] = inputs[i].real
    try:
        done = host_work(device, stream, run_host_map, map)
    finally:
        if not done:
            free(map)
    return done


cdef int host_elementwise(int op, int device, uint64_t stream, int compute_dtype,
                          Operand* out, int count, Operand* inputs) except -1 with gil:
    cdef int i
    if OP_ADD <= op <= OP_DIV and host_mapped(op, device, stream, compute_dtype, out, inputs):
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
