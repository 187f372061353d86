"""Integer products on a GPU, for the types and layouts that cuBLASLt has no kernel for."""

from libc.stdint cimport int64_t, uint32_t, uint64_t

from gputensor._kernels.module_cache cimport compile_kernel, launch_kernel
from gputensor.blas.library cimport OP_N
from gputensor.blas.product cimport Product
from gputensor.blas.scale_factor cimport integer_factor

from gputensor._kernels.dtypes import DTYPES
from gputensor.blas.integer_source import source

cdef enum:
    TILE = 16
    BLOCK = 256
    MAX_GRID = 0x7FFFFFFF

cdef struct Parameters:         # as in integer_source.py
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

cdef dict functions = {}        # (device, input code, output code) -> compiled kernel


cdef uint64_t function_for(const Product* product) except 0:
    key = (product.device, product.type_a, product.type_d)
    found = functions.get(key)
    if found is None:
        text = source(DTYPES[product.type_a].name, DTYPES[product.type_d].name)
        found = functions[key] = compile_kernel(product.device, text, "kernel", ())
    return found


cdef int integer_run(const Product* product, uint64_t stream) except -1:
    cdef Parameters p
    cdef int64_t tiles
    cdef uint64_t function = function_for(product)
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
                  <uint32_t>(tiles if tiles < MAX_GRID else MAX_GRID), BLOCK, 0, &p)
    return 0
