# The axes of a reduction in their simplest form (see __init__.pxd).

cdef inline int64_t magnitude(int64_t x) noexcept nogil:
    return -x if x < 0 else x


cdef void keep_axis(ReductionLayout* layout, int64_t size, int64_t in_stride,
                    int64_t out_stride) noexcept nogil:
    # Inserts by the input's stride; axes come innermost first, so a C array is sorted already.
    cdef int position = layout.kept_ndim
    cdef KeptAxis axis
    axis.size = size
    axis.in_stride = in_stride
    axis.out_stride = out_stride
    while (position > 0 and in_stride != 0 and
           magnitude(layout.kept_axes[position - 1].in_stride) > magnitude(in_stride)):
        layout.kept_axes[position] = layout.kept_axes[position - 1]
        position -= 1
    layout.kept_axes[position] = axis
    layout.kept_ndim += 1


cdef void reduce_axis(ReductionLayout* layout, int64_t size, int64_t stride,
                      bint is_ordered) noexcept nogil:
    cdef int position = layout.reduced_ndim
    cdef ReducedAxis axis
    axis.size = size
    axis.stride = stride
    while (not is_ordered and position > 0 and
           magnitude(layout.reduced_axes[position - 1].stride) > magnitude(stride)):
        layout.reduced_axes[position] = layout.reduced_axes[position - 1]
        position -= 1
    layout.reduced_axes[position] = axis
    layout.reduced_ndim += 1


cdef void merge_kept(ReductionLayout* layout) noexcept nogil:
    cdef int axis, ndim = 0
    cdef KeptAxis* inner
    cdef KeptAxis* outer
    for axis in range(layout.kept_ndim):
        outer = &layout.kept_axes[axis]
        if ndim > 0:
            inner = &layout.kept_axes[ndim - 1]
            if (outer.in_stride == inner.in_stride * inner.size and
                    outer.out_stride == inner.out_stride * inner.size):
                inner.size *= outer.size
                continue
        layout.kept_axes[ndim] = outer[0]
        ndim += 1
    layout.kept_ndim = ndim


cdef void merge_reduced(ReductionLayout* layout) noexcept nogil:
    cdef int axis, ndim = 0
    cdef ReducedAxis* inner
    cdef ReducedAxis* outer
    for axis in range(layout.reduced_ndim):
        outer = &layout.reduced_axes[axis]
        if ndim > 0:
            inner = &layout.reduced_axes[ndim - 1]
            if outer.stride == inner.stride * inner.size:
                inner.size *= outer.size
                continue
        layout.reduced_axes[ndim] = outer[0]
        ndim += 1
    layout.reduced_ndim = ndim


# `is_ordered` keeps the reduced axes in C order, so that an index into them is defined.
cdef void reduction_layout(ReductionLayout* layout, const Operand* out, const Operand* input,
                           uint32_t axes_mask, bint is_ordered) noexcept nogil:
    cdef int axis, kept = out.ndim
    layout.kept_ndim = 0
    layout.reduced_ndim = 0
    layout.kept = 1
    layout.reduced = 1
    for axis in range(input.ndim - 1, -1, -1):
        if (axes_mask >> axis) & 1:
            layout.reduced *= input.shape[axis]
            if input.shape[axis] != 1:
                reduce_axis(layout, input.shape[axis], input.strides[axis], is_ordered)
            continue
        kept -= 1
        layout.kept *= input.shape[axis]
        if input.shape[axis] != 1:
            keep_axis(layout, input.shape[axis], input.strides[axis], out.strides[kept])
    merge_kept(layout)
    merge_reduced(layout)


# Whether threads should run along the kept axes, because the input's smallest stride is there.
cdef bint is_column(const ReductionLayout* layout) noexcept nogil:
    if layout.kept_ndim == 0 or layout.reduced_ndim == 0:
        return False
    return (magnitude(layout.kept_axes[0].in_stride)
            < magnitude(layout.reduced_axes[0].stride))


# The greatest number of elements, at most `largest`, that one aligned load can take along the
# innermost kept (`column`) or reduced axis.
cdef int load_width(const ReductionLayout* layout, const Operand* input, bint column, int itemsize,
                    int largest) noexcept nogil:
    cdef int axis, width = 16 // itemsize
    cdef int64_t together = 0
    if width > largest:
        width = largest
    for axis in range(layout.kept_ndim):
        if axis > 0 or not column:
            together |= layout.kept_axes[axis].in_stride
    for axis in range(layout.reduced_ndim):
        if axis > 0 or column:
            together |= layout.reduced_axes[axis].stride
    if column:
        if layout.kept_axes[0].in_stride != 1:
            return 1
        together |= layout.kept_axes[0].size
    else:
        if layout.reduced_ndim == 0 or layout.reduced_axes[0].stride != 1:
            return 1
        # A single reduced axis may have a tail, whose elements the row kernel reads one by one.
        if layout.reduced_ndim > 1:
            together |= layout.reduced_axes[0].size
    while width > 1 and (together % width != 0 or input.ptr % <uint64_t>(width * itemsize) != 0):
        width //= 2
    return width
