"""Convolution of few channels (few.cuh): 16-bit floats, one or two axes, a kernel of a few pixels.

A pixel has as many elements in shared memory as make neighbouring results begin a multiple of 16
bytes apart; operands are not copied first.
"""

cdef enum:
    MOST_FEW = 4                # channels
    MOST_FEW_TERMS = 448        # of an output, with those that are zeros
    FEW_FRAGMENTS = 32          # of 16 results, of a tile
    MORE_FRAGMENTS = 56         # the same where it has 32 outputs
    FEW_SHARED = 100 << 10      # of a block at most: two share a multiprocessor
    FEW_BESIDE = 2 << 10        # of a block, for the system and the biases
    MOST_STRIDE = 1 << 24       # of weights: 64 times as much fits 32 bits

cdef struct FewForm:
    int dtype
    int activation
    int channels
    int pixel
    int[2] kernel
    int stride
    int outputs
    int warps
    int has_addend
    int is_vectored
    int is_dense

cdef KernelTable few_kernels


cdef bint is_small(int64_t x) noexcept nogil:
    return x == <int32_t>x


cdef bint holds_pairs(const Operand* x) noexcept nogil:
    """Whether pixels lie one after the other, an even number in a row, each pair at 4 bytes."""
    cdef int last = x.ndim - 1, axis
    if x.ptr % 4 != 0 or x.shape[last] % 2 != 0 or x.strides[last] != x.shape[1]:
        return False
    for axis in range(last):
        if axis == 1 and x.shape[1] > 1 and x.strides[1] != 1:
            return False
        if axis != 1 and x.shape[axis] > 1 and x.strides[axis] % 2 != 0:
            return False
    return True


cdef bint few_fits(const Convolution* given, FewForm* form) noexcept nogil:
    """Whether this kernel takes it; if so, fills the fields that depend on the extents alone."""
    cdef int last = given.x.ndim - 1, axis
    cdef int64_t height = given.weight.shape[2] if last == 3 else 1
    cdef int64_t width = given.weight.shape[last], stride = given.stride[2]
    if given.groups != 1 or given.weight.shape[1] > MOST_FEW or last > 3:
        return False
    if not dtype_is_half(given.x.dtype):
        return False
    if given.dilation[2] != 1 or stride > 64 or width > 64 or height > 64:
        return False
    for axis in range(last + 1):
        if not -MOST_STRIDE < given.weight.strides[axis] < MOST_STRIDE:
            return False
        if axis and not (is_small(given.x.strides[axis]) and is_small(given.out.strides[axis])):
            return False
    form.channels, form.pixel = <int>given.weight.shape[1], 1
    while form.pixel < form.channels or form.pixel * stride % chunk_of(given.x.dtype):
        form.pixel *= 2
    form.kernel[0], form.kernel[1] = <int>height, <int>width
    form.stride, form.has_addend = <int>stride, given.addend != NULL
    form.is_dense = holds_pairs(given.x)
    return height * ((width * form.pixel + 15) // 16 * 16) <= MOST_FEW_TERMS


cdef int64_t few_nbytes(const FewForm* form, const FewParameters* f) noexcept nogil:
    cdef int64_t terms = form.kernel[0] * ((form.kernel[1] * form.pixel + 15) // 16 * 16)
    return form.outputs * (terms + 8) * 2 + <int64_t>f.lines * f.pitch * form.pixel * 2


cdef int64_t few_shared(int device) except -1:
    return min(<int64_t>FEW_SHARED, <int64_t>device_facts(device).shared_nbytes - FEW_BESIDE)


cdef bint few_plan(FewForm* form, FewParameters* f, int64_t images, int multiprocessors,
                   int64_t shared) noexcept nogil:
    """Choose tiles of as many rows as leave enough tiles. Returns False where none fits."""
    cdef ConvolutionAxis* rows = &f.common.axes[1]
    cdef ConvolutionAxis* columns = &f.common.axes[2]
    cdef int fragments = (columns.out + 15) // 16, groups
    cdef int64_t tiles
    f.across = (fragments + 7) // 8
    f.fragments = (fragments + f.across - 1) // f.across
    f.pitch = (f.fragments * 16 - 1) * form.stride + (
        (form.kernel[1] * form.pixel + 15) // 16 * 16) // form.pixel
    f.pitch = (f.pitch + 7) // 8 * 8
    # With few tiles, twice as many tiles read half of the weights each.
    form.outputs = 64
    if f.common.outputs <= 32 or images * rows.out * f.across < multiprocessors:
        form.outputs = 32
    f.common.column_tiles = (f.common.outputs + form.outputs - 1) // form.outputs
    f.rows = MORE_FRAGMENTS if form.outputs == 32 else FEW_FRAGMENTS
    f.rows = min(rows.out, f.rows // f.fragments)
    while True:
        f.down = (rows.out + f.rows - 1) // f.rows
        f.lines = (f.rows - 1) * rows.stride + (rows.kernel - 1) * rows.dilation + 1
        tiles = images * f.down * f.across
        if f.rows == 1 or (few_nbytes(form, f) <= shared
                           and tiles * f.common.column_tiles >= 2 * multiprocessors):
            break
        f.rows = (f.rows + 1) // 2
    groups = (f.rows * f.fragments + 1) // 2
    form.warps = 7 if groups % 7 == 0 else 8
    f.tiles = <uint32_t>tiles
    return few_nbytes(form, f) <= shared and tiles * f.common.column_tiles <= 0x7fffffff


cdef object few_program(const void* variant):
    cdef const FewForm* form = <const FewForm*>variant
    return convolution_programs.few(
        form.dtype, form.activation, channels=form.channels, pixel=form.pixel,
        kernel=(form.kernel[0], form.kernel[1]), stride=form.stride, outputs=form.outputs,
        warps=form.warps, has_addend=bool(form.has_addend), is_vectored=bool(form.is_vectored),
        is_dense=bool(form.is_dense))


cdef int few_launch(int device, uint64_t stream, FewParameters* f, FewForm* form) except -1:
    cdef Launch launch
    cdef uint64_t key = (form.dtype << 3 | form.activation) << 3 | form.channels
    cdef int64_t blocks = 2 * max(1, device_facts(device).multiprocessors)   # that run at once
    key = ((key << 4 | form.pixel) << 7 | form.kernel[0]) << 7 | form.kernel[1]
    key = (key << 7 | form.stride) << 1 | (form.outputs == 64)
    key = ((key << 4 | form.warps) << 1 | form.has_addend) << 1 | form.is_vectored
    key = key << 1 | form.is_dense
    blocks = min(<int64_t>f.tiles, max(1, blocks // f.common.column_tiles)) * f.common.column_tiles
    launch_init(&launch, device, stream, <uint32_t>blocks, 32 * form.warps, f, sizeof(f[0]))
    launch.shared_nbytes = <uint32_t>few_nbytes(form, f)
    launch.most_shared_nbytes = <uint32_t>few_shared(device)
    return launch_kernel(kernel_of(&few_kernels, key, few_program, form), &launch)
