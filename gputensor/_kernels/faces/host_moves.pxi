# Copies and gathers of few elements on a host device, without NumPy.

cdef extern from "gputensor/_kernels/faces/host_moves.h" namespace "gputensor" nogil:
    struct HostCopy:
        int ndim, itemsize
        int64_t[16] shape
        int64_t[16] out_steps
        int64_t[16] in_steps
        void* out
        const void* input
        uint64_t number

    struct HostGather:
        int itemsize, device, first_axis, count, ndim
        int64_t[16] shape
        const int64_t* index[4]
        int64_t[4][16] index_steps
        int64_t[4] extents
        int64_t[4] steps
        int64_t outer, inner, outer_runs
        const void* source
        void* out
        int wrong_index
        int64_t wrong

    enum:
        GATHER_INDICES

    struct HostRange:
        int is_float, itemsize
        int64_t count, out_step
        void* out
        double start, step
        uint64_t whole_start, whole_step

    void run_host_copy(void* copy) noexcept
    void run_host_range(void* range) noexcept
    bint run_gather(HostGather& gather) noexcept

cdef enum:
    MOST_MOVED = 1 << 15        # elements; beyond, NumPy's loops cost no more


cdef int host_copied(int device, uint64_t stream, const Operand* out,
                     const Operand* value) except -1:
    """Queue a copy without a cast, or a fill with a number; return 0 for any other call."""
    cdef Layout layout
    cdef HostCopy* copy
    cdef LoopNumber number
    cdef int axis, kind = loop_type(out.dtype), done = 0
    if kind < 0 if value.is_scalar else value.dtype != out.dtype:
        return 0
    layout_merge(&layout, out, 1, value)
    if layout_size(&layout) > MOST_MOVED:
        return 0
    copy = <HostCopy*> malloc(sizeof(HostCopy))
    if copy == NULL:
        raise MemoryError("no memory for a queued call")
    copy.ndim, copy.itemsize = layout.ndim, dtype_itemsize(out.dtype)
    for axis in range(layout.ndim):
        copy.shape[axis] = layout.shape[axis]
        copy.out_steps[axis] = layout.strides[OUT][axis]
        copy.in_steps[axis] = layout.strides[0][axis]
    copy.out, copy.input = <void*> layout.ptrs[OUT], <const void*> layout.ptrs[0]
    if value.is_scalar:
        set_number(&number, kind, value)
        memcpy(&copy.number, &number, sizeof(number))
        copy.input = &copy.number
    try:
        done = host_work(device, stream, run_host_copy, copy)
    finally:
        if not done:
            free(copy)
    return done


cdef int host_ranged(int device, uint64_t stream, const Operand* out,
                     const HostRange* numbers) except -1:
    """Queue a progression of integers or of floats of 32 bits or more; return 0 for any other."""
    cdef HostRange* queued
    cdef int kind = dtype_kind(out.dtype), itemsize = dtype_itemsize(out.dtype), done = 0
    if kind == KIND_BOOL or kind > KIND_FLOAT or kind == KIND_FLOAT and itemsize < 4:
        return 0
    queued = <HostRange*> malloc(sizeof(HostRange))
    if queued == NULL:
        raise MemoryError("no memory for a queued call")
    queued[0] = numbers[0]
    queued.is_float, queued.itemsize = kind == KIND_FLOAT, itemsize
    queued.count, queued.out_step, queued.out = out.shape[0], out.strides[0], <void*> out.ptr
    try:
        done = host_work(device, stream, run_host_range, queued)
    finally:
        if not done:
            free(queued)
    return done


cdef void run_host_gather(void* argument) noexcept nogil:
    cdef HostGather* gather = <HostGather*> argument
    if not run_gather(gather[0]):
        with gil:
            keep_error(gather.device, IndexError(
                f"index {gather.wrong} is out of bounds for axis "
                f"{gather.first_axis + gather.wrong_index} with size "
                f"{gather.extents[gather.wrong_index]}"))
    free(gather)


cdef int host_gathered(int device, uint64_t stream, const Operand* out, const Operand* source,
                       int first_axis, int count, const Operand* indices) except -1:
    """Queue a gather of dense runs by int64 indices; return 0 for any other call."""
    cdef HostGather* gather
    cdef int k, axis, done = 0
    if count > GATHER_INDICES or not is_gathered(source, first_axis, count) or not is_dense(out):
        return 0
    for k in range(count):
        if indices[k].dtype != DT_INT64 or indices[k].is_scalar:
            return 0
    gather = <HostGather*> malloc(sizeof(HostGather))
    if gather == NULL:
        raise MemoryError("no memory for a queued call")
    gather.itemsize, gather.device = dtype_itemsize(out.dtype), device
    gather.first_axis, gather.count = first_axis, count
    set_index_axes(gather, indices)
    gather.outer = gather.inner = gather.outer_runs = 1
    for axis in range(source.ndim - 1, -1, -1):
        if axis >= first_axis + count:
            gather.inner *= source.shape[axis]
        elif axis >= first_axis:
            gather.extents[axis - first_axis] = source.shape[axis]
            gather.steps[axis - first_axis] = source.strides[axis] // max(gather.inner, 1)
            gather.outer_runs *= source.shape[axis]
        else:
            gather.outer *= source.shape[axis]
    gather.source, gather.out = <const void*> source.ptr, <void*> out.ptr
    try:
        done = host_work(device, stream, run_host_gather, gather)
    finally:
        if not done:
            free(gather)
    if done:
        raise_pending(device)
    return done


cdef void set_index_axes(HostGather* gather, const Operand* indices) noexcept:
    """Set the axes of the indices; neighbours that are one axis in all of them are merged."""
    cdef int k, axis, last
    cdef bint is_joined
    gather.ndim = 0
    for axis in range(indices[0].ndim):
        if indices[0].shape[axis] == 1:
            continue
        last = gather.ndim - 1
        is_joined = last >= 0
        for k in range(gather.count):
            is_joined = is_joined and gather.index_steps[k][last] == (
                indices[k].strides[axis] * indices[k].shape[axis])
        if not is_joined:
            last = gather.ndim
            gather.ndim += 1
            gather.shape[last] = 1
        gather.shape[last] *= indices[0].shape[axis]
        for k in range(gather.count):
            gather.index_steps[k][last] = indices[k].strides[axis]
    if gather.ndim == 0:
        gather.ndim, gather.shape[0] = 1, 1
        for k in range(gather.count):
            gather.index_steps[k][0] = 1
    for k in range(gather.count):
        gather.index[k] = <const int64_t*> indices[k].ptr


cdef bint is_gathered(const Operand* source, int first_axis, int count) noexcept nogil:
    """Whether the source is dense, or the first axes are indexed and what follows them is dense."""
    cdef int axis
    cdef int64_t inner = 1
    if is_dense(source):
        return True
    for axis in range(source.ndim - 1, first_axis + count - 1, -1):
        if source.shape[axis] != 1 and source.strides[axis] != inner:
            return False
        inner *= source.shape[axis]
    if inner == 0:
        return False
    for axis in range(first_axis + count):
        if axis < first_axis and source.shape[axis] != 1 or source.strides[axis] % inner != 0:
            return False
    return True


cdef bint is_dense(const Operand* operand) noexcept nogil:
    """Whether the elements follow each other in row-major order."""
    cdef int axis
    cdef int64_t step = 1
    for axis in range(operand.ndim - 1, -1, -1):
        if operand.shape[axis] != 1 and operand.strides[axis] != step:
            return False
        step *= operand.shape[axis]
    return True
