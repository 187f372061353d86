"""The doors of products: functions that repeat a recorded call on any device (_kernels/calls.py).

A door trusts its arguments, which calls.make has checked, except for the facts that shapes and
dtypes do not cover.
"""

cdef const Operand* operand_or_null(CallOperand given) noexcept:
    if given is None:
        return NULL
    return &given.c


cdef int read_factor(object value, int dtype, double* real, double* imag) except -1:
    if is_integer(dtype):
        return split_integer(value, real, imag)
    real[0], imag[0] = value.real, value.imag
    return 0


def _product_door(int device, uint64_t stream, tuple arguments):
    cdef Options options
    cdef Task task
    cdef CallOperand out
    if tiles_wanted[device + HOST_DEVICES] and product_inside(device, stream, arguments):
        return
    alpha, beta, activation, conj_a, conj_b, precision, out, a, b, *rest = arguments
    options_init(&options, precision)
    read_factor(alpha, out.c.dtype, &options.alpha, &options.alpha_imag)
    read_factor(beta, out.c.dtype, &options.beta, &options.beta_imag)
    options.activation = ACTIVATION_NAMES.index(activation)
    options.conj_a, options.conj_b = conj_a, conj_b
    options.addend, options.bias = operand_or_null(rest[0]), operand_or_null(rest[1])
    options.scale, options.residual = operand_or_null(rest[2]), operand_or_null(rest[3])
    try:
        task_prepare(&task, device, stream, operand_or_null(a), operand_or_null(b), &out.c,
                     &options)
        task_launch(&task)
    finally:
        task_release(&task)


def _scaled_door(int device, uint64_t stream, tuple arguments):
    cdef ScaledProduct given
    cdef ScaledTask task
    activation, given.is_fast, given.precision, out, a, b, scale_a, scale_b, scale_result, bias = (
        arguments)
    given.activation = ACTIVATION_NAMES.index(activation)
    given.a, given.b = operand_or_null(a), operand_or_null(b)
    given.scale_a, given.scale_b = operand_or_null(scale_a), operand_or_null(scale_b)
    given.result_scale, given.bias = operand_or_null(scale_result), operand_or_null(bias)
    try:
        scaled_prepare(&task, device, stream, &given, operand_or_null(out))
        scaled_launch(&task)
    finally:
        scaled_release(&task)


def _offsets_door(int device, uint64_t stream, tuple arguments):
    cdef CallOperand out, a, b, offsets
    out, a, b, offsets = arguments
    check_dense(offsets, "offsets")
    offsets_check(&a.c, &b.c, &out.c, &offsets.c)
    offsets_launch(device, stream, &a.c, &b.c, &out.c, &offsets.c)


def _quantized_door(int device, uint64_t stream, tuple arguments):
    cdef QuantizedProduct given
    cdef QuantizedTask task
    given.precision, *operands = arguments
    for operand, name in zip(operands, ("out", "x", "weight", "scales", "bias"), strict=True):
        check_dense(operand, name)
    out, x, weight, scales, bias = operands
    given.out, given.x, given.weight = (
        operand_or_null(out), operand_or_null(x), operand_or_null(weight))
    given.scales, given.bias = operand_or_null(scales), operand_or_null(bias)
    if 0 in out.shape:
        return
    try:
        quantized_prepare(&task, device, stream, &given)
        quantized_launch(&task)
    finally:
        quantized_release(&task)


cdef int check_dense(CallOperand operand, str name) except -1:
    """Raise unless the operand is row-major, as the kernels expect."""
    if operand is None:
        return 0
    dense = CallOperand(0, operand.dtype, operand.shape).strides
    for extent, stride, wanted in zip(operand.shape, operand.strides, dense, strict=True):
        if extent > 1 and stride != wanted:
            raise argument_error(ValueError, f"{name}.strides", operand.strides,
                                 f"{dense}, of row-major memory")
    return 0


PRODUCT_CALL = bind("product", gemm_host.product, _product_door)
cdef object SCALED_CALL = bind("scaled_product", gemm_host.scaled_product, _scaled_door)
cdef object OFFSETS_CALL = bind("offset_products", offset_products, _offsets_door)
cdef object QUANTIZED_CALL = bind("quantized_product", quantized_host.linear, _quantized_door)
