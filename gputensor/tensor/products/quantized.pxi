"""Linear layers whose weights are int8 or int4 with scales: checks, then one product of blas."""

cdef object host_linear = quantized_host.linear


cdef int check_weight(Tensor weight, int64_t n, int64_t k) except -1:
    if weight.dtype_code == DT_INT8:
        expected = (n, k)
    elif weight.dtype_code == DT_UINT8:
        expected = int4_layout.packed_shape(n, k)
    else:
        raise TypeError(f"quantized_linear: weight is {DTYPES[weight.dtype_code].name}; int8, or "
                        "uint8 from pack_int4, is needed")
    if weight.shape != expected:
        raise ValueError(f"quantized_linear: weight has shape {weight.shape}; {n} features (the "
                         f"last extent of scales) of {k} terms (that of x) have {expected}")
    return 0


cdef int check_scales(Tensor scales, Tensor x, int64_t k) except -1:
    cdef int64_t groups
    if scales.dtype_code != x.dtype_code:
        raise TypeError(f"quantized_linear: scales are {DTYPES[scales.dtype_code].name}; x is "
                        f"{DTYPES[x.dtype_code].name}")
    groups = scales.shape_[0]
    if groups != 1 and (groups < 1 or k % groups or k // groups not in (32, 64, 128)):
        raise ValueError(f"quantized_linear: {groups} rows of scales for {k} terms; a row holds "
                         "for 32, 64, 128 or all terms")
    return 0


cdef int check_vector(Tensor bias, Tensor x, int64_t n) except -1:
    if bias.dtype_code != x.dtype_code:
        raise TypeError(f"quantized_linear: the bias is {DTYPES[bias.dtype_code].name}; x is "
                        f"{DTYPES[x.dtype_code].name}")
    if bias.ndim_ != 1 or bias.shape_[0] != n:
        raise ValueError(f"quantized_linear: the bias has shape {bias.shape}; ({n},) is needed")
    return 0


cdef Tensor as_matrix(Tensor tensor):
    """A row-major tensor of one dimension or more as its rows."""
    cdef int64_t[2] shape
    cdef int64_t[2] strides
    cdef int axis
    shape[0], shape[1] = 1, tensor.shape_[tensor.ndim_ - 1]
    for axis in range(tensor.ndim_ - 1):
        shape[0] *= tensor.shape_[axis]
    strides[0], strides[1] = shape[1], 1
    return view_tensor(tensor, tensor.ptr, 2, shape, strides)


cdef Tensor dequantized(Tensor weight, Tensor scales, int64_t n, int64_t k, uint64_t stream):
    """The weights as a matrix [n, k] of the scales' type, on a GPU."""
    cdef int64_t[2] shape
    cdef Operand from_operand, scales_operand, to_operand
    cdef Tensor plain
    shape[0], shape[1] = n, k
    plain = empty_tensor(scales.dtype_code, 2, shape, weight.storage.device)
    weight.fill_operand(&from_operand)
    scales.fill_operand(&scales_operand)
    plain.fill_operand(&to_operand)
    work_begin()
    try:
        weight.prepare_read(stream)
        scales.prepare_read(stream)
        plain.prepare_write(stream)
        dequantize_run(weight.storage.device, stream, &from_operand, &scales_operand, &to_operand)
    finally:
        work_end(weight.storage.device)
    return plain


def quantized_linear(x, weight, scales, bias=None):
    """Return ``x @ w.T + bias`` for weights ``w`` kept as int8 or int4 with scales.

    Parameters
    ----------
    x : Tensor
        Of shape ``(..., k)``; float16, bfloat16 or float32.
    weight : Tensor
        int8 of shape ``(n, k)``, or packed int4 values (:func:`pack_int4`).
    scales : Tensor
        Of shape ``(groups, n)`` and the type of `x`: weight ``[i, j]`` is its integer times
        ``scales[j // (k // groups), i]``. A group is 32, 64, 128 or all terms.
    bias : Tensor, optional
        Of shape ``(n,)`` and the type of `x`.

    Returns
    -------
    Tensor
        Of shape ``(..., n)`` and the type of `x`.

    Raises
    ------
    ValueError
        Shapes, groups or devices do not fit.
    TypeError
        An element type does not.

    Notes
    -----
    Queued on the current stream of the device. For up to 16 rows of 16-bit `x` a GPU expands the
    weights in registers, exactly, and takes the sums in float32. For more rows, and where rows are
    not aligned to 16 bytes, the weights are first made plain, rounded to the type of `x`.

    Examples
    --------
    >>> import gputensor as gt
    >>> w, scales = gt.quantize_int8(gt.ones((2, 32)))
    >>> gt.quantized_linear(gt.ones((1, 32)), w, scales).numpy().round(3)
    array([[32., 32.]], dtype=float32)
    """
    cdef Tensor a = tensor_argument(x, "quantized_linear")
    cdef Tensor w = tensor_argument(weight, "quantized_linear")
    cdef Tensor s = tensor_argument(scales, "quantized_linear")
    cdef Tensor b = None if bias is None else tensor_argument(bias, "quantized_linear")
    cdef Tensor rows, result
    cdef int64_t[MAX_NDIM] shape
    cdef int64_t n, k
    cdef int axis
    for tensor in (w, s, b):
        if tensor is not None:
            common_device(a, tensor, "quantized_linear")
    if a.dtype_code not in (DT_FLOAT16, DT_BFLOAT16, DT_FLOAT32):
        raise TypeError(f"quantized_linear: x is {DTYPES[a.dtype_code].name}; float16, bfloat16 or "
                        "float32 is needed")
    if a.ndim_ < 1 or a.shape_[a.ndim_ - 1] < 1:
        raise ValueError(f"quantized_linear: x of shape {a.shape} has no terms")
    if s.ndim_ != 2:
        raise ValueError(f"quantized_linear: scales have shape {s.shape}; (groups, n) is needed")
    n, k = s.shape_[1], a.shape_[a.ndim_ - 1]
    check_scales(s, a, k)
    check_weight(w, n, k)
    if b is not None:
        check_vector(b, a, n)
    for axis in range(a.ndim_):
        shape[axis] = a.shape_[axis]
    shape[a.ndim_ - 1] = n
    rows, w, s = as_matrix(contiguous(a)), contiguous(w), contiguous(s)
    b = None if b is None else contiguous(b)
    result = empty_tensor(a.dtype_code, a.ndim_, shape, a.storage.device)
    if result.size_ and not run_product(rows, w, s, b, as_matrix(result)):
        return linear(x, dequantized(w, s, n, k, current_handle(a.storage.device)), bias)
    return result


cdef bint run_product(Tensor x, Tensor weight, Tensor scales, Tensor bias,
                      Tensor result) except? False:
    """Queue the product of row-major matrices; False where plain weights are needed."""
    cdef Operand x_operand, weight_operand, scales_operand, bias_operand, result_operand
    cdef int device = x.storage.device
    cdef uint64_t stream = current_handle(device)
    cdef const Operand* offset = NULL
    x.fill_operand(&x_operand)
    weight.fill_operand(&weight_operand)
    scales.fill_operand(&scales_operand)
    result.fill_operand(&result_operand)
    if bias is not None:
        bias.fill_operand(&bias_operand)
        offset = &bias_operand
    work_begin()
    try:
        for tensor in (x, weight, scales, bias):
            if tensor is not None:
                (<Tensor>tensor).prepare_read(stream)
        result.prepare_write(stream)
        if not is_host(device):
            return quantized_run(device, stream, &x_operand, &weight_operand, &scales_operand,
                                 offset, &result_operand)
        host_call(device, stream, host_linear, (
            host_view(&result_operand), host_view(&x_operand), host_view(&weight_operand),
            host_view(&scales_operand), None if bias is None else host_view(&bias_operand)))
    finally:
        work_end(device)
    return True
