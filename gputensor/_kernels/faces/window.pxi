"""Folds over windows on a device: choose the vector and the pixels of a thread, launch.

If channels are neighbours in memory, a thread takes 16 bytes of them, otherwise one element. Along
the width it takes four results whose windows overlap, if the windows' size is a constant.
"""

cdef enum:
    MOST_COLUMNS = 16           # columns of x in the registers of a thread
    WINDOW_THREADS = 256

cdef extern from "gputensor/_kernels/cuda/window.h" namespace "gputensor" nogil:
    cdef struct WindowOperand:
        uint64_t ptr
        int64_t batch
        int64_t channel
        int64_t[3] axes

    cdef struct WindowAxis:
        int32_t x
        int32_t out
        int32_t kernel
        int32_t stride
        int32_t padding
        int32_t ends
        int32_t dilation

    cdef struct WindowParameters:
        WindowOperand x
        WindowOperand out
        WindowOperand weight
        WindowOperand addend
        uint64_t bias
        int64_t bias_stride
        uint64_t units
        WindowAxis[3] axes
        int32_t channels
        int32_t multiplier
        int32_t blocks
        Axis chunks
        Axis tiles

cdef struct WindowForm:         # a variant of the kernel
    int dtype
    int pooling
    int activation
    int is_last                 # channels are neighbours in memory
    int vector
    int pixels
    int kernel                  # along the width; 1, 1, 1 if a thread has one pixel
    int stride
    int dilation
    int is_wide

cdef KernelTable window_kernels


cdef void window_place(const Operand* given, WindowOperand* out) noexcept nogil:
    """Give the kernel's operand the strides of the last axes as width, height, depth."""
    cdef int axis, spatial = given.ndim - 2
    out.ptr, out.batch, out.channel = given.ptr, given.strides[0], given.strides[1]
    for axis in range(3):
        out.axes[axis] = 0
    for axis in range(spatial):
        out.axes[3 - spatial + axis] = given.strides[2 + axis]


cdef bint is_vectored(const WindowOperand* one, int vector, int itemsize) noexcept nogil:
    cdef int axis
    if one.ptr == 0:
        return True
    if one.channel != 1 or one.ptr % <uint64_t>(vector * itemsize) or one.batch % vector:
        return False
    for axis in range(3):
        if one.axes[axis] % vector:
            return False
    return True


cdef void window_parameters(WindowParameters* p, const WindowFold* given) noexcept nogil:
    cdef int axis, at, spatial = given.x.ndim - 2
    memset(p, 0, sizeof(p[0]))
    window_place(given.x, &p.x)
    window_place(given.out, &p.out)
    p.multiplier = 1
    if given.weight != NULL:
        window_place(given.weight, &p.weight)
        p.weight.channel = given.weight.strides[0]
        p.multiplier = <int32_t>(given.out.shape[1] // given.x.shape[1])
    if given.addend != NULL:
        window_place(given.addend, &p.addend)
    if given.bias != NULL:
        p.bias, p.bias_stride = given.bias.ptr, given.bias.strides[0]
    for axis in range(3):
        at = axis - (3 - spatial) + 2
        p.axes[axis].x = <int32_t>given.x.shape[at] if at >= 2 else 1
        p.axes[axis].out = <int32_t>given.out.shape[at] if at >= 2 else 1
        p.axes[axis].kernel = <int32_t>given.kernel[axis]
        p.axes[axis].stride = <int32_t>given.stride[axis]
        p.axes[axis].padding = <int32_t>given.padding[axis]
        p.axes[axis].ends = <int32_t>given.ends[axis]
        p.axes[axis].dilation = <int32_t>given.dilation[axis]


cdef void choose_window(WindowForm* form, WindowParameters* p,
                        const WindowFold* given) noexcept nogil:
    cdef int itemsize = dtype_itemsize(given.x.dtype), vector = 16 // itemsize
    cdef int64_t channels = given.out.shape[1]
    cdef WindowAxis* width = &p.axes[2]
    cdef int64_t columns
    form.dtype, form.pooling, form.activation = given.x.dtype, given.pooling, given.activation
    form.is_last = p.x.channel == 1 and p.out.channel == 1 and channels > 1
    form.vector = form.pixels = form.kernel = form.stride = form.dilation = 1
    if form.is_last and p.multiplier == 1:
        while vector > 1 and (
                channels % vector or not is_vectored(&p.x, vector, itemsize)
                or not is_vectored(&p.out, vector, itemsize)):
            vector //= 2
        form.vector = vector
    columns = 3 * width.stride + (width.kernel - 1) * <int64_t>width.dilation + 1
    # Four results with 16 one-byte elements each would take too many registers.
    if width.kernel and width.out > 1 and columns <= MOST_COLUMNS and form.vector <= 8:
        form.pixels = 4
        form.kernel, form.stride = width.kernel, width.stride
        form.dilation = width.dilation if width.kernel > 1 else 1
    p.channels = <int32_t>(channels // form.vector)
    p.blocks = (width.out + form.pixels - 1) // form.pixels
    p.units = <uint64_t>given.x.shape[0] * <uint64_t>p.channels * <uint64_t>p.blocks
    p.units *= <uint64_t>p.axes[0].out * <uint64_t>p.axes[1].out
    form.is_wide = p.units >= 0xffffff00u


cdef object window_program(const void* variant):
    cdef const WindowForm* form = <const WindowForm*>variant
    return programs.window(
        form.dtype, form.pooling, form.activation, channels_last=bool(form.is_last),
        vector=form.vector, pixels=form.pixels,
        width=(form.kernel, form.stride, form.dilation), is_wide=bool(form.is_wide))


cdef int window_launch(int device, uint64_t stream, const WindowFold* given) except -1:
    cdef WindowParameters p
    cdef WindowForm form
    cdef Launch launch
    cdef uint64_t key, blocks
    window_parameters(&p, given)
    choose_window(&form, &p, given)
    if form.is_last and form.vector >= DEPTHWISE_VECTOR and depthwise_fits(&p, given):
        return depthwise_launch(device, stream, &p, given)
    blocks = (p.units + WINDOW_THREADS - 1) // WINDOW_THREADS
    if blocks > 0x7fffffff:
        raise ValueError(f"window: got {p.units} units of a result; expected fewer than 2**39")
    key = (form.dtype << 3 | form.pooling) << 3 | form.activation
    key = (key << 1 | form.is_last) << 5 | form.vector
    key = (key << 3 | form.pixels) << 5 | form.kernel
    key = ((key << 5 | form.stride) << 5 | form.dilation) << 1 | form.is_wide
    launch_init(&launch, device, stream, <uint32_t>blocks, WINDOW_THREADS, &p, sizeof(p))
    return launch_kernel(kernel_of(&window_kernels, key, window_program, &form), &launch)


cdef int read_axes(object values, int64_t absent, int64_t* out) except -1:
    cdef int axis, count = len(values)
    for axis in range(3):
        out[axis] = absent
    for axis in range(count):
        out[3 - count + axis] = values[axis]
    return 0


def _window_door(int device, uint64_t stream, tuple arguments):
    cdef WindowFold given
    cdef CallOperand out = arguments[6], x = arguments[7]
    if device_kind(device) == DEVICE_HOST:
        host_call(device, stream, WINDOW_CALL, (
            *arguments[:6], call_argument(device, &out.c), call_argument(device, &x.c)))
        return
    memset(&given, 0, sizeof(given))
    given.pooling = POOLINGS.index(arguments[0])
    given.x, given.out = &x.c, &out.c
    read_axes(arguments[1], 1, given.kernel)
    read_axes(arguments[2], 1, given.stride)
    read_axes(arguments[3], 0, given.padding)
    read_axes(arguments[4], 0, given.ends)
    read_axes(arguments[5], 1, given.dilation)
    window_launch(device, stream, &given)


cdef object WINDOW_CALL = CALLS["window"]
bind("window", window_on_host.run, _window_door)
