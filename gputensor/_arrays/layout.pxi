# The common index space of a kernel's operands, in its simplest form (see __init__.pxd).

cdef inline int64_t magnitude(int64_t x) noexcept nogil:
    return -x if x < 0 else x


cdef inline bint goes_inside(const Layout* layout, int a, int b) noexcept nogil:
    # Whether axis a belongs inside axis b: by the output's strides, then by the inputs'.
    cdef int k
    cdef int64_t x, y
    for k in range(OUT, -1, -1):
        x = magnitude(layout.strides[k][a])
        y = magnitude(layout.strides[k][b])
        if x != y and x != 0 and y != 0:
            return x < y
    return False


cdef inline void swap_axes(Layout* layout, int a, int b) noexcept nogil:
    cdef int k
    layout.shape[a], layout.shape[b] = layout.shape[b], layout.shape[a]
    for k in range(OPERANDS):
        layout.strides[k][a], layout.strides[k][b] = layout.strides[k][b], layout.strides[k][a]


cdef int64_t[16] no_steps       # of an absent or scalar operand: zeros


cdef void layout_merge(Layout* layout, const Operand* out, int count,
                       const Operand* inputs) noexcept nogil:
    cdef const Operand* operand
    cdef const int64_t* steps[4]
    cdef int k, axis, inner, ndim = 0
    cdef bint is_joined
    for k in range(OPERANDS):
        operand = out if k == OUT else &inputs[k] if k < count else NULL
        if operand == NULL or operand.is_scalar:
            layout.ptrs[k] = 0
            layout.itemsizes[k] = 0
            steps[k] = &no_steps[0]
        else:
            layout.ptrs[k] = operand.ptr
            layout.itemsizes[k] = dtype_itemsize(operand.dtype)
            steps[k] = &operand.strides[0]
    for axis in range(out.ndim - 1, -1, -1):
        if out.shape[axis] == 1:
            continue
        layout.shape[ndim] = out.shape[axis]
        for k in range(OPERANDS):
            layout.strides[k][ndim] = steps[k][axis]
        if layout.strides[OUT][ndim] < 0:
            for k in range(OPERANDS):
                layout.ptrs[k] += <uint64_t>((layout.shape[ndim] - 1) * layout.strides[k][ndim]
                                             * layout.itemsizes[k])
                layout.strides[k][ndim] = -layout.strides[k][ndim]
        # Insertion sort: an array in C order is already sorted.
        axis_sort(layout, ndim)
        ndim += 1
    layout.ndim = 0
    for axis in range(ndim):
        if layout.ndim > 0:
            inner = layout.ndim - 1
            is_joined = True
            for k in range(OPERANDS):
                if layout.strides[k][axis] != layout.strides[k][inner] * layout.shape[inner]:
                    is_joined = False
            if is_joined:
                layout.shape[inner] *= layout.shape[axis]
                continue
        if layout.ndim != axis:
            swap_axes(layout, layout.ndim, axis)
        layout.ndim += 1


cdef inline void axis_sort(Layout* layout, int last) noexcept nogil:
    cdef int position = last
    while position > 0 and goes_inside(layout, position, position - 1):
        swap_axes(layout, position, position - 1)
        position -= 1


cdef int64_t layout_size(const Layout* layout) noexcept nogil:
    cdef int axis
    cdef int64_t size = 1
    for axis in range(layout.ndim):
        size *= layout.shape[axis]
    return size


cdef bint layout_is_small(const Layout* layout) noexcept nogil:
    cdef int axis, k
    cdef int64_t reach, limit = 0x7fffffff
    if layout_size(layout) > limit:
        return False
    for k in range(OPERANDS):
        reach = 0
        for axis in range(layout.ndim):
            reach += (layout.shape[axis] - 1) * magnitude(layout.strides[k][axis])
        if reach > limit:
            return False
    return True


cdef void layout_cut(Layout* layout, Layout* rest) noexcept nogil:
    cdef int axis, longest = 0
    cdef int64_t half
    for axis in range(1, layout.ndim):
        if layout.shape[axis] >= layout.shape[longest]:
            longest = axis
    # A multiple of 64 elements keeps the second half aligned for vector loads.
    half = layout.shape[longest] // 2
    if half > 64:
        half = half // 64 * 64
    layout_split(layout, rest, longest, half)


cdef void layout_split(Layout* layout, Layout* rest, int axis, int64_t length) noexcept nogil:
    cdef int k
    rest[0] = layout[0]
    layout.shape[axis] = length
    rest.shape[axis] -= length
    for k in range(OPERANDS):
        rest.ptrs[k] += <uint64_t>(length * layout.strides[k][axis] * layout.itemsizes[k])


cdef void layout_axes(const Layout* layout, Axis* axes) noexcept nogil:
    cdef int axis, k
    cdef uint32_t shift
    cdef uint64_t size
    for axis in range(layout.ndim):
        size = <uint64_t>layout.shape[axis]
        shift = 0
        while (<uint64_t>1 << shift) < size:
            shift += 1
        axes[axis].size = <uint32_t>size
        axes[axis].shift = shift
        axes[axis].magic = <uint32_t>((<uint64_t>1 << 32) * ((<uint64_t>1 << shift) - size)
                                      // size + 1)
        for k in range(OPERANDS):
            axes[axis].strides[k] = <int32_t>layout.strides[k][axis]
