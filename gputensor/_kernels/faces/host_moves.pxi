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
        int itemsize, axis, device
        int64_t outer, extent, inner, count
        const int64_t* index
        const void* source
        void* out

    void run_host_copy(void* copy) noexcept
    int64_t index_outside(const HostGather& gather) noexcept
    void run_gather(const HostGather& gather) noexcept

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


cdef void run_host_gather(void* argument) noexcept nogil:
    cdef HostGather* gather = <HostGather*> argument
    cdef int64_t wrong = index_outside(gather[0])
    if wrong < 0:
        run_gather(gather[0])
    else:
        with gil:
            keep_error(gather.device, IndexError(
                f"index {gather.index[wrong]} is out of bounds for axis {gather.axis} with size "
                f"{gather.extent}"))
    free(gather)


cdef int host_gathered(int device, uint64_t stream, const Operand* out, const Operand* source,
                       int first_axis, const Operand* index) except -1:
    """Queue a gather by one dense index in a dense source; return 0 for any other call."""
    cdef HostGather* gather
    cdef int axis, done = 0
    if (index.dtype != DT_INT64 or index.is_scalar or not is_dense(index) or not is_dense(source)
            or not is_dense(out)):
        return 0
    gather = <HostGather*> malloc(sizeof(HostGather))
    if gather == NULL:
        raise MemoryError("no memory for a queued call")
    gather.itemsize, gather.axis, gather.device = dtype_itemsize(out.dtype), first_axis, device
    gather.outer = gather.inner = gather.count = 1
    gather.extent = source.shape[first_axis]
    for axis in range(index.ndim):
        gather.count *= index.shape[axis]
    for axis in range(source.ndim):
        if axis < first_axis:
            gather.outer *= source.shape[axis]
        elif axis > first_axis:
            gather.inner *= source.shape[axis]
    gather.index = <const int64_t*> index.ptr
    gather.source, gather.out = <const void*> source.ptr, <void*> out.ptr
    try:
        done = host_work(device, stream, run_host_gather, gather)
    finally:
        if not done:
            free(gather)
    if done:
        raise_pending(device)
    return done


cdef bint is_dense(const Operand* operand) noexcept nogil:
    """Whether the elements follow each other in row-major order."""
    cdef int axis
    cdef int64_t step = 1
    for axis in range(operand.ndim - 1, -1, -1):
        if operand.shape[axis] != 1 and operand.strides[axis] != step:
            return False
        step *= operand.shape[axis]
    return True
