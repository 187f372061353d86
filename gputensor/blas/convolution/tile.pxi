"""Convolution on tensor cores (tile.cuh): 16-bit floats, or float32 as TF32, channels last.

Operands in another layout are copied first: x with its channels as neighbours, padded with zeros to
a multiple of 8 (float32: 4), and weights in the order of their terms. With few channels, as in
the first convolution of a network, a chunk holds several pixels instead of zeros. The copy of x
then has as many channels as a chunk, and the kernel is narrower by the number of pixels in a chunk.
"""

cdef enum:
    CHUNK_NBYTES = 16           # of channels that one copy takes
    MOST_PARTS = 16
    LEAST_STEPS = 4             # of a part of the terms
    DEEP_SHARED = 160 << 10     # of a multiprocessor, for two blocks with long steps

cdef struct TileForm:
    int dtype
    int activation
    int shape                   # a place in SHAPES
    int is_deep
    int is_split
    int is_vectored
    int spatial                 # 2 or 3
    int is_wide                 # places in x need 64 bits

cdef KernelTable tile_kernels
cdef KernelTable sum_kernels
cdef int[5] tile_rows
cdef int[5] tile_columns
for place, (rows, columns, *_) in enumerate(convolution_programs.SHAPES):
    tile_rows[place], tile_columns[place] = rows, columns


cdef inline int64_t chunk_of(int dtype) noexcept nogil:
    """Return the channels that one copy takes."""
    return CHUNK_NBYTES // dtype_itemsize(dtype)


cdef bint is_chunked(const Operand* one, int first) noexcept nogil:
    """Whether channels are neighbours and chunks of them begin at multiples of 16 bytes."""
    cdef int axis
    if one.ptr % 16 or (one.strides[1] != 1 and one.shape[1] != 1):
        return False
    for axis in range(first, one.ndim):
        if axis != 1 and one.shape[axis] > 1 and one.strides[axis] % chunk_of(one.dtype):
            return False
    return True


cdef bint tile_fits(const Convolution* given, int capability) noexcept nogil:
    cdef int64_t chunk = chunk_of(given.x.dtype)
    if capability < 80 or not (dtype_is_half(given.x.dtype) or (
            given.x.dtype == DT_FLOAT32 and given.precision & FP32_MASK in (FP32_TF32, FP32_BF16))):
        return False
    return given.groups == 1 or (
        given.weight.shape[1] % chunk == 0 and given.weight.shape[0] // given.groups >= chunk)


cdef int channels_last_copy(Temporaries* temporaries, const Operand* given, int64_t channels,
                            Operand* out) except -1:
    """Make a copy with channels as neighbours, and zeros up to `channels` of them."""
    cdef Operand source = given[0], whole, zero
    cdef int64_t nbytes = dtype_itemsize(given.dtype) * channels
    cdef int axis
    out[0] = given[0]
    out.shape[1], out.strides[1] = channels, 1
    for axis in range(given.ndim - 1, -1, -1):
        if axis != 1:
            out.strides[axis] = nbytes // dtype_itemsize(given.dtype)
            nbytes *= given.shape[axis]
    take_memory(temporaries, <size_t>nbytes, &out.ptr)
    if channels > given.shape[1]:
        memset(&zero, 0, sizeof(zero))
        zero.is_scalar, zero.dtype = 1, given.dtype
        whole = out[0]
        fill(temporaries.device, temporaries.stream, &whole, &zero)
    whole = out[0]
    whole.shape[1] = given.shape[1]
    return elementwise(OP_COPY, temporaries.device, temporaries.stream, given.dtype, &whole, 1,
                       &source)


cdef int pixels_of_chunk(const Convolution* given) noexcept nogil:
    """Return how many neighbours along the width share a chunk; 1: none do."""
    cdef int64_t chunk = chunk_of(given.x.dtype)
    cdef int pixels = <int>chunk
    while pixels > 1 and (pixels * given.x.shape[1] > chunk or given.stride[2] % pixels):
        pixels //= 2
    if (given.groups != 1 or given.dilation[2] != 1
            or given.weight.shape[given.weight.ndim - 1] < pixels):
        return 1
    return pixels


cdef int zeros(Temporaries* temporaries, Operand* out) except -1:
    """Take memory of zeros for an operand whose elements are contiguous."""
    cdef Operand whole = out[0], zero
    cdef int64_t count = 1
    cdef int axis
    for axis in range(out.ndim):
        count *= out.shape[axis]
    take_memory(temporaries, <size_t>(count * dtype_itemsize(out.dtype)), &out.ptr)
    memset(&zero, 0, sizeof(zero))
    zero.is_scalar, zero.dtype = 1, out.dtype
    whole.ptr, whole.ndim = out.ptr, 1
    whole.shape[0], whole.strides[0] = count, 1
    return fill(temporaries.device, temporaries.stream, &whole, &zero)


cdef int in_chunks(Temporaries* temporaries, const Operand* given, int64_t width, int pixels,
                   int64_t before, Operand* out) except -1:
    """Make a copy in chunks of `pixels` neighbours along the width, from place `before` on, with
    zeros around them: `width` chunks, their elements as channels.
    """
    cdef Operand source = given[0], inner
    cdef int last = given.ndim - 1, axis
    cdef int64_t chunk = chunk_of(given.dtype), step = chunk
    out[0] = given[0]
    out.shape[1], out.shape[last] = chunk, width
    for axis in range(last, -1, -1):
        if axis != 1:
            out.strides[axis] = step
            step *= out.shape[axis]
    out.strides[1] = 1
    zeros(temporaries, out)
    inner = out[0]
    inner.shape[1], inner.shape[last] = given.shape[1], given.shape[last]
    inner.strides[last] = chunk // pixels
    inner.ptr += <uint64_t>(before * inner.strides[last] * dtype_itemsize(given.dtype))
    return elementwise(OP_COPY, temporaries.device, temporaries.stream, given.dtype, &inner, 1,
                       &source)


cdef int few_channels(Temporaries* temporaries, Convolution* now, int pixels, Operand* x,
                      Operand* weight) except -1:
    """Make it a convolution of a chunk of channels, which has those of several pixels of x."""
    cdef int last = now.x.ndim - 1
    cdef int64_t kernel = (now.weight.shape[last] + pixels - 1) // pixels
    cdef int64_t seen = max(now.padding[2] + now.x.shape[last],
                            (now.out.shape[last] - 1) * now.stride[2] + kernel * pixels)
    in_chunks(temporaries, now.x, (seen + pixels - 1) // pixels, pixels, now.padding[2], x)
    in_chunks(temporaries, now.weight, kernel, pixels, 0, weight)
    now.x, now.weight = x, weight
    now.stride[2] //= pixels
    now.padding[2] = 0
    return 0


cdef bint is_numbered(const Operand* weight) noexcept nogil:
    """Whether weights lie in the order of their terms."""
    cdef int axis
    cdef int64_t step = weight.shape[1]
    if weight.ptr % 16 or weight.shape[1] % chunk_of(weight.dtype) or weight.strides[1] != 1:
        return False
    for axis in range(weight.ndim - 1, 1, -1):
        if weight.shape[axis] > 1 and weight.strides[axis] != step:
            return False
        step *= weight.shape[axis]
    return weight.strides[0] == step or weight.shape[0] == 1


cdef int64_t reach_of(const ConvolutionParameters* p, int64_t images) noexcept nogil:
    """Return a bound of the places in x, in elements, including those of taps outside of it."""
    cdef int64_t reach = images * p.x.batch + <int64_t>p.channels * p.groups, beside
    cdef int axis
    for axis in range(3):
        beside = <int64_t>p.axes[axis].kernel * p.axes[axis].dilation + p.axes[axis].x
        beside += <int64_t>p.axes[axis].out * p.axes[axis].stride + p.axes[axis].padding
        reach += beside * (p.x.axes[axis] if p.x.axes[axis] > 0 else -p.x.axes[axis])
    return reach


cdef int64_t tiles_of(const ConvolutionParameters* p, int shape) noexcept nogil:
    return (<int64_t>(p.pixels + tile_rows[shape] - 1) // tile_rows[shape] * p.groups
            * ((p.outputs + tile_columns[shape] - 1) // tile_columns[shape]))


# Chooses the largest tile that is enough for all multiprocessors; below that, the terms are cut.
cdef void choose_tile(TileForm* form, ConvolutionParameters* p, int multiprocessors) noexcept nogil:
    cdef int64_t depth = (128 if form.is_deep else 64) // dtype_itemsize(form.dtype)
    cdef int64_t terms = <int64_t>p.channels, steps, parts
    cdef int axis
    for axis in range(3):
        terms *= p.axes[axis].kernel
    steps = (terms + depth - 1) // depth
    if p.outputs <= 32:
        form.shape = 4
    elif p.outputs <= 64:
        form.shape = 2
    else:
        form.shape = 0 if form.is_deep and tiles_of(p, 0) >= 2 * multiprocessors else 1
    if form.shape != 4 and tiles_of(p, form.shape) < multiprocessors:
        form.shape = 3
    parts = multiprocessors // tiles_of(p, form.shape)
    parts = min(min(parts, steps // LEAST_STEPS), MOST_PARTS)
    p.steps, p.splits = <int32_t>steps, 1
    if parts > 1:
        p.steps = <int32_t>((steps + parts - 1) // parts)
        p.splits = <int32_t>((steps + p.steps - 1) // p.steps)
    p.column_tiles = (p.outputs + tile_columns[form.shape] - 1) // tile_columns[form.shape]


cdef object tile_program(const void* variant):
    cdef const TileForm* form = <const TileForm*>variant
    return convolution_programs.tile(
        form.dtype, form.activation, form.shape, is_deep=bool(form.is_deep),
        is_split=bool(form.is_split), is_vectored=bool(form.is_vectored), spatial=form.spatial,
        is_wide=bool(form.is_wide))


cdef object sum_program(const void* variant):
    cdef const TileForm* form = <const TileForm*>variant
    return convolution_programs.join(form.dtype, form.activation)


cdef int tile_launch(int device, uint64_t stream, ConvolutionParameters* p,
                     TileForm* form) except -1:
    cdef Launch launch
    cdef uint64_t key, results
    cdef int64_t tiles = tiles_of(p, form.shape) * p.splits
    if tiles > 0x7fffffff:
        raise ValueError(f"convolution: got {tiles} tiles of a result; expected fewer than 2**31")
    key = (form.dtype << 3 | form.activation) << 3 | form.shape
    key = key << 3 | form.is_deep << 2 | form.is_split << 1 | form.is_vectored
    key = key << 2 | (form.spatial == 3) << 1 | form.is_wide
    launch_init(&launch, device, stream, <uint32_t>tiles, THREADS_OF_TILE[form.shape], p,
                sizeof(p[0]))
    launch.shared_nbytes = launch.most_shared_nbytes = (
        TILE_NBYTES[form.shape][form.is_deep][form.dtype == DT_FLOAT32])
    launch_kernel(kernel_of(&tile_kernels, key, tile_program, form), &launch)
    if not form.is_split:
        return 0
    results = <uint64_t>p.pixels * <uint64_t>(p.outputs * p.groups)
    launch_init(&launch, device, stream, <uint32_t>((results + 255) // 256), 256, p, sizeof(p[0]))
    return launch_kernel(
        kernel_of(&sum_kernels, form.dtype << 3 | form.activation, sum_program, form), &launch)


cdef int tile_convolution(int device, uint64_t stream, const Convolution* given) except -1:
    cdef Convolution now = given[0]
    cdef ConvolutionParameters p
    cdef Temporaries temporaries
    cdef Operand x, weight
    cdef TileForm form
    cdef ShiftedParameters shifted
    cdef ShiftedForm shifted_form
    cdef FewParameters few
    cdef FewForm few_form
    cdef int64_t chunk = chunk_of(given.x.dtype), results
    cdef int64_t channels = (given.weight.shape[1] + chunk - 1) // chunk * chunk
    cdef int pixels
    cdef uint64_t partial = 0
    memset(&form, 0, sizeof(form))
    memset(&few, 0, sizeof(few))
    memset(&few_form, 0, sizeof(few_form))
    memset(&shifted, 0, sizeof(shifted))
    memset(&shifted_form, 0, sizeof(shifted_form))
    form.dtype, form.activation = given.x.dtype, given.activation
    form.is_deep = device_facts(device).shared_nbytes >= DEEP_SHARED
    form.is_vectored = is_chunked(given.out, 0) and (
        given.weight.shape[0] // given.groups % chunk == 0)
    if few_fits(given, &few_form):
        convolution_parameters(&few.common, given)
        few_form.dtype, few_form.activation = form.dtype, form.activation
        few_form.is_vectored = form.is_vectored
        if few_plan(&few_form, &few, given.x.shape[0],
                    max(1, device_facts(device).multiprocessors), few_shared(device)):
            return few_launch(device, stream, &few, &few_form)
    temporaries_init(&temporaries, device, stream)
    try:
        pixels = pixels_of_chunk(given)
        if pixels > 1:
            few_channels(&temporaries, &now, pixels, &x, &weight)
        if now.weight.shape[1] % chunk or not is_chunked(now.x, 0):
            channels_last_copy(&temporaries, now.x, channels * given.groups, &x)
            now.x = &x
        if not is_numbered(now.weight):
            channels_last_copy(&temporaries, now.weight, channels, &weight)
            now.weight = &weight
        convolution_parameters(&p, &now)
        if mapped_fits(&now, device) and mapped_convolution(device, stream, &p, &now):
            return 0
        if shifted_fits(&now, device) and reach_of(&p, given.x.shape[0]) >> 3 < 1 << 30:
            shifted.common = p
            shifted_form.dtype, shifted_form.activation = form.dtype, form.activation
            shifted_form.is_vectored = form.is_vectored and (
                given.addend == NULL or is_chunked(given.addend, 0))
            if shifted_plan_on(device, &shifted_form, &shifted, given.x.shape[0]):
                return shifted_launch(device, stream, &shifted, &shifted_form)
        form.spatial = 3 if given.x.ndim == 5 else 2
        form.is_wide = reach_of(&p, given.x.shape[0]) >= 1 << 30
        choose_tile(&form, &p, max(1, device_facts(device).multiprocessors))
        results = <int64_t>p.pixels * p.outputs * p.groups
        if p.splits > 1 and not take_memory_if_any(
                &temporaries, <size_t>(results * p.splits * 4), &partial):
            p.splits = 1
        p.partial = partial
        form.is_split = p.splits > 1
        tile_launch(device, stream, &p, &form)
    finally:
        temporaries_release(&temporaries)
    return 0


cdef int[5] THREADS_OF_TILE
cdef int[5][2][2] TILE_NBYTES     # of a shape, whether deep, and whether elements are float32
for place, (_, _, down, across) in enumerate(convolution_programs.SHAPES):
    THREADS_OF_TILE[place] = 32 * down * across
    for deep, size in ((0, 2), (0, 4), (1, 2), (1, 4)):
        TILE_NBYTES[place][deep][size == 4] = convolution_programs.tile_shared_nbytes(
            place, bool(deep), size)
