"""Integer products on a GPU, for the types and layouts that cuBLASLt has no kernel for."""

cdef enum:
    TILE = 16
    BLOCK = 256
    MAX_GRID = 0x7FFFFFFF

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

cdef KernelTable kernels = KernelTable()


cdef uint64_t function_for(const Product* product) except 0:
    cdef uint64_t key = product.type_a << 5 | product.type_d
    cdef void* found = kernel_find(kernels, key)
    if found == NULL:
        found = kernels.add(key, programs.integer(
            DTYPES[product.type_a].name, DTYPES[product.type_d].name))
    return kernel_function(<Kernel>found, product.device)


cdef int integer_run(const Product* product, uint64_t stream) except -1:
    cdef IntegerParameters p
    cdef int64_t tiles
    cdef uint64_t function = function_for(product)
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
    tiles = ((p.m + TILE - 1) // TILE) * ((p.n + TILE - 1) // TILE) * p.batch
    launch_kernel(product.device, stream, function,
                  <uint32_t>(tiles if tiles < MAX_GRID else MAX_GRID), BLOCK, 0, &p,
                  sizeof(p))
    return 0
