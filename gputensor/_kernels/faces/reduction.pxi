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


cdef extern from "gputensor/_kernels/faces/host_fold.h" namespace "gputensor" nogil:
    struct HostFold:
        int operation, is_column
        int64_t kept, kept_stride, reduced, stride
        const void* input
        void* out
        void (*run)(const HostFold&) noexcept

    void run_host_fold(void* fold) noexcept
    void fold_float "gputensor::fold_of<float>"(const HostFold&) noexcept
    void fold_double "gputensor::fold_of<double>"(const HostFold&) noexcept
    void fold_int32 "gputensor::fold_of<int32_t>"(const HostFold&) noexcept
    void fold_int64 "gputensor::fold_of<int64_t>"(const HostFold&) noexcept
    void fold_uint32 "gputensor::fold_of<uint32_t>"(const HostFold&) noexcept
    void fold_uint64 "gputensor::fold_of<uint64_t>"(const HostFold&) noexcept
    void fold_bool "gputensor::fold_of<bool>"(const HostFold&) noexcept

cdef enum:
    MOST_FOLDED = 1 << 12       # FEW of host/reduction.py; beyond, NumPy's loops cost no more
    MOST_ROWS = 256             # 2 * BLOCK of host/reduction.py, where longer columns are cut


cdef int host_folded(int op, int device, uint64_t stream, int compute_dtype, const Operand* out,
                     const Operand* input, uint32_t axes_mask) except -1:
    """Queue a reduction of few elements in plain layouts; return 0 for any other call."""
    cdef HostFold fold
    cdef HostFold* record
    cdef ReductionLayout layout
    cdef int wanted = input.dtype
    cdef int done = 0
    if input.dtype == DT_FLOAT32:
        fold.run = fold_float
    elif input.dtype == DT_FLOAT64:
        fold.run = fold_double
    elif input.dtype == DT_INT64:
        fold.run = fold_int64
    elif input.dtype == DT_INT32:
        fold.run = fold_int32
    elif input.dtype == DT_UINT64:
        fold.run = fold_uint64
    elif input.dtype == DT_UINT32:
        fold.run = fold_uint32
    elif input.dtype == DT_BOOL:
        fold.run = fold_bool
    else:
        return 0
    if op == RED_ARGMAX or op == RED_ARGMIN:
        wanted = DT_INT64
    elif op == RED_ANY or op == RED_ALL:
        wanted = DT_BOOL
    elif op >= RED_MEAN or op <= RED_PROD:
        if input.dtype != DT_FLOAT32 and input.dtype != DT_FLOAT64:
            if op >= RED_MEAN:
                return 0
            wanted = DT_UINT64 if dtype_kind(input.dtype) == KIND_UINT else DT_INT64
    if out.dtype != wanted or compute_dtype != (wanted if op <= RED_PROD else input.dtype):
        return 0
    reduction_layout(&layout, out, input, axes_mask, True)
    if layout.kept == 1 and layout.reduced == 1:
        layout.reduced_ndim, layout.reduced_axes[0].stride = 1, 1
    if (layout.kept * layout.reduced > MOST_FOLDED or layout.reduced_ndim != 1
            or layout.kept_ndim > 1 or layout.kept == 0):
        return 0
    fold.operation = op
    fold.is_column = False
    fold.kept, fold.kept_stride = layout.kept, 0
    fold.reduced, fold.stride = layout.reduced, layout.reduced_axes[0].stride
    fold.input, fold.out = <const void*>input.ptr, <void*>out.ptr
    if layout.kept_ndim == 1:
        fold.kept_stride = layout.kept_axes[0].in_stride
        if layout.kept_axes[0].out_stride != 1:
            return 0
    if fold.stride != 1 and layout.kept_ndim == 0:
        if fold.stride < 1:
            return 0
    elif fold.stride != 1:
        if fold.kept_stride != 1 or fold.stride < 1 or fold.reduced >= MOST_ROWS:
            return 0
        fold.is_column = True
    elif layout.kept_ndim == 1 and fold.kept_stride < 2:
        return 0
    record = <HostFold*> malloc(sizeof(HostFold))
    if record == NULL:
        raise MemoryError("no memory for a queued call")
    record[0] = fold
    try:
        done = host_work(device, stream, run_host_fold, record)
    finally:
        if not done:
            free(record)
    return done


cdef int host_reduce(int op, int device, uint64_t stream, int compute_dtype,
                     Operand* out, Operand* input, uint32_t axes_mask) except -1 with gil:
    cdef int axis
    if host_folded(op, device, stream, compute_dtype, out, input, axes_mask):
        return 0
    axes = tuple([axis for axis in range(input.ndim) if (axes_mask >> axis) & 1])
    return host_call(device, stream, REDUCE_CALL,
                     (REDUCTION_NAMES[op], DTYPE_NAMES[compute_dtype], axes,
                      call_argument(device, out), call_argument(device, input)))
