"""Signatures of products: the keys of the results of tuning.

Unlike the key of a plan, a signature has names for its fields, does not depend on the device, and
can be turned back into a product to measure.
"""

#: The fields of a signature, in order; sizes and strides in elements, alignments in bytes.
FIELDS = (
    "m", "n", "k", "batch", "lda", "ldb", "ldc", "ldd", "stride_a", "stride_b", "stride_c",
    "stride_d", "op_a", "op_b", "type_a", "type_b", "type_d", "compute", "flags", "activation",
    "has_bias", "is_repeated", "align_a", "align_b", "align_c", "align_d",
)

#: Kinds of products by name: dtype of the matrices and the library's compute type.
KINDS = {
    "fp64": (DT_FLOAT64, COMPUTE_64F),
    "fp32": (DT_FLOAT32, COMPUTE_32F),
    "tf32": (DT_FLOAT32, COMPUTE_32F_FAST_TF32),
    "fp16": (DT_FLOAT16, COMPUTE_32F),
    "bf16": (DT_BFLOAT16, COMPUTE_32F),
}

cdef enum:
    FULL_ALIGNMENT = 256        # of the allocator's blocks

#: In elements, small enough that the bytes of several matrices fit 63 bits.
MAX_SPAN = 1 << 56


cdef void signature_of(const Product* product, Signature* signature) noexcept nogil:
    cdef int64_t* numbers = signature.numbers
    cdef int a, b, c, d
    product_alignments(product, &a, &b, &c, &d)
    numbers[0], numbers[1], numbers[2] = product.m, product.n, product.k
    numbers[3] = product.batch
    numbers[4], numbers[5], numbers[6] = product.lda, product.ldb, product.ldc
    numbers[7] = product.ldd
    numbers[8], numbers[9] = product.stride_a, product.stride_b
    numbers[10], numbers[11] = product.stride_c, product.stride_d
    numbers[12], numbers[13] = product.op_a, product.op_b
    numbers[14], numbers[15], numbers[16] = product.type_a, product.type_b, product.type_d
    numbers[17], numbers[18], numbers[19] = product.compute, product.flags, product.activation
    numbers[20], numbers[21] = product.bias != 0, product.outer_ndim != 0
    numbers[22], numbers[23], numbers[24], numbers[25] = a, b, c, d


cdef tuple product_signature(const Product* product):
    cdef Signature signature
    cdef int index
    signature_of(product, &signature)
    return tuple([signature.numbers[index] for index in range(SIGNATURE_COUNT)])


cdef int product_of_signature(tuple signature, Product* product) except -1:
    cdef int is_repeated
    if len(signature) != len(FIELDS):
        raise ValueError(f"signature: got {len(signature)} numbers; expected {len(FIELDS)}")
    (product.m, product.n, product.k, product.batch, product.lda, product.ldb, product.ldc,
     product.ldd, product.stride_a, product.stride_b, product.stride_c, product.stride_d,
     product.op_a, product.op_b, product.type_a, product.type_b, product.type_d, product.compute,
     product.flags, product.activation) = signature[:20]
    is_repeated = signature[21]
    # A repeated product is measured as one repetition, and never padded: see pad_choose.
    product.outer_ndim = 1 if is_repeated else 0
    product.a, product.b, product.c, product.d = (<tuple>signature)[22:26]
    product.bias = signature[20]
    product.alpha, product.beta = 1, 0
    product.alpha_imag = product.beta_imag = 0
    product.scale_a = product.scale_b = 0
    product.scale_mode_a = product.scale_mode_b = SCALE_TENSOR
    product.is_swapped = 0
    return check_product(product)


cdef int check_product(const Product* product) except -1:
    rows_a = product.m if product.op_a == OP_N else product.k
    rows_b = product.k if product.op_b == OP_N else product.n
    if min(product.m, product.n, product.k, product.batch) < 1:
        raise ValueError("signature: got a size below 1; expected 1 or more")
    if not (0 <= product.op_a <= 2 and 0 <= product.op_b <= 2):
        raise ValueError(f"signature: got op_a {product.op_a} and op_b {product.op_b}; expected "
                         "0, 1 or 2")
    if not all(0 <= t < DTYPE_COUNT for t in (product.type_a, product.type_b, product.type_d)):
        raise ValueError("signature: got an unknown element type; expected codes from 0 to "
                         f"{DTYPE_COUNT - 1}")
    if product.lda < rows_a or product.ldb < rows_b or min(product.ldc, product.ldd) < product.m:
        raise ValueError("signature: got a leading dimension below the rows of its matrix; "
                         "expected at least as many")
    columns_a = product.k if product.op_a == OP_N else product.m
    columns_b = product.n if product.op_b == OP_N else product.k
    check_span(rows_a, columns_a, product.lda, product.batch, product.stride_a)
    check_span(rows_b, columns_b, product.ldb, product.batch, product.stride_b)
    check_span(product.m, product.n, product.ldc, product.batch, product.stride_c)
    check_span(product.m, product.n, product.ldd, product.batch, product.stride_d)
    return 0


cdef int check_span(object rows, object columns, object ld, object batch,
                    object stride) except -1:
    """Check the elements from the first to the last of a batch, in numbers of any size."""
    if stride < 0 or (batch - 1) * stride + (columns - 1) * ld + rows > MAX_SPAN:
        raise ValueError("signature: got a batch of matrices that spans more than 2**56 elements; "
                         "expected fewer")
    return 0


def check_signature(signature):
    """Return the numbers of a signature; raise ValueError if they are not that of a product.

    >>> check_signature((1, 2))
    Traceback (most recent call last):
    ValueError: signature: got 2 numbers; expected 26
    """
    cdef Product product
    product_of_signature(tuple(operator.index(number) for number in signature), &product)
    return tuple(signature)


def signature_of_shape(int64_t m, int64_t n, int64_t k, kind, layout="NN"):
    """Return the signature of a row-major product of contiguous matrices.

    Parameters
    ----------
    m, n, k : int
        Sizes: m x k times k x n.
    kind : str
        One of :data:`KINDS`.
    layout : str
        Two letters, "N" or "T": whether each operand is stored untransposed or transposed.

    Examples
    --------
    >>> signature = signature_of_shape(16, 4096, 8192, "bf16", "NT")
    >>> dict(zip(FIELDS, signature))["n"]
    16
    """
    if kind not in KINDS:
        raise ValueError(f"kind: got {kind!r}; expected one of {', '.join(KINDS)}")
    if len(layout) != 2 or set(layout) - set("NT"):
        raise ValueError(f"layout: got {layout!r}; expected NN, NT, TN or TT")
    if min(m, n, k) < 1:
        raise ValueError(f"sizes: got {m}x{n}x{k}; expected 1 or more")
    dtype, compute = KINDS[kind]
    # A row-major product is the library's product with operands and sizes swapped.
    op_a, lda = (OP_T, k) if layout[1] == "T" else (OP_N, n)
    op_b, ldb = (OP_T, m) if layout[0] == "T" else (OP_N, k)
    return (n, m, k, 1, lda, ldb, n, n, 0, 0, 0, 0, op_a, op_b, dtype, dtype, dtype, compute, 0, 0,
            0, 0, FULL_ALIGNMENT, FULL_ALIGNMENT, FULL_ALIGNMENT, FULL_ALIGNMENT)
