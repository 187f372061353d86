"""Depthwise convolution on a device, if channels are neighbours in memory.

depthwise_boxes.cuh has many results of 16-bit floats where the GPU copies by tensor maps,
depthwise_tiles.cuh all others: blocks of tiles, and a choice of tiles for a thread.
"""

cdef enum:
    MOST_WEIGHTS = 9            # weights of a channel in the registers of a thread
    DEPTHWISE_VECTOR = 4        # channels of a thread
    # At most what programs.depthwise_tiles defines as MOST_LANES and MOST_THREADS:
    MOST_LANES = 16             # threads of a block that have different channels
    DEPTHWISE_THREADS = 128     # of a block
    MOST_BELOW = 64             # threads along a block's last dimension: a limit of CUDA
    MOST_STEP = 1 << 26         # stride to the next pixel: 16 of them fit 32 bits

cdef struct TilesForm:          # a variant of depthwise_tiles.cuh
    int dtype
    int activation
    int pixels                  # results of a thread along the width
    int rows                    # and along the height
    int depth                   # lines of x in registers at a time
    int has_bias
    int has_addend
    int[2] kernel
    int[2] stride
    int[2] dilation

cdef KernelTable depthwise_tiles_kernels


# Whether these kernels apply to operands whose channels are neighbours: there are few weights,
# which fit registers, and they lie in their own order, one channel after the other.
cdef bint depthwise_fits(const WindowParameters* p, const WindowFold* given) noexcept nogil:
    cdef int itemsize = dtype_itemsize(given.x.dtype), axis
    cdef int64_t taps = p.axes[1].kernel * <int64_t>p.axes[2].kernel
    if given.pooling != POOL_WEIGHTED:
        return False
    if itemsize == 8 or taps > MOST_WEIGHTS or p.axes[0].kernel != 1 or p.axes[0].out != 1:
        return False
    if p.axes[0].x != 1 or p.axes[0].padding != 0 or p.weight.ptr % <uint64_t>(
            DEPTHWISE_VECTOR * itemsize):
        return False
    for axis in range(1, 3):
        if (3 * p.axes[axis].stride
                + (p.axes[axis].kernel - 1) * <int64_t>p.axes[axis].dilation >= MOST_COLUMNS):
            return False
    if not (-MOST_STEP < p.x.axes[2] < MOST_STEP and -MOST_STEP < p.out.axes[2] < MOST_STEP):
        return False
    return (p.weight.channel == taps
            and (p.axes[2].kernel == 1 or p.weight.axes[2] == 1)
            and (p.axes[1].kernel == 1 or p.weight.axes[1] == p.axes[2].kernel))


cdef object tiles_program(const void* variant):
    cdef const TilesForm* form = <const TilesForm*>variant
    return programs.depthwise_tiles(
        form.dtype, form.activation, tile=(form.pixels, form.rows, form.depth),
        has=(bool(form.has_bias), bool(form.has_addend)),
        kernel=(form.kernel[0], form.kernel[1]), stride=(form.stride[0], form.stride[1]),
        dilation=(form.dilation[0], form.dilation[1]))


cdef void set_tile(TilesForm* form, int pixels, int rows, int depth) noexcept nogil:
    form.pixels, form.rows, form.depth = pixels, rows, depth


# Larger tiles share more reads and have fewer instructions for a result, if there are enough of
# them: `each` is the number of results of a multiprocessor, in vectors. The limits are measured
# with kernels of 3 x 3 (H200, 116 shapes, most of them random).
cdef void choose_tile(TilesForm* form, const WindowParameters* p, int64_t each) noexcept nogil:
    cdef int64_t height = p.axes[1].out
    cdef bint is_wide = dtype_itemsize(form.dtype) == 4
    if p.axes[2].stride == 1 and is_wide:
        if each < 200:
            set_tile(form, 1, 2, 5)
        elif each < 1000:
            set_tile(form, 1, 4, 7)
        else:
            set_tile(form, 4, 4 if each < 1800 else 7, 4)
    elif p.axes[2].stride == 1:
        if each < 650:
            set_tile(form, 1, 2, 5)
        elif each < 1000:
            set_tile(form, 2, 4, 7)
        elif each < 14000:
            set_tile(form, 2, 7, 10)
        else:
            set_tile(form, 4, 7, 2)
    elif each < 150:
        set_tile(form, 1, 1, 4)
    elif each < 500 or (is_wide and each >= 5000):
        set_tile(form, 1, 4, 10)
    elif each < 6000 or (each < 9000 and parts(height, 14) * 14 > parts(height, 7) * 7):
        set_tile(form, 1, 7, 6)
    elif each < 9000:
        set_tile(form, 1, 14, 3)
    else:
        set_tile(form, 2, 2, 6)
    if form.rows == 7 and parts(height, 4) * 4 < parts(height, 7) * 7:
        form.rows = 4
    while form.rows >= 2 * height:
        form.rows = (form.rows + 1) // 2


cdef uint64_t tiles_key(TilesForm* form, const WindowParameters* p) noexcept nogil:
    cdef int axis
    cdef uint64_t key = form.dtype << 3 | form.activation
    key = ((key << 3 | form.pixels) << 4 | form.rows) << 4 | form.depth
    key = (key << 1 | form.has_bias) << 1 | form.has_addend
    for axis in range(2):
        form.kernel[axis] = p.axes[1 + axis].kernel
        form.stride[axis] = p.axes[1 + axis].stride
        form.dilation[axis] = p.axes[1 + axis].dilation if form.kernel[axis] > 1 else 1
        key = ((key << 5 | form.kernel[axis]) << 5 | form.stride[axis]) << 5 | form.dilation[axis]
    return key


cdef int depthwise_launch(int device, uint64_t stream, WindowParameters* p,
                          const WindowFold* given) except -1:
    cdef TilesForm form
    cdef Launch launch
    cdef Layout axes
    cdef void* kernel
    cdef int itemsize = dtype_itemsize(given.x.dtype)
    cdef int64_t batch = given.x.shape[0], each, strips, groups, blocks, first
    form.dtype, form.activation = given.x.dtype, given.activation
    form.has_bias, form.has_addend = given.bias != NULL, given.addend != NULL
    p.channels = <int32_t>(given.out.shape[1] // DEPTHWISE_VECTOR)
    each = batch * p.channels * p.axes[1].out * p.axes[2].out
    each //= max(1, device_facts(device).multiprocessors)
    if each >= LEAST_RESULTS and boxes_fit(p, given, device_facts(device)) and (
            boxes_launch(device, stream, p, given)):
        return 0
    choose_tile(&form, p, each)
    p.blocks = <int32_t>parts(p.axes[2].out, form.pixels)
    strips = parts(p.axes[1].out, form.rows)
    launch_init(&launch, device, stream, 1, 1, p, sizeof(p[0]))
    launch.block[0] = <uint32_t>even_part(p.channels, MOST_LANES)
    groups = DEPTHWISE_THREADS // launch.block[0]
    launch.block[1] = <uint32_t>even_part(p.blocks, groups)
    launch.block[2] = <uint32_t>even_part(strips, min(groups // launch.block[1], MOST_BELOW))
    memset(&axes, 0, sizeof(axes))
    axes.ndim = 2
    axes.shape[0] = parts(p.channels, launch.block[0])
    axes.shape[1] = parts(p.blocks, launch.block[1])
    layout_axes(&axes, &p.chunks)
    blocks = axes.shape[0] * axes.shape[1] * parts(strips, launch.block[2])
    if blocks > 0x7fffffff:
        raise ValueError(f"window: got an image of {blocks} blocks; expected fewer than 2**31")
    launch.grid[0] = <uint32_t>blocks
    kernel = kernel_of(&depthwise_tiles_kernels, tiles_key(&form, p), tiles_program, &form)
    for first in range(0, batch, MOST_IMAGES):
        launch.grid[1] = <uint32_t>min(batch - first, <int64_t>MOST_IMAGES)
        launch_kernel(kernel, &launch)
        p.x.ptr += <uint64_t>(p.x.batch * MOST_IMAGES * itemsize)
        p.out.ptr += <uint64_t>(p.out.batch * MOST_IMAGES * itemsize)
        if p.addend.ptr:
            p.addend.ptr += <uint64_t>(p.addend.batch * MOST_IMAGES * itemsize)
    return 0
