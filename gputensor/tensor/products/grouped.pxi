"""Grouped products: many matrix products of different shapes in one call.

There are two forms: a list of pairs, and groups of rows of one tensor times a stack of matrices (a
mixture of experts). The order is that of product_call.pxi: check everything, allocate the results,
prepare, order the reads and writes after other streams, queue the work.
"""

cdef str NAME = "grouped_matmul"


def grouped_matmul(a, b, /, offsets=None, *, out=None, out_dtype=None, precision=None):
    """Return the products of many pairs of matrices of different shapes, in one call.

    Parameters
    ----------
    a, b : sequence of Tensor, or Tensor
        Either two sequences of equal length: ``result[i] = a[i] @ b[i]``, each pair with shapes as
        in :func:`matmul`. Or tokens of shape ``(tokens, k)`` and weights of shape
        ``(groups, k, n)``: rows ``offsets[g - 1]`` to ``offsets[g]`` of the tokens (from 0 for the
        first group) are multiplied by ``b[g]``.
    offsets : sequence of int, numpy.ndarray or Tensor
        For the second form: the end of each group, one int for each group, not decreasing and at
        most `tokens`. Groups may be empty; rows after the last offset become 0. A Tensor (int32, or
        int64, which is converted) is read on its device in stream order: the host does not wait for
        it, the call can be captured in a graph, and its values are clamped to this rule instead of
        checked.
    out : sequence of Tensor, or Tensor, optional
        The tensors to write to, as in :func:`matmul`; they must not overlap each other.
    out_dtype : dtype, optional
        The type of the results if `out` is not given: that of the operands, or float32 for
        float16 and bfloat16.
    precision : str or Precision, optional
        The precision of this call; see :class:`gputensor.blas.Precision`.

    Returns
    -------
    list of Tensor, or Tensor
        `out`, or new row-major tensors.

    Raises
    ------
    ValueError
        Shapes or offsets do not match, devices differ, or a result overlaps an operand.
    TypeError
        The element types have no product. With offsets in a Tensor they must be float32, float16 or
        bfloat16.

    Notes
    -----
    Queued on the current stream. On a GPU, small matrices of float32, float16 and bfloat16 are one
    library call (cuBLAS 12.5 or newer); others are one product each.

    Examples
    --------
    >>> import gputensor as gt
    >>> small, wide = gt.grouped_matmul(
    ...     [gt.ones((2, 3)), gt.ones((4, 5))], [gt.ones((3, 1)), gt.ones((5, 6))]
    ... )
    >>> small.shape, wide.shape
    ((2, 1), (4, 6))
    >>> tokens, experts = gt.ones((5, 3)), gt.ones((3, 3, 2))
    >>> gt.grouped_matmul(tokens, experts, [2, 2, 4]).numpy()[:, 0]
    array([3., 3., 3., 3., 0.], dtype=float32)
    """
    if type(a) is Tensor or type(b) is Tensor:
        if offsets is None:
            raise ValueError(f"{NAME}: offsets: got None for tokens and weights; expected the end "
                             "of each group (or pairs as two sequences)")
        if type(offsets) is Tensor:
            return multiply_at_offsets(a, b, offsets, out, out_dtype)
        return multiply_rows(a, b, offsets, out, out_dtype, precision)
    if offsets is not None:
        raise ValueError(f"{NAME}: offsets: got offsets with sequences of pairs; expected them "
                         "only with tokens and weights")
    return multiply_pairs(a, b, out, out_dtype, precision)


# ---- pairs

cdef list tensors_of(object value, str which):
    if not isinstance(value, (list, tuple)):
        raise TypeError(f"{NAME}: {which}: got {type(value).__name__}; expected a list or tuple "
                        "of Tensors, or a Tensor")
    return [tensor_argument(one, NAME) for one in value]


cdef int result_code(Tensor a, object out, object out_dtype) except -2:
    if out_dtype is not None:
        return dtype_argument(out_dtype, -1)
    return (<Tensor>out).dtype_code if out is not None else a.dtype_code


cdef list multiply_pairs(object a, object b, object out, object out_dtype, object precision):
    cdef list left = tensors_of(a, "the first argument")
    cdef list right = tensors_of(b, "the second argument")
    cdef list given = [None] * len(left) if out is None else tensors_of(out, "out")
    cdef list results = []
    cdef Tensor one, other, result
    cdef int64_t index
    cdef int64_t count = len(left)
    cdef int device, dtype, place
    cdef Operand[3] three
    cdef Operand* operands
    cdef Pairs pairs
    cdef Options options
    if len(right) != count or len(given) != count:
        raise ValueError(f"{NAME}: operands: got {count} first, {len(right)} second and "
                         f"{'no' if out is None else len(given)} out; expected equally many")
    if count == 0:
        return results
    left, right = brought_together(left, right, given)
    options_init(&options, precision_for(precision))
    device = (<Tensor>left[0]).storage.device
    operands = <Operand*>calloc(3 * count, sizeof(Operand))
    if operands is NULL:
        raise MemoryError(f"no memory for {count} products")
    pairs = Pairs(count, operands, operands + count, operands + 2 * count)
    try:
        for index in range(count):
            one, other = left[index], right[index]
            check_element_types(NAME, one, other)
            if one.dtype_code != other.dtype_code:
                dtype = promote_codes(one.dtype_code, other.dtype_code)
                left[index] = one = one if one.dtype_code == dtype else copied(one, dtype)
                right[index] = other = other if other.dtype_code == dtype else copied(other, dtype)
        for index in range(count):
            one = left[index]
            result = result_for(NAME, one, right[index], given[index],
                                result_code(one, given[index], out_dtype), three)
            for place in range(3):
                operands[place * count + index] = three[place]
            results.append(result)
        if out is not None:
            check_grouped_extents(&pairs)
        queue(device, &pairs, &options, left, right, results)
    finally:
        free(operands)
    return results if out is None else out if isinstance(out, list) else results


cdef tuple brought_together(list left, list right, list given):
    """Return the operands, all on one device."""
    cdef int device = (<Tensor>left[0]).storage.device
    for tensor in (*left, *right, *given):
        if tensor is not None and (<Tensor>tensor).storage.device != device:
            out = next((one for one in given if one is not None), None)
            together = list(on_one_device(NAME, (*left, *right), out))
            return together[:len(left)], together[len(left):]
    return left, right


cdef int queue(int device, const Pairs* pairs, const Options* options, list left, list right,
               list results) except -1:
    """Prepare, order and queue products with checked operands."""
    cdef uint64_t stream = current_handle(device)
    cdef GroupedTask task
    try:
        grouped_prepare(&task, device, stream, pairs, options)
        work_begin()
        try:
            for tensor in left:
                (<Tensor>tensor).prepare_read(stream)
            for tensor in right:
                (<Tensor>tensor).prepare_read(stream)
            for tensor in results:
                (<Tensor>tensor).prepare_write(stream)
            grouped_launch(&task)
        finally:
            work_end(device)
    finally:
        grouped_release(&task)
    return 0


# ---- tokens and weights

cdef bint on_device_of(Tensor tokens, tuple others):
    for other in others:
        if type(other) is Tensor and (<Tensor>other).storage.device != tokens.storage.device:
            return False
    return True


cdef Tensor token_result(Tensor tokens, Tensor weights, object out, object out_dtype):
    """Return the tensor to write; its shape is checked later, with the others."""
    cdef int64_t[2] shape
    cdef Tensor result
    cdef int code
    if out is not None:
        result = written_argument(out, NAME)
        code = result_code(tokens, result, out_dtype)
        if result.dtype_code != code:
            raise TypeError(f"{NAME}: out: got {DTYPES[result.dtype_code].name}; expected "
                            f"{DTYPES[code].name}, which is out_dtype")
        return result
    if tokens.ndim_ != 2 or weights.ndim_ != 3:
        raise ValueError(f"{NAME}: weights: got shape {weights.shape} for tokens of shape "
                         f"{tokens.shape}; expected (groups, k, n) for (tokens, k)")
    shape[0], shape[1] = tokens.shape_[0], weights.shape_[2]
    return empty_tensor(result_code(tokens, None, out_dtype), 2, shape, tokens.storage.device)


cdef Tensor multiply_at_offsets(object a, object b, Tensor offsets, object out, object out_dtype):
    cdef Tensor tokens = tensor_argument(a, NAME)
    cdef Tensor weights = tensor_argument(b, NAME)
    cdef Tensor narrow, result
    cdef int device
    cdef uint64_t stream
    cdef Operand left, right, target, ends
    if not on_device_of(tokens, (weights, offsets, out)):
        tokens, weights, offsets = on_one_device(NAME, (tokens, weights, offsets), out)
    device = tokens.storage.device
    result = token_result(tokens, weights, out, out_dtype)
    if offsets.dtype_code != DT_INT32 and offsets.dtype_code != DT_INT64:
        raise TypeError(f"{NAME}: offsets: got {DTYPES[offsets.dtype_code].name}; expected int32")
    tokens.fill_operand(&left)
    weights.fill_operand(&right)
    result.fill_operand(&target)
    offsets.fill_operand(&ends)
    offsets_check(&left, &right, &target, &ends)
    if offsets.dtype_code != DT_INT32:
        # Clamped before the conversion: values beyond int32 would wrap into rows of other groups.
        narrow = empty_tensor(DT_INT32, 1, offsets.shape_, device)
        offsets = elementwise_tensor(OP_CLIP, NAME, (offsets, 0, tokens.shape_[0]), narrow,
                                     RULE_SAME)
    offsets = contiguous(offsets)
    offsets.fill_operand(&ends)
    stream = current_handle(device)
    work_begin()
    try:
        tokens.prepare_read(stream)
        weights.prepare_read(stream)
        offsets.prepare_read(stream)
        result.prepare_write(stream)
        with nogil:
            offsets_launch(device, stream, &left, &right, &target, &ends)
    finally:
        work_end(device)
    return result


cdef list ends_of(object offsets, int64_t groups, int64_t tokens):
    """Return offsets on the host as ints, after checking them."""
    cdef list ends
    cdef int64_t before = 0
    try:
        given = offsets.tolist() if hasattr(offsets, "tolist") else offsets
        ends = [operator.index(end) for end in given]
    except TypeError as error:
        raise TypeError(f"{NAME}: offsets: got {error}; expected a sequence of ints or a Tensor"
                        ) from None
    if len(ends) != groups:
        raise ValueError(f"{NAME}: offsets: got {len(ends)}; expected {groups}, one for each group")
    for end in ends:
        if end < before or end > tokens:
            raise ValueError(f"{NAME}: offsets: got {end} after {before}; expected {before} to "
                             f"{tokens}, the number of tokens")
        before = end
    return ends


cdef Tensor multiply_rows(object a, object b, object offsets, object out, object out_dtype,
                          object precision):
    cdef Tensor tokens = tensor_argument(a, NAME)
    cdef Tensor weights = tensor_argument(b, NAME)
    cdef Tensor result
    cdef int device
    cdef int64_t groups, group, start, end
    cdef Operand left, right, target
    cdef Operand* operands
    cdef Pairs pairs
    cdef Options options
    cdef list ends
    if not on_device_of(tokens, (weights, out)):
        tokens, weights = on_one_device(NAME, (tokens, weights), out)
    device = tokens.storage.device
    result = token_result(tokens, weights, out, out_dtype)
    tokens.fill_operand(&left)
    weights.fill_operand(&right)
    result.fill_operand(&target)
    offsets_check(&left, &right, &target, NULL)
    groups = weights.shape_[0]
    ends = ends_of(offsets, groups, tokens.shape_[0])
    options_init(&options, precision_for(precision))
    operands = <Operand*>calloc(3 * groups + 1, sizeof(Operand))
    if operands is NULL:
        raise MemoryError(f"no memory for {groups} products")
    pairs = Pairs(groups, operands, operands + groups, operands + 2 * groups)
    try:
        start = 0
        for group in range(groups):
            end = ends[group]
            # Empty groups are products without elements; no work is queued for them.
            rows_of(&left, start, end, &operands[group])
            matrix_of(&right, group, &operands[groups + group])
            rows_of(&target, start, end, &operands[2 * groups + group])
            start = end
        queue(device, &pairs, &options, [tokens], [weights], [result])
        if start < tokens.shape_[0]:
            rows_of(&target, start, tokens.shape_[0], &operands[0])
            zero_rows(device, &operands[0])
    finally:
        free(operands)
    return result


cdef void rows_of(const Operand* matrix, int64_t start, int64_t end, Operand* out) noexcept nogil:
    out[0] = matrix[0]
    out.ptr += <uint64_t>(start * matrix.strides[0] * dtype_itemsize(matrix.dtype))
    out.shape[0] = end - start


cdef void matrix_of(const Operand* stack, int64_t index, Operand* out) noexcept nogil:
    out[0] = stack[0]
    out.ptr += <uint64_t>(index * stack.strides[0] * dtype_itemsize(stack.dtype))
    out.ndim = 2
    out.shape[0], out.shape[1] = stack.shape[1], stack.shape[2]
    out.strides[0], out.strides[1] = stack.strides[1], stack.strides[2]


cdef int zero_rows(int device, Operand* rows) except -1:
    """Fill rows that belong to no group with 0; the write of the result is already ordered."""
    cdef Operand zero
    zero.is_scalar = 1
    zero.ndim = 0
    zero.ptr = 0
    zero.integer = 0
    zero.dtype = rows.dtype
    zero.real = zero.imag = 0
    return fill(device, current_handle(device), rows, &zero)
