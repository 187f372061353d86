"""Integer products on a GPU, for types and layouts for which cuBLASLt has no kernel.

The kernel does not compete with the libraries: planning takes it where cuBLASLt refuses.
"""

cdef enum:
    INTEGER_TILE = 16
    INTEGER_BLOCK = 256
    INTEGER_MAX_GRID = 0x7FFFFFFF

cdef extern from "gputensor/blas/kernels/integer/integer.h" namespace "gputensor" nogil:
    cdef struct IntegerParameters:
        uint64_t a
        uint64_t b
        uint64_t c
        uint64_t d
        int64_t m
        int64_t n
        int64_t k
        int64_t batch
        int64_t row_a
        int64_t column_a
        int64_t row_b
        int64_t column_b
        int64_t ldc
        int64_t ldd
        int64_t stride_a
        int64_t stride_b
        int64_t stride_c
        int64_t stride_d
        int64_t alpha
        int64_t beta

cdef KernelTable integer_kernels


cdef bint integer_can(const Product* product) except -1 nogil:
    return is_integer(product.type_a)


cdef int integer_build(const Product* product, const Choice* choice,
                       Plan* plan) except -1 nogil:
    cdef uint64_t key = product.type_a << 5 | product.type_d
    plan.handle = kernel_of(&integer_kernels, key, integer_program, product)
    return BLAS_OK


cdef object integer_program(const void* variant):
    cdef const Product* product = <const Product*>variant
    return programs.integer(DTYPES[product.type_a].name, DTYPES[product.type_d].name)


cdef int integer_launch(const Work* work) except -1 nogil:
    cdef const Product* product = work.products
    cdef IntegerParameters p
    cdef Grid grid
    cdef int64_t tiles
    memset(&p, 0, sizeof(p))
    p.a, p.b, p.c, p.d = product.a, product.b, product.c, product.d
    p.m, p.n, p.k, p.batch = product.m, product.n, product.k, product.batch
    p.row_a = 1 if product.op_a == OP_N else product.lda
    p.column_a = product.lda if product.op_a == OP_N else 1
    p.row_b = 1 if product.op_b == OP_N else product.ldb
    p.column_b = product.ldb if product.op_b == OP_N else 1
    p.ldc, p.ldd = product.ldc, product.ldd
    p.stride_a, p.stride_b = product.stride_a, product.stride_b
    p.stride_c, p.stride_d = product.stride_c, product.stride_d
    p.alpha = integer_factor(product.alpha, product.alpha_imag)
    p.beta = integer_factor(product.beta, product.beta_imag)
    tiles = tiles_of(p.m, INTEGER_TILE) * tiles_of(p.n, INTEGER_TILE) * p.batch
    grid_of_blocks(&grid, tiles if tiles < INTEGER_MAX_GRID else INTEGER_MAX_GRID, INTEGER_BLOCK, 0)
    return queue_kernel(work, work.plan.handle, &grid, &p, sizeof(p))
