"""The entry of convolution: decides which kernel takes it."""


cdef bint is_by_channel(const Convolution* given) noexcept nogil:
    return given.groups > 1 and given.weight.shape[1] == 1


cdef int by_channel(int device, uint64_t stream, const Convolution* given) except -1:
    """Each channel by itself: a fold over windows."""
    cdef WindowFold fold
    cdef int axis, absent = 3 - (given.x.ndim - 2)
    memset(&fold, 0, sizeof(fold))
    fold.pooling = POOL_WEIGHTED
    fold.x, fold.weight, fold.out = given.x, given.weight, given.out
    fold.bias, fold.addend, fold.activation = given.bias, given.addend, given.activation
    for axis in range(3):
        fold.kernel[axis] = 1 if axis < absent else given.weight.shape[2 + axis - absent]
        fold.stride[axis], fold.padding[axis] = given.stride[axis], given.padding[axis]
        fold.dilation[axis] = given.dilation[axis]
    return window_launch(device, stream, &fold)


cdef int without_stride(int device, uint64_t stream, const Convolution* given) except -1:
    """Copy the pixels that a strided kernel of a single element reads, then multiply."""
    cdef Convolution now = given[0]
    cdef Operand seen = given.x[0], x
    cdef Temporaries temporaries
    cdef int axis, absent = 3 - (given.x.ndim - 2)
    for axis in range(2, given.x.ndim):
        seen.shape[axis] = given.out.shape[axis]
        seen.strides[axis] *= given.stride[absent + axis - 2]
        now.stride[absent + axis - 2] = 1
    now.x = &seen
    temporaries_init(&temporaries, device, stream)
    try:
        if given.out.strides[1] == 1:
            channels_last_copy(&temporaries, &seen, seen.shape[1], &x)
        else:
            take_operand(&temporaries, &seen, seen.dtype, &x)
            elementwise(OP_COPY, device, stream, seen.dtype, &x, 1, &seen)
        now.x = &x
        return convolve(device, stream, &now)
    finally:
        temporaries_release(&temporaries)


cdef int convolve(int device, uint64_t stream, const Convolution* given) except -1:
    if is_by_channel(given):
        return by_channel(device, stream, given)
    if pointwise_fits(given):
        return pointwise(device, stream, given)
    if (is_single(given, True) and not is_single(given, False)
            and not mapped_fits(given, device)):
        return without_stride(device, stream, given)
    if tile_fits(given, device_facts(device).capability):
        return tile_convolution(device, stream, given)
    return plain_convolution(device, stream, given)


cdef const Operand* operand_or_null(CallOperand given) noexcept:
    if given is None:
        return NULL
    return &given.c


def _door(int device, uint64_t stream, tuple arguments):
    cdef Convolution given
    out, x, weight, bias, addend = arguments[6:]
    given.out, given.x, given.weight = (
        operand_or_null(out), operand_or_null(x), operand_or_null(weight))
    given.bias, given.addend = operand_or_null(bias), operand_or_null(addend)
    if device_kind(device) == DEVICE_HOST:
        host_call(device, stream, CONVOLUTION_CALL, (
            *arguments[:6], call_argument(device, given.out), call_argument(device, given.x),
            call_argument(device, given.weight), call_argument(device, given.bias),
            call_argument(device, given.addend)))
        return
    read_axes(arguments[0], 1, given.stride)
    read_axes(arguments[1], 0, given.padding)
    read_axes(arguments[2], 1, given.dilation)
    given.groups, given.precision = arguments[3], arguments[5]
    given.activation = CONVOLUTION_ACTIVATIONS.index(arguments[4])
    convolve(device, stream, &given)


cdef object CONVOLUTION_CALL = CALLS["convolution"]
bind("convolution", convolution_host.run, _door)
