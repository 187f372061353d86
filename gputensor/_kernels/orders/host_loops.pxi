"""Search, selection, counts and choices of a host device as loops (host_orders.h).

Each function queues the loop of a call, or returns 0 for a call that NumPy has to run: on a device
that records or captures, or of another dtype. Signed sums wrap, as those of unsigned numbers.
"""

cdef extern from "gputensor/_kernels/orders/host_orders.h" namespace "gputensor" nogil:
    enum:
        ORDER_INT
        ORDER_UINT
        ORDER_FLOAT
        ORDER_HALF
        ORDER_BFLOAT
        ORDER_BOOL
        ORDER_NO_MEMORY

    struct HostOrder
    ctypedef int64_t (*HostOrderRun)(const HostOrder&) noexcept

    struct HostOrder:
        HostOrderRun run
        int device, flag, ndim
        int64_t[16] shape
        int64_t rows, columns, count
        const void* input
        const void* other
        void* out
        void* places

    HostOrderRun search_loop(int kind, int itemsize) noexcept
    HostOrderRun select_loop(int kind, int itemsize) noexcept
    HostOrderRun firsts_loop(int kind, int itemsize) noexcept
    HostOrderRun add_loop(int kind, int itemsize) noexcept
    HostOrderRun count_loop(int kind, int itemsize) noexcept
    HostOrderRun pick_loop(int itemsize) noexcept
    int64_t run_mark_true(const HostOrder&) noexcept
    int64_t run_places(const HostOrder&) noexcept

cdef extern from "gputensor/_kernels/orders/host_sorts.h" namespace "gputensor" nogil:
    HostOrderRun sort_loop(int kind, int itemsize) noexcept
    HostOrderRun argsort_loop(int kind, int itemsize) noexcept
    HostOrderRun short_argsort_loop(int kind, int itemsize) noexcept
    HostOrderRun short_sort_loop(int kind, int itemsize) noexcept
    enum:
        SHORT_SORT

cdef extern from "gputensor/_kernels/orders/host_scans.h" namespace "gputensor" nogil:
    HostOrderRun scan_loop(int op, int kind, int itemsize, int from_kind,
                           int from_itemsize) noexcept

cdef enum:
    MOST_CHOSEN = 128           # beyond, NumPy's partition costs less than the heap
    # The least rows that passes over digits sort as fast as NumPy's vector instructions, which
    # 16-bit floats lack.
    LEAST_SORTED = 2048
    LEAST_OF_FEW_PASSES = 256
    LEAST_ARGSORTED = 512
    FEW_SORTED = 512            # elements in short rows; beyond, NumPy sorts them as fast


# The HostOrderKind of a dtype, or -1.
cdef int order_kind(int dtype) noexcept nogil:
    cdef int kind = dtype_kind(dtype)
    if kind == KIND_INT:
        return ORDER_INT
    if kind == KIND_UINT:
        return ORDER_UINT
    if kind != KIND_FLOAT:
        return ORDER_BOOL if kind == KIND_BOOL else -1
    return (ORDER_HALF if dtype == DT_FLOAT16 else ORDER_BFLOAT if dtype == DT_BFLOAT16
            else ORDER_FLOAT)


cdef void run_host_order(void* argument) noexcept nogil:
    cdef HostOrder* order = <HostOrder*> argument
    cdef int64_t wrong = order.run(order[0])
    if wrong >= 0:
        with gil:
            keep_error(order.device, IndexError(
                f"index {(<const int64_t*> order.other)[wrong]} is out of bounds for an axis with "
                f"size {order.columns}"))
    elif wrong == ORDER_NO_MEMORY:
        with gil:
            keep_error(order.device, MemoryError("no memory for a sort"))
    free(order)


cdef int queue_order(HostOrderRun run, int device, uint64_t stream, HostOrder* facts) except -1:
    cdef HostOrder* record
    cdef int done = 0
    if run == NULL or device_kind(device) != DEVICE_HOST:
        return 0
    record = <HostOrder*> malloc(sizeof(HostOrder))
    if record == NULL:
        raise MemoryError("no memory for a queued call")
    record[0] = facts[0]
    record.run, record.device = run, device
    try:
        done = host_work(device, stream, run_host_order, record)
    finally:
        if not done:
            free(record)
    if done:
        raise_pending(device)
    return done


cdef int host_sorted(int device, uint64_t stream, const Operand* out, const Operand* x,
                     bint is_descending) except -1:
    cdef int kind = order_kind(x.dtype), itemsize = dtype_itemsize(x.dtype)
    cdef bint is_short_float = kind == ORDER_HALF or kind == ORDER_BFLOAT
    cdef HostOrderRun run = NULL
    if x.shape[1] <= SHORT_SORT and x.shape[0] * x.shape[1] <= FEW_SORTED:
        run = short_sort_loop(kind, itemsize)
    elif x.shape[1] >= (LEAST_OF_FEW_PASSES if is_short_float else LEAST_SORTED):
        run = sort_loop(kind, itemsize)
    return queue_sort(run, device, stream, out, x, is_descending)


cdef int host_argsorted(int device, uint64_t stream, const Operand* out, const Operand* x,
                        bint is_descending) except -1:
    cdef int kind = order_kind(x.dtype), itemsize = dtype_itemsize(x.dtype)
    cdef HostOrderRun run = NULL
    if x.shape[1] <= SHORT_SORT:
        run = short_argsort_loop(kind, itemsize)
    elif x.shape[1] >= (LEAST_OF_FEW_PASSES if itemsize <= 2 else LEAST_ARGSORTED):
        run = argsort_loop(kind, itemsize)
    return queue_sort(run, device, stream, out, x, is_descending)


cdef int host_partitioned(int device, uint64_t stream, const Operand* out,
                          const Operand* x) except -1:
    """Sort rows that are sorted faster than NumPy finds single elements."""
    if order_kind(x.dtype) == ORDER_FLOAT and x.shape[1] >= LEAST_OF_FEW_PASSES:
        return 0
    return host_sorted(device, stream, out, x, False)


cdef int queue_sort(HostOrderRun run, int device, uint64_t stream, const Operand* out,
                    const Operand* x, bint is_descending) except -1:
    cdef HostOrder order
    order.flag, order.rows, order.columns = is_descending, x.shape[0], x.shape[1]
    order.input, order.out = <const void*> x.ptr, <void*> out.ptr
    return queue_order(run, device, stream, &order)


cdef int host_scanned(int device, uint64_t stream, const Operand* out, const Operand* x,
                      int op) except -1:
    cdef HostOrder order
    order.rows, order.columns, order.count = x.shape[0], x.shape[1], x.shape[2]
    order.input, order.out = <const void*> x.ptr, <void*> out.ptr
    return queue_order(scan_loop(op, order_kind(out.dtype), dtype_itemsize(out.dtype),
                                 order_kind(x.dtype), dtype_itemsize(x.dtype)),
                       device, stream, &order)


cdef int host_searched(int device, uint64_t stream, const Operand* out, const Operand* x,
                       const Operand* values, bint is_right) except -1:
    cdef HostOrder order
    order.flag, order.columns, order.count = is_right, x.shape[0], values.shape[0]
    order.input, order.other = <const void*> x.ptr, <const void*> values.ptr
    order.out = <void*> out.ptr
    if values.dtype != x.dtype:
        return 0
    return queue_order(search_loop(order_kind(x.dtype), dtype_itemsize(x.dtype)), device, stream,
                       &order)


cdef int host_selected(int device, uint64_t stream, const Operand* values, const Operand* places,
                       const Operand* x, bint is_largest) except -1:
    cdef HostOrder order
    order.flag, order.rows, order.columns = is_largest, x.shape[0], x.shape[1]
    order.count = places.shape[1]
    order.input = <const void*> x.ptr
    order.out, order.places = <void*> values.ptr, <void*> places.ptr
    if not 0 < order.count <= min(MOST_CHOSEN, order.columns):
        return 0
    return queue_order(select_loop(order_kind(x.dtype), dtype_itemsize(x.dtype)), device, stream,
                       &order)


cdef int host_counted(int device, uint64_t stream, const Operand* counts,
                      const Operand* x) except -1:
    cdef HostOrder order
    order.columns, order.count = x.shape[0], counts.shape[0]
    order.input, order.out = <const void*> x.ptr, <void*> counts.ptr
    return queue_order(count_loop(order_kind(x.dtype), dtype_itemsize(x.dtype)), device, stream,
                       &order)


cdef int host_added(int device, uint64_t stream, const Operand* target, const Operand* index,
                    const Operand* source) except -1:
    cdef HostOrder order
    if index.dtype != DT_INT64 or source.dtype != target.dtype:
        return 0
    order.flag, order.shape[0] = index.ndim != 1, target.shape[2]
    order.rows, order.columns, order.count = target.shape[0], target.shape[1], source.shape[1]
    order.input, order.other = <const void*> source.ptr, <const void*> index.ptr
    order.out = <void*> target.ptr
    kind = order_kind(target.dtype)
    return queue_order(add_loop(ORDER_UINT if kind == ORDER_INT else kind,
                                dtype_itemsize(target.dtype)), device, stream, &order)


cdef int host_marked(int device, uint64_t stream, const Operand* bits, const Operand* starts,
                     const Operand* x, str rule) except -1:
    cdef HostOrder order
    cdef HostOrderRun run = NULL
    order.flag, order.columns = rule == "first_nan", x.shape[0]
    order.input = <const void*> x.ptr
    order.out, order.places = <void*> bits.ptr, <void*> starts.ptr
    if rule != "true":
        run = firsts_loop(order_kind(x.dtype), dtype_itemsize(x.dtype))
    elif x.dtype == DT_BOOL:
        run = run_mark_true
    return queue_order(run, device, stream, &order)


cdef int host_picked(int device, uint64_t stream, const Operand* out, const Operand* x,
                     const Operand* bits) except -1:
    cdef HostOrder order
    order.columns = x.shape[0]
    order.input, order.other = <const void*> x.ptr, <const void*> bits.ptr
    order.out = <void*> out.ptr
    return queue_order(pick_loop(dtype_itemsize(x.dtype)), device, stream, &order)


cdef int host_placed(int device, uint64_t stream, const Operand* out, const Operand* bits,
                     tuple shape) except -1:
    cdef HostOrder order
    cdef int axis
    order.ndim, order.columns, order.count = len(shape), 1, out.shape[1]
    for axis in range(order.ndim):
        order.shape[axis] = shape[axis]
        order.columns *= order.shape[axis]
    order.other, order.out = <const void*> bits.ptr, <void*> out.ptr
    return queue_order(run_places, device, stream, &order)
