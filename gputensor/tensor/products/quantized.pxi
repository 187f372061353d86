"""Linear layers with weights in int8 or int4 and scales: checks, then one product of blas."""

cdef int check_weight(Tensor weight, int64_t n, int64_t k) except -1:
    if weight.dtype_code == DT_INT8:
        expected = (n, k)
    elif weight.dtype_code == DT_UINT8:
        expected = int4_layout.packed_shape(n, k)
    else:
        raise TypeError(f"quantized_linear: weight: got {DTYPES[weight.dtype_code].name}; "
                        "expected int8, or uint8 from pack_int4")
    if weight.shape != expected:
        raise ValueError(f"quantized_linear: weight: got shape {weight.shape}; expected "
                         f"{expected} for {n} features (the last extent of scales) of {k} terms "
                         "(the last extent of x)")
    return 0


cdef int check_scales(Tensor scales, Tensor x, int64_t k) except -1:
    cdef int64_t groups
    if scales.dtype_code != x.dtype_code:
        raise TypeError(f"quantized_linear: scales: got {DTYPES[scales.dtype_code].name}; "
                        f"expected {DTYPES[x.dtype_code].name}, the dtype of x")
    groups = scales.shape_[0]
    if groups != 1 and (groups < 1 or k % groups or k // groups not in (32, 64, 128)):
        raise ValueError(f"quantized_linear: scales: got {groups} rows for {k} terms; expected "
                         "a row for each 32, 64, 128 or all terms")
    return 0


cdef int check_vector(Tensor bias, Tensor x, int64_t n) except -1:
    if bias.dtype_code != x.dtype_code:
        raise TypeError(f"quantized_linear: bias: got {DTYPES[bias.dtype_code].name}; expected "
                        f"{DTYPES[x.dtype_code].name}, the dtype of x")
    if bias.ndim_ != 1 or bias.shape_[0] != n:
        raise ValueError(f"quantized_linear: bias: got shape {bias.shape}; expected ({n},)")
    return 0


cdef Tensor as_matrix(Tensor tensor):
    """Return a row-major tensor of one or more dimensions as a matrix of its rows."""
    cdef int64_t[2] shape
    cdef int64_t[2] strides
    cdef int axis
    shape[0], shape[1] = 1, tensor.shape_[tensor.ndim_ - 1]
    for axis in range(tensor.ndim_ - 1):
        shape[0] *= tensor.shape_[axis]
    strides[0], strides[1] = shape[1], 1
    return view_tensor(tensor, tensor.ptr, 2, shape, strides)


def quantized_linear(x, weight, scales, bias=None):
    """Return ``x @ w.T + bias`` for weights ``w`` stored as int8 or int4 with scales.

    Parameters
    ----------
    x : Tensor
        Of shape ``(..., k)``; float16, bfloat16 or float32.
    weight : Tensor
        int8 of shape ``(n, k)``, or packed int4 values (:func:`pack_int4`).
    scales : Tensor
        Of shape ``(groups, n)`` and the type of `x`: weight ``[i, j]`` is its integer times
        ``scales[j // (k // groups), i]``. A group has 32, 64, 128 or all terms.
    bias : Tensor, optional
        Of shape ``(n,)`` and the type of `x`.

    Returns
    -------
    Tensor
        Of shape ``(..., n)`` and the type of `x`.

    Raises
    ------
    ValueError
        Shapes or groups do not match, or devices differ.
    TypeError
        An element type is not allowed.

    Notes
    -----
    Queued on the current stream of the device. For up to 16 rows of a 16-bit `x`, a GPU expands the
    weights exactly, in registers, and sums in float32. For more rows, or rows that are not aligned
    to 16 bytes, the weights are first dequantized, rounded to the type of `x`.

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
        if tensor is not None and (<Tensor> tensor).storage.device != a.storage.device:
            a, w, s, b = on_one_device("quantized_linear", (a, w, s, b), None)
            break
    if a.dtype_code not in (DT_FLOAT16, DT_BFLOAT16, DT_FLOAT32):
        raise TypeError(f"quantized_linear: x: got {DTYPES[a.dtype_code].name}; expected float16, "
                        "bfloat16 or float32")
    if a.ndim_ < 1 or a.shape_[a.ndim_ - 1] < 1:
        raise ValueError(f"quantized_linear: x: got shape {a.shape}; expected terms along its "
                         "last axis")
    if s.ndim_ != 2:
        raise ValueError(f"quantized_linear: scales: got shape {s.shape}; expected (groups, n)")
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
    if result.size_:
        queue_quantized(rows, w, s, b, as_matrix(result))
    return result


cdef int queue_quantized(Tensor x, Tensor weight, Tensor scales, Tensor bias,
                         Tensor result) except -1:
    """Queue the product of row-major matrices."""
    cdef Operand x_operand, weight_operand, scales_operand, bias_operand, result_operand
    cdef int device = x.storage.device
    cdef uint64_t stream = current_handle(device)
    cdef QuantizedProduct given
    cdef QuantizedTask task
    x.fill_operand(&x_operand)
    weight.fill_operand(&weight_operand)
    scales.fill_operand(&scales_operand)
    result.fill_operand(&result_operand)
    given.x, given.weight, given.scales = &x_operand, &weight_operand, &scales_operand
    given.out, given.precision = &result_operand, precision_current()
    given.bias = NULL
    if bias is not None:
        bias.fill_operand(&bias_operand)
        given.bias = &bias_operand
    try:
        quantized_prepare(&task, device, stream, &given)
        work_begin()
        try:
            for tensor in (x, weight, scales, bias):
                if tensor is not None:
                    (<Tensor>tensor).prepare_read(stream)
            result.prepare_write(stream)
            quantized_launch(&task)
        finally:
            work_end(device)
    finally:
        quantized_release(&task)
    return 0
