"""Scaled dot-product attention: checks arguments and makes one call (blas/attention)."""

cdef int check_heads(str name, Tensor query, Tensor key, Tensor value) except -1:
    check_operand(name, "query", query, query)
    check_operand(name, "key", key, query)
    check_operand(name, "value", value, query)
    cdef int last = query.ndim_ - 1, axes = max(0, query.ndim_ - 3)
    cdef int64_t heads = query.shape_[last - 2] if last > 1 else 1
    if query.ndim_ != key.ndim_ or not has_extents(query, 0, axes, key.shape_):
        raise argument_error(ValueError, f"{name}: shape of key", key.shape,
                             f"the batch axes of query, {query.shape[:axes]}")
    if key.shape_[last] != query.shape_[last]:
        raise argument_error(ValueError, f"{name}: head size of key", key.shape_[last],
                             query.shape_[last])
    if value.ndim_ != key.ndim_ or not has_extents(value, 0, last, key.shape_):
        raise argument_error(ValueError, f"{name}: shape of value", value.shape,
                             f"{key.shape[:last]} and a head size")
    cdef int64_t kept = key.shape_[last - 2] if last > 1 else 1
    if heads != kept and (kept == 0 or heads % kept):
        raise argument_error(ValueError, f"{name}: heads of key", kept, f"a divisor of {heads}")
    return 0


cdef int check_operand(str name, str title, Tensor one, Tensor query) except -1:
    if one.ndim_ < 2:
        raise argument_error(ValueError, f"{name}: shape of {title}", one.shape,
                             "at least two axes")
    if dtype_kind(one.dtype_code) != KIND_FLOAT or one.dtype_code != query.dtype_code:
        raise argument_error(ValueError, f"{name}: dtype of {title}", DTYPES[one.dtype_code].name,
                             "one floating-point dtype for query, key and value")
    return 0


cdef Tensor of_four_axes(Tensor x):
    """x as (batch, heads, rows, size): a view, or a copy where the batch axes do not merge."""
    if x.ndim_ == 4:
        return x
    cdef tuple shape = (1,) * max(0, 4 - x.ndim_) + x.shape
    cdef int axes = len(shape) - 3
    batch = 1
    for extent in shape[:axes]:
        batch *= extent
    return x.reshape((batch, *shape[axes:]))


cdef inline bint is_on(Tensor one, int device) noexcept:
    """Whether a tensor is on a device, or absent."""
    return one is None or one.storage.device == device


cdef double positive(str name, str argument, object value) except -1:
    if value is None:
        return 0
    if not isinstance(value, (int, float)) or not value > 0:
        raise argument_error(ValueError, f"{name}: {argument}", value, "a number above 0")
    return value


cdef int64_t window_argument(str name, object value) except -1:
    """The number of keys in a window; 0 for None."""
    cdef int64_t window
    if value is None:
        return 0
    window = count_argument(value, name, "window")
    if window == 0:
        raise argument_error(ValueError, f"{name}: window", value, "an int above 0")
    return window


def scaled_dot_product_attention(
    query, key, value, attn_mask=None, dropout_p=0.0, is_causal=False, *, scale=None, window=None,
    soft_cap=None, kv_length=None,
):
    """Return softmax(scale * query @ key.T, masked) @ value.

    Parameters
    ----------
    query : Tensor
        Shape (..., heads, queries, size), of a floating-point dtype.
    key, value : Tensor
        Shape (..., kv_heads, keys, size), of the dtype of `query`. `kv_heads` must divide `heads`;
        each of them serves heads / kv_heads consecutive heads. The last extent of `value` may
        differ.
    attn_mask : Tensor, optional
        Broadcasts to (..., heads, queries, keys). A bool mask is True for keys that take part; a
        floating-point mask is added to the scores. A query that sees no key gives 0.
    dropout_p : float
        0: no weights are dropped.
    is_causal : bool
        A query sees the keys up to its own position; the last query is aligned with the last key.
    scale : float, optional
        1 / sqrt(size) by default.
    window : int, optional
        A query sees this many keys, the last of which is its own; implies `is_causal`.
    soft_cap : float, optional
        Scores s become soft_cap * tanh(s / soft_cap) before the mask is applied.
    kv_length : Tensor or int, optional
        The number of valid keys, read on the device when the work runs: one integer, or one for
        each element of the batch axes. Later keys are not seen, and may be uninitialized; keys
        and values that only a mask, `is_causal` or `window` hides must be finite.

    Returns
    -------
    Tensor
        Shape (..., heads, queries, last extent of `value`), of the dtype of `query`.

    Raises
    ------
    TypeError
        For a mask of integers.
    ValueError
        For shapes or dtypes that do not fit each other, a `dropout_p` other than 0, and a `window`
        or `soft_cap` that is not above 0. No work has been queued then.

    >>> x = gt.ones((1, 2, 4), device="host")
    >>> scaled_dot_product_attention(x, x, x, is_causal=True).numpy()[0, 0]
    array([1., 1., 1., 1.], dtype=float32)
    """
    cdef str name = "scaled_dot_product_attention"
    cdef Tensor q = tensor_argument(query, name), k = tensor_argument(key, name)
    cdef Tensor v = tensor_argument(value, name), mask = None, length = None, out, result, one
    cdef Attention given
    cdef int64_t[16] extents
    cdef Operand[6] operands
    cdef uint64_t stream
    cdef int device = q.storage.device
    if dropout_p and _float_argument(f"{name}: dropout_p", dropout_p) != 0:
        raise argument_error(ValueError, f"{name}: dropout_p", dropout_p,
                             "0: apply dropout to the result")
    if attn_mask is not None:
        mask = mask_argument(name, "attn_mask", attn_mask)
    if kv_length is not None:
        if type(kv_length) is int:
            kv_length = manipulation.full((), kv_length, dtype=np.int64, device=q.device)
        length = tensor_argument(kv_length, name)
    if not (is_on(k, device) and is_on(v, device) and is_on(mask, device)
            and is_on(length, device)):
        moved = iter(on_one_device(
            name, tuple([one for one in (q, k, v, mask, length) if one is not None]), None))
        q, k, v = next(moved), next(moved), next(moved)
        mask = None if mask is None else next(moved)
        length = None if length is None else next(moved)
        return scaled_dot_product_attention(
            q, k, v, mask, is_causal=is_causal, scale=scale, window=window, soft_cap=soft_cap,
            kv_length=length)
    check_heads(name, q, k, v)
    given.window = window_argument(name, window)
    given.soft_cap = positive(name, "soft_cap", soft_cap)
    given.scale = (1 / sqrt(<double>max(1, q.shape_[q.ndim_ - 1])) if scale is None
                   else <double>_float_argument(f"{name}: scale", scale))
    given.is_causal = flag_argument(is_causal, name, "is_causal") or given.window != 0
    given.precision = precision_current()
    cdef int i, last = q.ndim_ - 1, axes = max(0, q.ndim_ - 3)
    for i in range(last):
        extents[i] = q.shape_[i]
    extents[last] = v.shape_[last]
    if q.shape_[last] == 0 and v.size_:         # all scores are 0, as with vectors of one 0
        q = manipulation.zeros((*q.shape[:last], 1), dtype=q.dtype, device=q.device)
        k = manipulation.zeros((*k.shape[:last], 1), dtype=q.dtype, device=q.device)
    if q.size_ == 0 or k.size_ == 0 or v.size_ == 0:
        return manipulation.zeros((*q.shape[:last], extents[last]), dtype=q.dtype, device=q.device)
    out = empty_tensor(q.dtype_code, q.ndim_, extents, device)
    if mask is not None:
        wanted = (*q.shape[:last], k.shape_[last - 1])
        try:
            mask = of_four_axes(manipulation.broadcast_to(mask, wanted))
        except ValueError:
            raise argument_error(ValueError, f"{name}: shape of attn_mask", mask.shape,
                                 f"one that broadcasts to {wanted}") from None
    if length is not None:
        if dtype_kind(length.dtype_code) not in (KIND_INT, KIND_UINT):
            raise argument_error(ValueError, f"{name}: dtype of kv_length",
                                 DTYPES[length.dtype_code].name, "an integer dtype")
        if length.size_ != 1 and length.shape != q.shape[:axes]:
            raise argument_error(ValueError, f"{name}: shape of kv_length", length.shape,
                                 f"() or {q.shape[:axes]}")
    q, k, v = of_four_axes(q), of_four_axes(k), of_four_axes(v)
    if length is not None:
        length = manipulation.broadcast_to(length.reshape(-1), (q.shape_[0],))
    result = of_four_axes(out)
    q.fill_operand(&operands[0])
    k.fill_operand(&operands[1])
    v.fill_operand(&operands[2])
    result.fill_operand(&operands[3])
    given.query, given.key, given.value = &operands[0], &operands[1], &operands[2]
    given.out = &operands[3]
    given.mask = given.length = NULL
    if mask is not None:
        mask.fill_operand(&operands[4])
        given.mask = &operands[4]
    if length is not None:
        length.fill_operand(&operands[5])
        given.length = &operands[5]
    stream = current_handle(device)
    work_begin()
    try:
        q.prepare_read(stream)
        k.prepare_read(stream)
        v.prepare_read(stream)
        if mask is not None:
            mask.prepare_read(stream)
        if length is not None:
            length.prepare_read(stream)
        result.prepare_write(stream)
        attend(device, stream, &given)
    finally:
        work_end(device)
    return out
