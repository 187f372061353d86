"""Products from views, and the compute types of products."""


def prepared(a, b, out, addend=None):
    """Return the result of :c:`prepare` for views, as a dict.

    Parameters
    ----------
    a, b, out, addend : tuple
        ``(address, dtype code, shape, strides)``, strides in elements.

    Returns
    -------
    dict
        The fields of the product, with ``outer`` a list of ``(count, a, b, c, d)``; or
        ``{"copies": [...]}`` with the operands that need a copy, or ``{"status": number}`` for
        shapes that do not match.

    Examples
    --------
    >>> f = prepared((0, 11, (2, 3), (3, 1)), (0, 11, (3, 4), (4, 1)), (0, 11, (2, 4), (4, 1)))
    >>> f["m"], f["n"], f["k"], f["lda"], f["ldb"], f["ldd"], f["is_swapped"]
    (4, 2, 3, 4, 3, 4, 1)
    """
    cdef Operand operand_a, operand_b, operand_out, operand_addend
    cdef const Operand* given = NULL
    cdef Product product
    cdef int status, copies, index
    read_operand(a, &operand_a)
    read_operand(b, &operand_b)
    read_operand(out, &operand_out)
    if addend is not None:
        read_operand(addend, &operand_addend)
    status = check_out(&operand_a, &operand_b, &operand_out)
    if status:
        return {"status": status}
    if addend is not None:
        given = &operand_addend
    copies = prepare(&operand_a, &operand_b, given, &operand_out, &product)
    if copies:
        names = {"a": COPY_A, "b": COPY_B, "out": COPY_OUT, "addend": COPY_ADDEND}
        return {"copies": [name for name, bit in names.items() if copies & bit]}
    return {
        "m": product.m, "n": product.n, "k": product.k, "batch": product.batch,
        "op_a": product.op_a, "op_b": product.op_b, "is_swapped": product.is_swapped,
        "lda": product.lda, "ldb": product.ldb, "ldc": product.ldc, "ldd": product.ldd,
        "stride_a": product.stride_a, "stride_b": product.stride_b,
        "stride_c": product.stride_c, "stride_d": product.stride_d,
        "a": product.a, "b": product.b, "c": product.c, "d": product.d,
        "outer": [
            (product.outer_count[index], product.outer_a[index], product.outer_b[index],
             product.outer_c[index], product.outer_d[index])
            for index in range(product.outer_ndim)
        ],
    }


COMPUTE_NAME = {
    COMPUTE_16F: "16F",
    COMPUTE_32F: "32F",
    COMPUTE_64F: "64F",
    COMPUTE_32I: "32I",
    COMPUTE_32F_FAST_16BF: "32F_FAST_16BF",
    COMPUTE_32F_FAST_TF32: "32F_FAST_TF32",
    COMPUTE_32F_EMULATED_16BFX9: "32F_EMULATED_16BFX9",
}


cdef int read_operand(tuple view, Operand* operand) except -1:
    cdef int axis
    ptr, dtype, shape, strides = view
    operand.ptr = ptr
    operand.dtype = dtype
    operand.ndim = len(shape)
    operand.is_scalar = 0
    for axis in range(operand.ndim):
        operand.shape[axis] = shape[axis]
        operand.strides[axis] = strides[axis]
    return 0


def compute_type_name(int dtype, setting=None):
    """Return the library's compute type for products of a dtype, without its prefix.

    >>> compute_type_name(11), compute_type_name(11, "tf32"), compute_type_name(9)
    ('32F', '32F_FAST_TF32', '32F')
    """
    return COMPUTE_NAME[compute_type(dtype, dtype, precision_for(setting))]
