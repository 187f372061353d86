"""Convolution in plain arithmetic, of any strides and element type (plain.cuh)."""

cdef enum:
    PLAIN_PIXELS = 64

cdef struct PlainForm:
    int dtype
    int activation
    int along_pixels
    int columns                 # outputs of a thread

cdef KernelTable plain_kernels


cdef void convolution_place(const Operand* given, ConvolutionOperand* out) noexcept nogil:
    cdef int axis, spatial = given.ndim - 2
    out.ptr, out.batch, out.channel = given.ptr, given.strides[0], given.strides[1]
    for axis in range(3):
        out.axes[axis] = 0
    for axis in range(spatial):
        out.axes[3 - spatial + axis] = given.strides[2 + axis]


cdef int convolution_parameters(ConvolutionParameters* p, const Convolution* given) except -1:
    cdef int axis, at, spatial = given.x.ndim - 2
    cdef int64_t pixels = given.out.shape[0], taps = 1
    memset(p, 0, sizeof(p[0]))
    convolution_place(given.x, &p.x)
    convolution_place(given.weight, &p.weight)
    convolution_place(given.out, &p.out)
    if given.addend != NULL:
        convolution_place(given.addend, &p.addend)
    if given.bias != NULL:
        p.bias, p.bias_stride = given.bias.ptr, given.bias.strides[0]
    for axis in range(3):
        at = axis - (3 - spatial) + 2
        p.axes[axis].x = <int32_t>given.x.shape[at] if at >= 2 else 1
        p.axes[axis].out = <int32_t>given.out.shape[at] if at >= 2 else 1
        p.axes[axis].kernel = <int32_t>given.weight.shape[at] if at >= 2 else 1
        p.axes[axis].stride = <int32_t>given.stride[axis]
        p.axes[axis].padding = <int32_t>given.padding[axis]
        p.axes[axis].dilation = <int32_t>given.dilation[axis]
        pixels *= p.axes[axis].out
        taps *= p.axes[axis].kernel
    if pixels > 0x7fffff00 or taps * given.weight.shape[1] > 0x7fffff00:
        raise ValueError(f"convolution: got {pixels} results of each output and "
                         f"{taps * given.weight.shape[1]} terms; expected fewer than 2**31")
    p.pixels, p.groups = <int32_t>pixels, <int32_t>given.groups
    p.channels = <int32_t>given.weight.shape[1]
    p.outputs = <int32_t>(given.weight.shape[0] // given.groups)
    p.splits = 1
    return 0


cdef object plain_program(const void* variant):
    cdef const PlainForm* form = <const PlainForm*>variant
    return convolution_programs.plain(form.dtype, form.activation, form.columns,
                                      bool(form.along_pixels))


cdef int plain_convolution(int device, uint64_t stream, const Convolution* given) except -1:
    cdef ConvolutionParameters p
    cdef PlainForm form
    cdef Launch launch
    cdef uint64_t key, blocks
    convolution_parameters(&p, given)
    form.dtype, form.activation = given.x.dtype, given.activation
    form.along_pixels = p.x.channel != 1
    form.columns = 4 if p.outputs > 16 else 1
    p.column_tiles = (p.outputs + 16 * form.columns - 1) // (16 * form.columns)
    blocks = <uint64_t>(p.pixels + PLAIN_PIXELS - 1) // PLAIN_PIXELS
    blocks *= <uint64_t>p.groups * <uint64_t>p.column_tiles
    if blocks > 0x7fffffff:
        raise ValueError(f"convolution: got {blocks} tiles of a result; expected fewer than 2**31")
    key = (form.dtype << 3 | form.activation) << 4 | form.columns << 1 | form.along_pixels
    launch_init(&launch, device, stream, <uint32_t>blocks, 256, &p, sizeof(p))
    return launch_kernel(kernel_of(&plain_kernels, key, plain_program, &form), &launch)
