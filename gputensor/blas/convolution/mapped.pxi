"""Convolution by tensor maps (mapped.cuh): 16-bit floats, channels last, one or two axes, Hopper.

The copying unit of the device finds the pixels of a tap, also those a stride apart, so every
position of a tile is a result. It reads tensor maps, which the driver encodes. A phantom GPU has
no driver: convolutions of programs, as those with an addend or groups, are for shifted patches.
"""

cdef enum:
    MAPPED_STAGES = 8           # most steps that a block's shared memory holds
    MAPPED_RESERVED = 1 << 10   # bytes of shared memory that the driver takes of each block
    MAPPED_REACH = 255          # places of taps along an axis, in the instruction that copies

# Microseconds, measured on an H200 and fitted to 480 forms of 24 convolutions, of: 64 x 64 sums of
# a chunk; a byte of a step; the shortest step; a tile; 128 of its results; a cluster, and 128
# results of a tile in one. Then how much longer a step takes where two blocks share the device.
cdef double MAPPED_SUM = .0784, MAPPED_BYTE = 8.1e-6, MAPPED_LEAST = .137
cdef double MAPPED_TILE = .98, MAPPED_RESULT = .00486
cdef double MAPPED_CLUSTER = .74, MAPPED_SHARED_RESULT = .0173, MAPPED_TWO = 1.1

cdef KernelTable mapped_kernels


cdef bint mapped_fits(const Convolution* given, int device) except -1:
    cdef const DeviceFacts* facts = device_facts(device)
    cdef int axis, place
    if facts.capability != HOPPER or facts.is_phantom or not dtype_is_half(given.x.dtype):
        return False
    if (facts.shared_nbytes <= SHIFTED_SHARED or given.x.ndim > 4 or given.groups > 1
            or given.addend != NULL or not has_tensor_maps()):
        return False
    if (given.weight.shape[1] < LEAST_CHANNELS or given.weight.shape[0] < LEAST_CHANNELS
            or given.weight.shape[0] % chunk_of(given.x.dtype)):
        return False
    if (given.weight.shape[1] % chunk_of(given.x.dtype) or not is_chunked(given.x, 0)
            or not is_chunked(given.out, 0) or not merges(given.out, 0)):
        return False
    for axis in range(2, given.x.ndim):
        place = 5 - given.x.ndim + axis - 2
        if (given.weight.shape[axis] - 1) * given.dilation[place] > MAPPED_REACH:
            return False
    return True


cdef inline int64_t mapped_nbytes(const MappedForm* form) noexcept nogil:
    """Shared memory of a block (mapped_shared_nbytes of convolution_programs.py)."""
    cdef int64_t rows = form.outputs + form.columns * (2 if form.outputs == 64 else 1)
    return form.stages * (rows * 128 + 16) + MAPPED_STAGED


cdef double mapped_cost(const MappedParameters* m, const MappedForm* form,
                        int multiprocessors) noexcept nogil:
    """Return microseconds on an H200, without the part that is the same for all forms."""
    cdef int64_t across = form.columns * (2 if form.outputs == 64 else 1)
    cdef int64_t tiles = ((m.common.pixels + across - 1) // across
                          * ((m.common.outputs + form.outputs - 1) // form.outputs))
    # Clusters of 4 and 8 leave some multiprocessors idle.
    cdef int64_t room = multiprocessors if form.splits < 4 else multiprocessors * 10 // 11
    cdef int64_t rounds = (tiles * form.splits + room * form.blocks - 1) // max(
        <int64_t>1, room * form.blocks)
    cdef int64_t steps = (m.steps + form.splits - 1) // form.splits
    cdef double results = <double>across * form.outputs / 128
    cdef double sums = MAPPED_SUM * form.outputs * across / 4096 * form.blocks
    cdef double copies = MAPPED_BYTE * 128 * (form.outputs + across) * form.blocks
    cdef double cost
    if form.blocks == 2:
        sums *= MAPPED_TWO
    cost = rounds * (steps * fmax(fmax(sums, copies), MAPPED_LEAST)
                     + MAPPED_TILE + MAPPED_RESULT * results / form.splits)
    return cost + (MAPPED_CLUSTER + MAPPED_SHARED_RESULT * results if form.splits > 1 else 0)


cdef bint choose_mapped(MappedForm* form, const MappedParameters* m, int multiprocessors,
                        int64_t shared_nbytes) noexcept nogil:
    """Choose the form of least cost. Returns False where none fits."""
    cdef MappedForm tried = form[0]
    cdef double cost, least = -1
    tried.outputs = 64 if m.common.outputs <= 64 else 128
    for tried.blocks in range(1, 3):
        for tried.columns in range(32, 257 if tried.blocks == 1 else 129, 16):
            tried.stages, tried.splits = MAPPED_STAGES, 1
            while mapped_nbytes(&tried) + MAPPED_RESERVED > shared_nbytes // tried.blocks:
                tried.stages -= 1
            if tried.stages < 5 - tried.blocks:
                continue
            while (tried.splits <= 8 and tried.columns // 8 % tried.splits == 0
                    and tried.splits <= m.steps):
                cost = mapped_cost(m, &tried, multiprocessors)
                if least < 0 or cost < least:
                    least, form[0] = cost, tried
                if tried.blocks == 2:
                    break           # clusters leave no room for a second block
                tried.splits *= 2
    return least >= 0


cdef bint mapped_plan(MappedForm* form, MappedParameters* m, int multiprocessors,
                      int64_t shared_nbytes) noexcept nogil:
    """Fill the form and all parameters but the maps. Returns False where no form fits."""
    cdef int64_t across, tiles
    cdef int taps = m.common.axes[1].kernel * m.common.axes[2].kernel
    m.steps = taps * ((m.common.channels + 63) // 64)
    if not choose_mapped(form, m, multiprocessors, shared_nbytes):
        return False
    across = form.columns * (2 if form.outputs == 64 else 1)
    m.common.column_tiles = (m.common.outputs + form.outputs - 1) // form.outputs
    m.common.steps = (m.steps + form.splits - 1) // form.splits
    tiles = (m.common.pixels + across - 1) // across * m.common.column_tiles
    m.tiles = <uint32_t>tiles
    return tiles * form.splits <= 0x7fffffff


cdef bint fill_maps(MappedParameters* m, const MappedForm* form,
                    const Convolution* given) noexcept nogil:
    """Encode the maps of x, weights and results. Returns False where the driver does not."""
    cdef const ConvolutionParameters* p = &m.common
    cdef MappedTensor tensor
    cdef int64_t[2] first, counts, steps
    cdef int64_t taps = <int64_t>p.axes[1].kernel * p.axes[2].kernel
    cdef int64_t part = form.columns // form.splits
    cdef int axis, place
    memset(&tensor, 0, sizeof(tensor))
    tensor.is_bfloat, tensor.axes, tensor.ptr = form.dtype == DT_BFLOAT16, 4, p.x.ptr
    tensor.extents[0], tensor.extents[3] = p.channels, given.x.shape[0]
    tensor.strides[3] = p.x.batch
    for axis in range(2):
        place = 2 - axis
        tensor.extents[1 + axis], tensor.strides[1 + axis] = p.axes[place].x, p.x.axes[place]
        first[axis], counts[axis] = -p.axes[place].padding, p.axes[place].out
        steps[axis] = p.axes[place].stride
    if not map_pixels(<uint64_t*>m.x.words, &tensor, first, counts, steps, form.columns):
        return False
    tensor.axes, tensor.ptr = 3, p.weight.ptr
    tensor.extents[1], tensor.strides[1] = taps, p.channels
    tensor.extents[2], tensor.strides[2] = p.outputs, taps * p.channels
    tensor.box[0], tensor.box[1], tensor.box[2] = 64, 1, form.outputs
    if not map_tiles(<uint64_t*>m.weight.words, &tensor):
        return False
    tensor.axes, tensor.ptr = 2, p.out.ptr
    tensor.extents[0], tensor.extents[1] = p.outputs, p.pixels
    tensor.strides[1] = pixel_stride(given.out)
    tensor.box[1] = 32 if part % 32 == 0 else 16 if part % 16 == 0 else 8
    return map_tiles(<uint64_t*>m.out.words, &tensor)


cdef object mapped_program(const void* variant):
    cdef const MappedForm* form = <const MappedForm*>variant
    return convolution_programs.mapped(
        form.dtype, form.activation, (form.outputs, form.columns), stages=form.stages,
        splits=form.splits, blocks=form.blocks)


cdef bint mapped_convolution(int device, uint64_t stream, const ConvolutionParameters* p,
                             const Convolution* given) except -1:
    """Queue a convolution that fits. Returns False where it has to go elsewhere."""
    cdef const DeviceFacts* facts = device_facts(device)
    cdef MappedParameters m
    cdef MappedForm form
    cdef Launch launch
    cdef int64_t blocks
    cdef uint64_t key
    memset(&m, 0, sizeof(m))
    memset(&form, 0, sizeof(form))
    m.common = p[0]
    form.dtype, form.activation = given.x.dtype, given.activation
    if not mapped_plan(&form, &m, max(1, facts.multiprocessors), facts.shared_nbytes):
        return False
    if not fill_maps(&m, &form, given):
        return False
    blocks = <int64_t>m.tiles * form.splits
    if form.splits == 1:
        blocks = min(blocks, <int64_t>max(1, facts.multiprocessors) * form.blocks)
    key = (form.dtype << 3 | form.activation) << 5 | form.columns // 16
    key = ((key << 1 | (form.outputs == 64)) << 4 | form.stages) << 4 | form.splits
    key = key << 2 | form.blocks
    launch_init(&launch, device, stream, <uint32_t>blocks, 288, &m, sizeof(m))
    launch.shared_nbytes = launch.most_shared_nbytes = <uint32_t>mapped_nbytes(&form)
    launch_kernel(kernel_of(&mapped_kernels, key, mapped_program, &form), &launch)
    return True


cdef int MAPPED_STAGED = 4 * 32 * 128
