# Gather, scatter and progressions on a CUDA device (see index.cuh).
#
# A single index array is used directly. Several are folded, one launch each, into a workspace of
# element offsets, which is freed at once in stream order. Arrays that need 64-bit offsets are cut
# in pieces like those of the element-wise kernels, except along the indexed axes, whose offset is
# always 64-bit.

cdef enum:
    GATHER = 0              # the forms of index.cuh
    SCATTER = 1
    FOLD = 2
    FOLDED_GATHER = 3
    FOLDED_SCATTER = 4
    ARANGE = 7              # a form of its own among the keys
    ARANGE_BLOCK = 256

cdef extern from "gputensor/_kernels/cuda/index.h" namespace "gputensor" nogil:
    enum:
        INDEX_ELEMENTS
        GATHER_UNITS

    cdef struct IndexParameters:
        uint64_t small
        uint64_t whole
        uint64_t index
        uint32_t count
        uint32_t is_first
        uint32_t is_strict
        uint32_t padding
        int64_t axis_size
        int64_t axis_stride
        Axis[16] axes

    cdef struct ArangeParameters:
        uint64_t out
        int64_t size
        int64_t stride
        double start
        double step
        int64_t integer_start
        int64_t integer_step

# Elements of `whole` by index arrays along `count` axes.
cdef struct Selection:
    const Operand* whole
    int first_axis
    int count
    const Operand* indices

cdef KernelTable cuda_index_kernels


cdef int cuda_arange(int device, uint64_t stream, Operand* out, double start, double step,
                     int64_t integer_start, int64_t integer_step) except -1 nogil:
    cdef ArangeParameters parameters
    cdef uint64_t key = out.dtype << 3 | ARANGE
    cdef int64_t blocks = (out.shape[0] + ARANGE_BLOCK - 1) // ARANGE_BLOCK
    cdef Launch launch
    memset(&parameters, 0, sizeof(parameters))
    parameters.out = out.ptr
    parameters.size = out.shape[0]
    parameters.stride = out.strides[0]
    parameters.start = start
    parameters.step = step
    parameters.integer_start = integer_start
    parameters.integer_step = integer_step
    launch_init(&launch, device, stream, <uint32_t>blocks, ARANGE_BLOCK, &parameters,
                sizeof(parameters))
    return launch_kernel(kernel_of(&cuda_index_kernels, key, arange_program, &out.dtype), &launch)


cdef object arange_program(const void* dtype):
    return programs.arange((<const int*>dtype)[0])


cdef int cuda_gather(int device, uint64_t stream, Operand* out, Operand* source_operand,
                     int first_axis, int count, Operand* indices) except -1 nogil:
    cdef Selection selection = Selection(source_operand, first_axis, count, indices)
    return move(GATHER, device, stream, out, &selection)


cdef int cuda_scatter(int device, uint64_t stream, Operand* target, int first_axis, int count,
                      Operand* indices, Operand* values) except -1 nogil:
    cdef Selection selection = Selection(target, first_axis, count, indices)
    return move(SCATTER, device, stream, values, &selection)


cdef int move(int form, int device, uint64_t stream, Operand* small,
              const Selection* selection) except -1 nogil:
    cdef const Operand* whole = selection.whole
    cdef IndexParameters parameters
    cdef Selection by_offset
    cdef Operand folded
    cdef Block* block
    memset(&parameters, 0, sizeof(parameters))
    if selection.count == 1:
        parameters.axis_size = whole.shape[selection.first_axis]
        parameters.axis_stride = whole.strides[selection.first_axis]
        return move_by(form, device, stream, small, selection, &parameters)
    block = fold(device, stream, selection, form == SCATTER, &folded)
    try:
        parameters.axis_size = 0
        parameters.axis_stride = 1
        form = FOLDED_GATHER if form == GATHER else FOLDED_SCATTER
        by_offset = selection[0]
        by_offset.indices = &folded
        return move_by(form, device, stream, small, &by_offset, &parameters)
    finally:
        allocator_free(block)


cdef Block* fold(int device, uint64_t stream, const Selection* selection, bint is_strict,
                 Operand* folded) except NULL nogil:
    # Element offsets of all index arrays together, in C order, in a fresh block.
    cdef const Operand* whole = selection.whole
    cdef const Operand* indices = selection.indices
    cdef IndexParameters parameters
    cdef Layout layout
    cdef status_t status = 0
    cdef Block* block
    cdef int axis, i
    cdef int64_t stride = 1
    cdef bint is_done = False
    memset(&parameters, 0, sizeof(parameters))
    folded[0] = indices[0]
    folded.dtype = DT_INT64
    for axis in range(folded.ndim - 1, -1, -1):
        folded.strides[axis] = stride
        stride *= folded.shape[axis]
    block = allocator_malloc(device, <size_t>(stride * 8), stream, &status)
    if block == NULL:
        raise_for_malloc(device, <size_t>(stride * 8), stream, status)
    folded.ptr = block.ptr
    try:
        for i in range(selection.count):
            parameters.axis_size = whole.shape[selection.first_axis + i]
            parameters.axis_stride = whole.strides[selection.first_axis + i]
            parameters.is_first = i == 0
            parameters.is_strict = is_strict
            # The index array is operand 1, as in move_by; operand 0 is absent.
            merge(&layout, folded, NULL, &indices[i])
            cuda_index_launch(FOLD, device, stream, &layout, 8, indices[i].dtype, &parameters)
        is_done = True
    finally:
        if not is_done:
            allocator_free(block)
    return block


cdef int move_by(int form, int device, uint64_t stream, const Operand* small,
                 const Selection* selection, IndexParameters* parameters) except -1 nogil:
    # Moves by the first index array: it and `whole` are broadcast to the axes of `small`, with
    # stride 0 along axes that they lack.
    cdef const Operand* whole = selection.whole
    cdef const Operand* index = selection.indices
    cdef int first_axis = selection.first_axis
    cdef Layout layout
    cdef Operand wide_whole = small[0]
    cdef Operand wide_index = small[0]
    cdef int axis, ndim = index.ndim
    wide_whole.ptr = whole.ptr
    wide_index.ptr = index.ptr
    wide_index.dtype = index.dtype
    for axis in range(small.ndim):
        wide_index.strides[axis] = 0
        if axis < first_axis:
            wide_whole.strides[axis] = whole.strides[axis]
        elif axis < first_axis + ndim:
            wide_whole.strides[axis] = 0
            wide_index.strides[axis] = index.strides[axis - first_axis]
        else:
            wide_whole.strides[axis] = whole.strides[axis - ndim + selection.count]
    merge(&layout, small, &wide_whole, &wide_index)
    return cuda_index_launch(form, device, stream, &layout, dtype_itemsize(small.dtype),
                             index.dtype, parameters)


cdef void merge(Layout* layout, const Operand* small, const Operand* whole,
                const Operand* index) noexcept nogil:
    # Operand 0 is `whole` (NULL: absent), operand 1 the index array.
    cdef Operand[2] inputs
    if whole == NULL:
        inputs[0].is_scalar = 1
    else:
        inputs[0] = whole[0]
    inputs[1] = index[0]
    layout_merge(layout, small, 2, inputs)


cdef bint in_pairs(const Layout* layout, int itemsize, int64_t axis_stride) noexcept nogil:
    # Whether one index moves whole pairs of neighbouring elements, aligned like elements of twice
    # the size.
    cdef int axis
    cdef int64_t all_strides = axis_stride
    if (layout.ndim == 0 or layout.shape[0] % 2 or layout.strides[OUT][0] != 1
            or layout.strides[0][0] != 1 or layout.strides[1][0] != 0
            or (layout.ptrs[OUT] | layout.ptrs[0]) % (2 * itemsize)):
        return False
    for axis in range(1, layout.ndim):
        all_strides |= layout.strides[OUT][axis] | layout.strides[0][axis]
    return all_strides % 2 == 0


cdef void join_pairs(Layout* layout) noexcept nogil:
    cdef int axis
    layout.shape[0] //= 2
    for axis in range(1, layout.ndim):
        layout.strides[OUT][axis] //= 2
        layout.strides[0][axis] //= 2


cdef int cuda_index_launch(int form, int device, uint64_t stream, Layout* layout, int itemsize,
                           int index_dtype, IndexParameters* parameters) except -1 nogil:
    cdef Layout rest
    cdef int[4] variant
    cdef uint64_t key
    cdef uint32_t threads = INDEX_ELEMENTS
    cdef int64_t axis_stride = parameters.axis_stride
    cdef Launch launch
    if not layout_is_small(layout):
        layout_cut(layout, &rest)
        cuda_index_launch(form, device, stream, layout, itemsize, index_dtype, parameters)
        return cuda_index_launch(form, device, stream, &rest, itemsize, index_dtype, parameters)
    if form == GATHER or form == SCATTER:
        while itemsize < 16 and in_pairs(layout, itemsize, parameters.axis_stride):
            itemsize *= 2
            join_pairs(layout)
            parameters.axis_stride //= 2
    key = ((itemsize << 5 | index_dtype) << 5 | layout.ndim) << 3 | form
    variant[0], variant[1], variant[2], variant[3] = form, itemsize, index_dtype, layout.ndim
    parameters.small = layout.ptrs[OUT]
    parameters.whole = layout.ptrs[0]
    parameters.index = layout.ptrs[1]
    parameters.count = <uint32_t>layout_size(layout)
    layout_axes(layout, parameters.axes)
    if form == GATHER or form == FOLDED_GATHER:
        threads //= GATHER_UNITS
    launch_init(&launch, device, stream,
                (parameters.count + INDEX_ELEMENTS - 1) // INDEX_ELEMENTS, threads, parameters,
                sizeof(IndexParameters))
    launch_kernel(kernel_of(&cuda_index_kernels, key, index_program, variant), &launch)
    parameters.axis_stride = axis_stride
    return 0


cdef object index_program(const void* variant):
    cdef const int* given = <const int*>variant
    return programs.index(given[0], given[1], given[2], given[3])
