"""Scaled dot-product attention: one call, whatever the device makes of it (blas/attention)."""

cdef int check_heads(str name, Tensor query, Tensor key, Tensor value) except -1:
    for title, one in (("query", query), ("key", key), ("value", value)):
        if one.ndim < 2:
            raise argument_error(ValueError, f"{name}: shape of {title}", one.shape,
                                 "two axes or more")
        if (dtype_kind((<Tensor>one).dtype_code) != KIND_FLOAT
                or (<Tensor>one).dtype_code != query.dtype_code):
            raise argument_error(ValueError, f"{name}: dtype of {title}",
                                 DTYPES[(<Tensor>one).dtype_code].name,
                                 "one floating-point dtype for query, key and value")
    sizes = query.shape, key.shape, value.shape
    if sizes[1][-1] != sizes[0][-1]:
        raise argument_error(ValueError, f"{name}: head size of key", sizes[1][-1], sizes[0][-1])
    if sizes[2][:-1] != sizes[1][:-1]:
        raise argument_error(ValueError, f"{name}: shape of value", sizes[2],
                             f"{sizes[1][:-1]} and a head size")
    if query.ndim_ != key.ndim_ or sizes[0][:-3] != sizes[1][:-3]:
        raise argument_error(ValueError, f"{name}: shape of key", sizes[1],
                             f"the batch axes of query, {sizes[0][:-3]}")
    heads, kept = (one[-3] if len(one) > 2 else 1 for one in sizes[:2])
    if heads != kept and (kept == 0 or heads % kept):
        raise argument_error(ValueError, f"{name}: heads of key", kept, f"a divisor of {heads}")
    return 0


cdef Tensor of_four_axes(Tensor x):
    """A view (a copy where the batch axes do not merge) of shape (batch, heads, rows, size)."""
    if x.ndim_ == 4:
        return x
    shape = (1,) * max(0, 4 - x.ndim_) + x.shape
    batch = 1
    for extent in shape[:-3]:
        batch *= extent
    return x.reshape((batch, *shape[-3:]))


cdef double positive(str name, str argument, object value) except -1:
    if value is None:
        return 0
    if not isinstance(value, (int, float)) or not value > 0:
        raise argument_error(ValueError, f"{name}: {argument}", value, "a number above 0")
    return value


def scaled_dot_product_attention(
    query, key, value, attn_mask=None, *, is_causal=False, scale=None, window=None, soft_cap=None,
    kv_length=None,
):
    """Return softmax(scale * query @ key.T, masked) @ value.

    Parameters
    ----------
    query : Tensor
        Of shape (..., heads, queries, size).
    key, value : Tensor
        Of shape (..., kept heads, keys, size); kept heads divide the heads, and each serves as
        many of them that follow each other. The size of value may differ.
    attn_mask : Tensor, optional
        Broadcasts to (..., heads, queries, keys). Of bool: True takes part. Of floats: added to
        the scores. A query that sees no key gives 0.
    is_causal : bool
        A query sees the keys up to its own; the last query is at the last key.
    scale : float, optional
        1 / sqrt(size) when not given.
    window : int, optional
        A query sees this many keys, its own the last one; implies `is_causal`.
    soft_cap : float, optional
        Scores s become soft_cap * tanh(s / soft_cap) before the mask.
    kv_length : Tensor, optional
        How many keys there are, read on the device when the work runs; an integer, or one for each
        element of the batch axis. Keys beyond are not seen.

    >>> x = gt.ones((1, 2, 4), device="host")
    >>> scaled_dot_product_attention(x, x, x, is_causal=True).numpy()[0, 0]
    array([1., 1., 1., 1.], dtype=float32)
    """
    cdef str name = "scaled_dot_product_attention"
    cdef Tensor q = tensor_argument(query, name), k = tensor_argument(key, name)
    cdef Tensor v = tensor_argument(value, name), mask = None, length = None, out, result, one
    cdef Attention given
    cdef Operand[6] operands
    cdef uint64_t stream
    cdef int device = q.storage.device, i
    check_heads(name, q, k, v)
    common_device(q, k, name)
    common_device(q, v, name)
    given.window = <int64_t>positive(name, "window", window)
    given.soft_cap = positive(name, "soft_cap", soft_cap)
    given.scale = 1 / max(1, q.shape_[q.ndim_ - 1]) ** 0.5 if scale is None else scale
    given.is_causal = flag_argument(is_causal, name, "is_causal") or given.window != 0
    given.precision = precision_current()
    shape = (*q.shape[:-1], v.shape[-1])
    if q.size_ == 0 or k.size_ == 0 or v.size_ == 0:
        return manipulation.zeros(shape, dtype=q.dtype, device=q.device)
    if attn_mask is not None:
        mask = tensor_argument(attn_mask, name)
        common_device(q, mask, name)
        mask = of_four_axes(manipulation.broadcast_to(mask, (*q.shape[:-1], k.shape[-2])))
    if kv_length is not None:
        length = tensor_argument(kv_length, name)
        common_device(q, length, name)
        if dtype_kind(length.dtype_code) not in (KIND_INT, KIND_UINT):
            raise argument_error(ValueError, f"{name}: dtype of kv_length",
                                 DTYPES[length.dtype_code].name, "an integer dtype")
        if length.size_ != 1 and length.shape != q.shape[:max(0, q.ndim_ - 3)]:
            raise argument_error(ValueError, f"{name}: shape of kv_length", length.shape,
                                 f"() or {q.shape[:max(0, q.ndim_ - 3)]}")
    q, k, v = of_four_axes(q), of_four_axes(k), of_four_axes(v)
    if length is not None:
        length = manipulation.broadcast_to(length.reshape(-1), (q.shape_[0],))
    out = manipulation.empty(shape, dtype=q.dtype, device=q.device)
    result = of_four_axes(out)
    tensors = [one for one in (q, k, v, mask, length) if one is not None]
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
        for one in tensors:
            one.prepare_read(stream)
        result.prepare_write(stream)
        attend(device, stream, &given)
    finally:
        work_end(device)
    return out
