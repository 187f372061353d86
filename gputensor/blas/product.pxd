# A Product is one call of a library in the library's own terms, where every matrix is column-major:
#
#   D[m, n] = alpha * op_a(A) * op_b(B) + beta * C[m, n]      for each i in [0, batch)
#
# A lies in memory with lda elements from column to column; op_a(A) is m x k, op_b(B) is k x n. The
# matrices of item i start stride_x * i elements after x. Further batch dimensions that no single
# stride describes are `outer`: the call is repeated for each of their index tuples.
#
# A row-major result is the column-major transpose, so such a product is computed as
# D^T = op(B)^T op(A)^T: is_swapped says that A and B here are the caller's b and a.

from libc.stdint cimport int64_t, uint32_t, uint64_t

cdef enum:
    MAX_OUTER = 16

cdef enum:                      # what the epilogue adds after alpha * AB + beta * C
    ACT_NONE = 0
    ACT_RELU = 1
    ACT_GELU_TANH = 2           # the tanh form, which the library has
    ACT_GELU = 3                # the exact form; ours
    ACT_SILU = 4

cdef struct Product:
    int64_t m, n, k, batch
    int64_t lda, ldb, ldc, ldd
    int64_t stride_a, stride_b, stride_c, stride_d
    int op_a, op_b
    int type_a, type_b, type_d  # DType codes; C has the type of D
    int compute                 # cublasComputeType_t
    int device
    int is_swapped
    uint32_t flags              # PRODUCT_*
    int activation              # of the library's epilogue
    uint64_t a, b, c, d         # addresses; c == d unless an addend lies elsewhere
    uint64_t bias               # 0, or one value for each row of D, of the type of D
    uint64_t scale_a, scale_b   # 0, or the address of float32 factors of A and B (fp8)
    int scale_mode_a, scale_mode_b  # SCALE_* of library.pxd
    double alpha, beta          # the real parts; for integers see scale_factor.pxd
    double alpha_imag, beta_imag
    int outer_ndim
    int64_t outer_count[MAX_OUTER]
    int64_t outer_a[MAX_OUTER]  # in elements
    int64_t outer_b[MAX_OUTER]
    int64_t outer_c[MAX_OUTER]
    int64_t outer_d[MAX_OUTER]

cdef enum:
    PRODUCT_REDUCED_REDUCTION = 1   # partial sums may be rounded to the output type
    PRODUCT_DETERMINISTIC = 2
    PRODUCT_FAST_ACCUMULATION = 4   # fp8: partial sums stay in the tensor core's accumulator
    PRODUCT_POINTERS = 8            # the repetitions go as one pointer-array call
    PRODUCT_AS_IT_IS = 16           # nothing is copied for speed: there is no memory for it
    PRODUCT_FACTORS = 32            # int8 into int32, where alpha is not 1 or beta not 0 or 1
