"""A convolution with kernels of a single element, as a product.

Where channels are neighbours in memory, the pixels of all images are the rows of one matrix; where
pixels are, each image is a matrix of its own.
"""


cdef bint merges(const Operand* one, int first) noexcept nogil:
    """Whether axis `first` and those from 2 on are walked as one."""
    cdef int axis, i
    cdef int64_t expected = -1
    for i in range(one.ndim - 1, 0, -1):
        axis = i if i >= 2 else first
        if i == 1 and first == 2:
            break
        if one.shape[axis] == 1:
            continue
        if expected >= 0 and one.strides[axis] != expected:
            return False
        expected = one.strides[axis] * one.shape[axis]
    return True


cdef int64_t pixel_stride(const Operand* one) noexcept nogil:
    """Return the step from pixel to pixel of axes that merge."""
    cdef int axis
    for axis in range(one.ndim - 1, 1, -1):
        if one.shape[axis] > 1:
            return one.strides[axis]
    return one.strides[0] if one.shape[0] > 1 else one.shape[1]


cdef bint is_single(const Convolution* given, bint is_strided) noexcept nogil:
    """Whether each result needs the channels of one pixel, in its place or a stride further on.

    Results in padding behind the last pixel need no pixel, so such convolutions are excluded.
    """
    cdef int axis, absent = 3 - (given.x.ndim - 2)
    cdef bint is_moved = False
    if given.groups != 1 or given.activation > ACT_SILU:
        return False
    if given.activation > ACT_GELU_TANH and dtype_is_half(given.x.dtype):
        return False            # these come after the product was rounded
    if given.bias != NULL and given.bias.strides[0] != 1 and dtype_is_half(given.x.dtype):
        return False            # so does a bias whose elements are apart
    for axis in range(given.x.ndim - 2):
        if given.weight.shape[2 + axis] != 1 or given.padding[absent + axis] != 0:
            return False
        if (given.out.shape[2 + axis] - 1) * given.stride[absent + axis] >= given.x.shape[2 + axis]:
            return False
        if (given.x.shape[2 + axis] != given.out.shape[2 + axis]
                or given.stride[absent + axis] != 1):
            is_moved = True
    return is_strided or not is_moved


cdef bint channels_last(const Convolution* given) noexcept nogil:
    return (given.x.strides[1] == 1 and given.out.strides[1] == 1
            and merges(given.x, 0) and merges(given.out, 0)
            and (given.addend == NULL or (given.addend.strides[1] == 1
                                          and merges(given.addend, 0))))


cdef bint pixels_last(const Convolution* given) noexcept nogil:
    return (merges(given.x, 2) and merges(given.out, 2) and pixel_stride(given.x) == 1
            and pixel_stride(given.out) == 1
            and (given.addend == NULL or (merges(given.addend, 2)
                                          and pixel_stride(given.addend) == 1)))


cdef bint pointwise_fits(const Convolution* given) noexcept nogil:
    if not is_single(given, False):
        return False
    if channels_last(given):
        return True
    # The product adds a bias to rows, not to columns. Here the bias can only be a residual, which
    # is added after the activation and excludes an addend.
    return pixels_last(given) and (given.bias == NULL or (
        given.addend == NULL and given.activation == ACT_NONE
        and not dtype_is_half(given.x.dtype)))


cdef void matrix(const Operand* like, int64_t rows, int64_t columns, int64_t row_stride,
                 int64_t column_stride, Operand* out) noexcept nogil:
    out.ptr, out.dtype, out.ndim, out.is_scalar = like.ptr, like.dtype, 2, 0
    out.shape[0], out.shape[1] = rows, columns
    out.strides[0], out.strides[1] = row_stride, column_stride


cdef void of_images(Operand* one, int64_t images, int64_t stride) noexcept nogil:
    """A matrix as a stack of matrices."""
    one.ndim = 3
    one.shape[2], one.strides[2] = one.shape[1], one.strides[1]
    one.shape[1], one.strides[1] = one.shape[0], one.strides[0]
    one.shape[0], one.strides[0] = images, stride


cdef int pointwise(int device, uint64_t stream, const Convolution* given) except -1:
    cdef Options options
    cdef Task task
    cdef Operand a, b, out, bias, addend
    cdef int64_t images = given.x.shape[0], pixels = 1
    cdef int64_t channels = given.x.shape[1], outputs = given.out.shape[1]
    cdef int axis
    for axis in range(2, given.x.ndim):
        pixels *= given.x.shape[axis]
    memset(&task, 0, sizeof(task))
    options_init(&options, given.precision)
    options.activation = given.activation
    if given.addend != NULL:
        options.beta, options.addend = 1, &addend
    if channels_last(given):
        matrix(given.x, images * pixels, channels, pixel_stride(given.x), 1, &a)
        matrix(given.weight, channels, outputs, given.weight.strides[1], given.weight.strides[0],
               &b)
        matrix(given.out, images * pixels, outputs, pixel_stride(given.out), 1, &out)
        options.bias = given.bias
        if given.addend != NULL:
            matrix(given.addend, images * pixels, outputs, pixel_stride(given.addend), 1, &addend)
    else:
        matrix(given.weight, outputs, channels, given.weight.strides[0], given.weight.strides[1],
               &a)
        matrix(given.x, channels, pixels, given.x.strides[1], 1, &b)
        matrix(given.out, outputs, pixels, given.out.strides[1], 1, &out)
        of_images(&a, images, 0)
        of_images(&b, images, given.x.strides[0])
        of_images(&out, images, given.out.strides[0])
        if given.addend != NULL:
            matrix(given.addend, outputs, pixels, given.addend.strides[1], 1, &addend)
            of_images(&addend, images, given.addend.strides[0])
        if given.bias != NULL:
            matrix(given.bias, outputs, pixels, given.bias.strides[0], 0, &bias)
            of_images(&bias, images, 0)
            options.residual = &bias
    try:
        task_prepare(&task, device, stream, &a, &b, &out, &options)
        task_launch(&task)
    finally:
        task_release(&task)
    return 0
