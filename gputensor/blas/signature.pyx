"""Signatures of products: what the results of tuning are filed under.

Unlike the key of a plan, a signature has names for its fields, says nothing of the device, and can
be turned back into a product to measure.
"""

from gputensor._kernels.operand cimport DTYPE_COUNT
from gputensor.blas.library cimport OP_N, SCALE_TENSOR
from gputensor.blas.plan cimport product_alignments
from gputensor.blas.product cimport Product

__all__ = ["FIELDS", "check_signature"]

#: The fields of a signature, in order; sizes and strides in elements, alignments in bytes.
FIELDS = (
    "m", "n", "k", "batch", "lda", "ldb", "ldc", "ldd", "stride_a", "stride_b", "stride_c",
    "stride_d", "op_a", "op_b", "type_a", "type_b", "type_d", "compute", "flags", "activation",
    "has_bias", "is_repeated", "align_a", "align_b", "align_c", "align_d",
)


cdef tuple product_signature(const Product* product):
    cdef int a, b, c, d
    product_alignments(product, &a, &b, &c, &d)
    return (
        product.m, product.n, product.k, product.batch, product.lda, product.ldb, product.ldc,
        product.ldd, product.stride_a, product.stride_b, product.stride_c, product.stride_d,
        product.op_a, product.op_b, product.type_a, product.type_b, product.type_d,
        product.compute, product.flags, product.activation, int(product.bias != 0),
        int(product.outer_ndim != 0), a, b, c, d,
    )


cdef int product_of_signature(tuple signature, Product* product) except -1:
    cdef int is_repeated
    if len(signature) != len(FIELDS):
        raise ValueError(f"a signature has {len(FIELDS)} numbers, not {len(signature)}")
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
        raise ValueError("a signature has a size below 1")
    if not (0 <= product.op_a <= 2 and 0 <= product.op_b <= 2):
        raise ValueError("op_a and op_b of a signature are 0, 1 or 2")
    if not all(0 <= t < DTYPE_COUNT for t in (product.type_a, product.type_b, product.type_d)):
        raise ValueError("a signature has a type that is not an element type")
    if product.lda < rows_a or product.ldb < rows_b or min(product.ldc, product.ldd) < product.m:
        raise ValueError("a signature has a leading dimension that is too small")
    return 0


def check_signature(signature):
    """Raise ValueError for numbers that are not the signature of a product; else return them.

    >>> check_signature((1, 2))
    Traceback (most recent call last):
    ValueError: a signature has 26 numbers, not 2
    """
    cdef Product product
    product_of_signature(tuple(int(number) for number in signature), &product)
    return tuple(signature)
