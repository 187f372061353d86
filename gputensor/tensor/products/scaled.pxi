"""Products of fp8 matrices with scales: arguments, result, stream order, then one task of blas."""

# Whether both are fp8 matrices of two dimensions.
cdef bint is_fp8_pair(Tensor a, Tensor b) noexcept:
    return (dtype_kind(a.dtype_code) == KIND_SMALL and dtype_kind(b.dtype_code) == KIND_SMALL
            and a.ndim_ == 2 and b.ndim_ == 2)


# ---- arguments

cdef int check_matrix(str name, str which, Tensor matrix) except -1:
    if dtype_kind(matrix.dtype_code) != KIND_SMALL:
        raise TypeError(f"{name}: {which}: got {DTYPES[matrix.dtype_code].name}; expected "
                        "float8_e4m3 or float8_e5m2")
    if matrix.ndim_ != 2:
        raise ValueError(f"{name}: {which}: got {matrix.ndim_} dimensions; expected 2")
    return 0


cdef Tensor scale_matrix(str name, str which, object value, Tensor matrix, bint is_right):
    """Return a scale as a matrix: [lines, columns] for a, [columns, lines] for b."""
    cdef Tensor scale
    cdef int64_t[2] shape
    cdef int64_t[2] strides
    cdef int64_t rows = matrix.shape_[1] if is_right else matrix.shape_[0]
    cdef int64_t k = matrix.shape_[0] if is_right else matrix.shape_[1]
    if value is None:
        return ones((1, 1), dtype="float32", device=matrix.storage.device)
    scale = tensor_argument(value, name)
    if scale.dtype_code != DT_FLOAT32:
        raise TypeError(f"{name}: {which}: got {DTYPES[scale.dtype_code].name}; expected float32")
    if scale.size_ == 1 and scale.ndim_ <= 2:
        shape[0] = shape[1] = strides[0] = strides[1] = 1
        return view_tensor(scale, scale.ptr, 2, shape, strides)
    if scale.ndim_ != 2 or not scale_fits(scale.shape_[1 if is_right else 0],
                                          scale.shape_[0 if is_right else 1], rows, k):
        blocks = (rows + 127) // 128, (k + 127) // 128
        allowed = [(rows, 1), (rows, blocks[1]), blocks]
        if is_right:
            allowed = [(columns, lines) for lines, columns in allowed]
        raise ValueError(f"{name}: {which}: got shape {scale.shape}; expected one element, "
                         f"{allowed[0]} (rows), {allowed[1]} (blocks of 128 terms) or "
                         f"{allowed[2]} (128 x 128 blocks) for an operand of shape {matrix.shape}")
    return scale


cdef Tensor bias_vector(str name, Tensor bias, Tensor result):
    cdef int dtype = result.dtype_code
    if dtype_kind(dtype) == KIND_SMALL:
        dtype = DT_FLOAT32
    if bias.dtype_code != dtype:
        raise TypeError(f"{name}: bias: got {DTYPES[bias.dtype_code].name}; expected "
                        f"{DTYPES[dtype].name} for a result of {DTYPES[result.dtype_code].name}")
    if bias.ndim_ != 1 or bias.shape_[0] != result.shape_[1]:
        raise ValueError(f"{name}: bias: got shape {bias.shape}; expected one value for each of "
                         f"the last extent of {result.shape}")
    return bias


cdef Tensor result_scale(str name, object value, Tensor result):
    cdef Tensor scale = tensor_argument(value, name)
    cdef int64_t[2] shape
    cdef int64_t[2] strides
    if scale.dtype_code != DT_FLOAT32 or scale.size_ != 1:
        raise TypeError(f"{name}: scale_result: got {DTYPES[scale.dtype_code].name} of shape "
                        f"{scale.shape}; expected one element of float32")
    shape[0], shape[1] = result.shape_[0], result.shape_[1]
    strides[0] = strides[1] = 0
    return view_tensor(scale, scale.ptr, 2, shape, strides)


# ---- the product

# activation((a * scale_a) @ (b * scale_b) + bias) * scale_result; scales and bias may be None.
cdef Tensor scaled_product(ProductCall call):
    cdef str name = call.name
    cdef Tensor a = call.a
    cdef Tensor b = call.b
    cdef int out_dtype = call.out_dtype
    cdef int device = a.storage.device
    cdef uint64_t stream
    cdef Operand[3] operands
    cdef Operand scale_left, scale_right, offset, factor
    cdef ScaledProduct given
    cdef ScaledTask task
    cdef Tensor result, s_a, s_b, vector, last
    s_a = s_b = vector = last = None
    for tensor in (b, call.scale_a, call.scale_b, call.bias, call.scale_result):
        if type(tensor) is Tensor and (<Tensor> tensor).storage.device != device:
            return scaled_product(on_device(call))
    if out_dtype < 0:
        out_dtype = DT_BFLOAT16
    if out_dtype not in (DT_BFLOAT16, DT_FLOAT16, DT_FLOAT32, DT_FLOAT8_E4M3, DT_FLOAT8_E5M2):
        raise TypeError(f"{name}: out_dtype: got {DTYPES[out_dtype].name} for a product of "
                        f"{DTYPES[a.dtype_code].name} and {DTYPES[b.dtype_code].name}; expected "
                        "bfloat16, float16, float32 or fp8")
    given.scale_a = given.scale_b = given.bias = given.result_scale = NULL
    given.activation, given.is_fast = call.options.activation, call.is_fast
    given.precision = call.options.precision
    given.a, given.b = &operands[0], &operands[1]
    if call.scale_a is not None or call.scale_b is not None:
        s_a = scale_matrix(name, "scale_a", call.scale_a, a, False)
        s_b = scale_matrix(name, "scale_b", call.scale_b, b, True)
        s_a.fill_operand(&scale_left)
        s_b.fill_operand(&scale_right)
        given.scale_a, given.scale_b = &scale_left, &scale_right
    result = result_for(name, a, b, call.out, out_dtype, operands)
    if call.bias is not None:
        vector = bias_vector(name, call.bias, result)
        vector.fill_operand(&offset)
        given.bias = &offset
    if call.scale_result is not None:
        last = result_scale(name, call.scale_result, result)
        last.fill_operand(&factor)
        given.result_scale = &factor
    stream = current_handle(device)
    try:
        scaled_prepare(&task, device, stream, &given, &operands[2])
        work_begin()
        try:
            for tensor in (a, b, s_a, s_b, vector, last):
                if tensor is not None:
                    (<Tensor>tensor).prepare_read(stream)
            result.prepare_write(stream)
            scaled_launch(&task)
        finally:
            work_end(device)
    finally:
        scaled_release(&task)
    return result


def scaled_matmul(a, b, scale_a, scale_b, *, bias=None, activation=None, scale_result=None,
                  out=None, out_dtype=None, fast_accumulation=False):
    """Return the product of fp8 matrices with scales.

    The result is ``activation((a * scale_a) @ (b * scale_b) + bias) * scale_result``, with each
    scale repeated over the elements to which it applies.

    Parameters
    ----------
    a : Tensor
        Of shape ``(m, k)``; float8_e4m3 or float8_e5m2.
    b : Tensor
        Of shape ``(k, n)``; also either fp8 type. Column-major is fastest (the transpose of weights
        that are stored as ``(n, k)``).
    scale_a, scale_b : Tensor or None
        float32, on the device of the matrices:

        =====================  ====================  =====================
        scales                 of a                  of b
        =====================  ====================  =====================
        one (tensor-wise)      one element           one element
        of rows and columns    (m, 1)                (1, n)
        of 128 terms           (m, k / 128)          (k / 128, n)
        of 128 x 128 blocks    (m / 128, k / 128)    (k / 128, n / 128)
        =====================  ====================  =====================

        Quotients are rounded up; the last blocks may be smaller. The two kinds may differ. None
        means 1.
    bias : Tensor, optional
        Of shape ``(n,)`` and the type of the result; float32 for an fp8 result.
    activation : {None, "relu", "gelu", "gelu_tanh", "silu"}
        Applied to the sum.
    scale_result : Tensor, optional
        One float32 element, a factor of the result; for fp8 results.
    out : Tensor, optional
        The tensor to write to. It may have any strides, but must not overlap itself or an argument.
    out_dtype : dtype, optional
        bfloat16 (the default), float16, float32, or an fp8 type, rounded as ``astype`` does.
    fast_accumulation : bool
        Leave partial sums in the tensor cores' accumulators, which have about 14 bits: at some
        sizes a few percent faster, and less exact. It has no effect with scales that vary along k.

    Returns
    -------
    Tensor
        `out`, or a new row-major tensor of shape ``(m, n)``.

    Raises
    ------
    ValueError
        Shapes do not match, devices differ, or `out` overlaps an argument.
    TypeError
        An element type is not allowed.

    Notes
    -----
    Queued on the current stream of the device. On a GPU cuBLASLt multiplies fp8 matrices itself;
    those whose k is not contiguous, or whose sizes or addresses are not multiples of 16 bytes, are
    copied first. Where it has no fp8 product (docs/blas.md), the values are multiplied as 16-bit
    floats, or as float32 if scales are for blocks. The sums are float32, but the fp8 tensor cores
    lose bits; see docs/blas.md. The host device computes in float32.

    Examples
    --------
    >>> import gputensor as gt
    >>> a = gt.full((2, 16), 2.0, dtype=gt.float8_e4m3)
    >>> b = gt.ones((16, 3), dtype=gt.float8_e4m3)
    >>> rows = gt.asarray([[1.0], [0.5]])
    >>> gt.scaled_matmul(a, b, rows, gt.asarray(0.25), out_dtype=gt.float32).numpy()
    array([[8., 8., 8.],
           [4., 4., 4.]], dtype=float32)
    """
    cdef Tensor left = tensor_argument(a, "scaled_matmul")
    cdef Tensor right = tensor_argument(b, "scaled_matmul")
    cdef ProductCall call = product_call("scaled_matmul", left, right)
    check_matrix("scaled_matmul", "a", left)
    check_matrix("scaled_matmul", "b", right)
    call.set_result(out, out_dtype, None)
    call.set_activation(activation)
    call.scale_a, call.scale_b, call.scale_result = scale_a, scale_b, scale_result
    call.bias = None if bias is None else tensor_argument(bias, "scaled_matmul")
    call.is_fast = flag_argument(fast_accumulation, "scaled_matmul", "fast_accumulation")
    return scaled_product(call)
