"""Depthwise convolution by boxes of tensor maps (depthwise_boxes.cuh): many results, Hopper.

A phantom GPU has no driver that encodes maps: convolutions of programs, as those with an addend or
a stride, are for the other kernel.
"""

cdef enum:
    HOPPER = 90
    BOX_EXTENT = 256            # along an axis: a limit of maps
    BOX_ALIGNMENT = 128         # of a box in shared memory
    MOST_IMAGES = 65535         # of a launch: the limit of a grid's second dimension
    LEAST_RESULTS = 400         # of a multiprocessor, in vectors of 4, from which boxes are faster

cdef extern from "gputensor/_kernels/faces/box_choice.h" namespace "gputensor" nogil:
    enum:
        BOX_VECTOR
        BOX_NBYTES

    cdef struct BoxProblem:
        int64_t channels
        int64_t images
        int64_t[2] out
        int64_t[2] kernel
        int64_t[2] halo
        int64_t multiprocessors

    cdef struct BoxChoice:
        int64_t lanes
        int64_t pixels
        int64_t rows
        int64_t across
        int64_t down
        int64_t blocks

    const BoxChoice& boxes_for(const BoxProblem& problem)
    int64_t parts(int64_t extent, int64_t part)
    int64_t even_part(int64_t extent, int64_t most)

cdef extern from "gputensor/_kernels/cuda/depthwise/depthwise_boxes.h" namespace "gputensor" nogil:
    cdef struct TensorMap:
        uint64_t[16] words

    cdef struct DepthwiseBoxParameters:
        TensorMap x
        TensorMap out
        WindowParameters common
        int32_t line
        int32_t out_line
        int32_t nbytes
        int32_t results

cdef struct BoxesForm:          # a variant of depthwise_boxes.cuh, and the tile of its blocks
    int dtype
    int activation
    int has_bias
    int[2] kernel
    int[2] dilation
    BoxChoice tile

cdef KernelTable depthwise_boxes_kernels


cdef bint boxes_fit(const WindowParameters* p, const WindowFold* given,
                    const DeviceFacts* facts) noexcept nogil:
    if facts.capability != HOPPER or facts.is_phantom or dtype_itemsize(given.x.dtype) != 2:
        return False
    if p.axes[1].stride != 1 or p.axes[2].stride != 1 or given.addend != NULL:
        return False
    return given.x.shape[0] <= MOST_IMAGES and has_tensor_maps()


cdef object boxes_program(const void* variant):
    cdef const BoxesForm* form = <const BoxesForm*>variant
    return programs.depthwise_boxes(
        form.dtype, form.activation, lanes=form.tile.lanes, tile=(form.tile.pixels, form.tile.rows),
        has_bias=bool(form.has_bias), kernel=(form.kernel[0], form.kernel[1]),
        dilation=(form.dilation[0], form.dilation[1]))


cdef int64_t box_extent(const WindowAxis* axis, int64_t results) noexcept nogil:
    return results + (axis.kernel - 1) * <int64_t>axis.dilation


cdef BoxChoice choose_boxes(const WindowParameters* p, int64_t batch,
                            int64_t multiprocessors) noexcept nogil:
    cdef BoxProblem problem
    cdef int axis
    problem.channels, problem.images, problem.multiprocessors = p.channels, batch, multiprocessors
    for axis in range(2):
        problem.out[axis] = p.axes[1 + axis].out
        problem.kernel[axis] = p.axes[1 + axis].kernel
        problem.halo[axis] = box_extent(&p.axes[1 + axis], 0)
    return boxes_for(problem)


cdef uint64_t boxes_key(BoxesForm* form, const WindowParameters* p) noexcept nogil:
    cdef int axis
    cdef uint64_t key = form.dtype << 3 | form.activation
    key = ((key << 6 | form.tile.lanes) << 3 | form.tile.pixels) << 3 | form.tile.rows
    key = key << 1 | form.has_bias
    for axis in range(2):
        form.kernel[axis] = p.axes[1 + axis].kernel
        form.dilation[axis] = p.axes[1 + axis].dilation if form.kernel[axis] > 1 else 1
        key = (key << 5 | form.kernel[axis]) << 5 | form.dilation[axis]
    return key


# Encodes the map of images whose boxes are `width` by `height`. Returns False beyond the limits.
cdef bint map_images(uint64_t* words, const WindowOperand* images, const Operand* given, int lanes,
                     int64_t width, int64_t height) noexcept nogil:
    cdef MappedTensor tensor
    cdef int axis, place
    if width > BOX_EXTENT or height > BOX_EXTENT:
        return False
    memset(&tensor, 0, sizeof(tensor))
    tensor.ptr, tensor.is_bfloat, tensor.is_plain = images.ptr, given.dtype == DT_BFLOAT16, True
    tensor.axes = 4
    tensor.extents[0], tensor.extents[3] = given.shape[1], given.shape[0]
    tensor.strides[3] = images.batch
    tensor.box[0], tensor.box[1] = <uint32_t>(lanes * BOX_VECTOR), <uint32_t>width
    tensor.box[2], tensor.box[3] = <uint32_t>height, 1
    for axis in range(1, 3):
        place = given.ndim - axis
        tensor.extents[axis] = given.shape[place] if place > 1 else 1
        tensor.strides[axis] = images.axes[3 - axis]
    return map_tiles(words, &tensor)


# Fills in all that depends on the tile. Returns the bytes of shared memory of a block; 0 where they
# are too many, or x or the result is beyond the limits of maps.
cdef int64_t fill_boxes(DepthwiseBoxParameters* m, const BoxChoice* tile,
                        const WindowFold* given) noexcept nogil:
    cdef const WindowParameters* p = &m.common
    cdef int64_t column = tile.lanes * BOX_VECTOR
    cdef int64_t out_width = tile.across * tile.pixels, out_height = tile.down * tile.rows
    cdef int64_t width = box_extent(&p.axes[2], out_width)
    cdef int64_t height = box_extent(&p.axes[1], out_height)
    cdef int64_t nbytes = 2 * column * width * height
    cdef int64_t results = parts(nbytes, BOX_ALIGNMENT) * BOX_ALIGNMENT
    cdef int64_t whole = results + 2 * column * out_width * out_height
    if whole > BOX_NBYTES:
        return 0
    m.line, m.out_line = <int32_t>(column * width), <int32_t>(column * out_width)
    m.nbytes, m.results = <int32_t>nbytes, <int32_t>results
    if not map_images(<uint64_t*>m.x.words, &p.x, given.x, tile.lanes, width, height):
        return 0
    return whole if map_images(<uint64_t*>m.out.words, &p.out, given.out, tile.lanes, out_width,
                               out_height) else 0


cdef bint boxes_launch(int device, uint64_t stream, const WindowParameters* p,
                       const WindowFold* given) except -1:
    """Queue a convolution that fits. Returns False where it has to go elsewhere."""
    cdef DepthwiseBoxParameters m
    cdef BoxesForm form
    cdef Launch launch
    cdef Layout axes
    cdef int64_t shared_nbytes, batch = given.x.shape[0]
    cdef uint64_t key
    memset(&m, 0, sizeof(m))
    m.common = p[0]
    m.common.channels = <int32_t>(given.out.shape[1] // BOX_VECTOR)
    form.dtype, form.activation, form.has_bias = given.x.dtype, given.activation, given.bias != NULL
    form.tile = choose_boxes(&m.common, batch, max(1, device_facts(device).multiprocessors))
    if not form.tile.blocks:
        return False
    key = boxes_key(&form, p)
    memset(&axes, 0, sizeof(axes))
    axes.ndim = 2
    axes.shape[0] = parts(m.common.channels, form.tile.lanes)
    axes.shape[1] = parts(p.axes[2].out, form.tile.across * form.tile.pixels)
    layout_axes(&axes, &m.common.chunks)
    shared_nbytes = fill_boxes(&m, &form.tile, given)
    if not shared_nbytes or form.tile.blocks > 0x7fffffff:
        return False
    launch_init(&launch, device, stream, <uint32_t>form.tile.blocks, <uint32_t>form.tile.lanes, &m,
                sizeof(m))
    launch.grid[1] = <uint32_t>batch
    launch.block[1], launch.block[2] = <uint32_t>form.tile.across, <uint32_t>form.tile.down
    launch.shared_nbytes, launch.most_shared_nbytes = <uint32_t>shared_nbytes, BOX_NBYTES
    launch_kernel(kernel_of(&depthwise_boxes_kernels, key, boxes_program, &form), &launch)
    return True
