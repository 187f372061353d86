"""Products by cuBLAS: GemmEx and GemmStridedBatchedEx in their 64-bit forms.

The handle belongs to this thread; its stream, workspace and math mode are set only when they
change. A batch above 65,535 goes in pieces, since a grid has no more blocks than that in its
third dimension.
"""

from libc.stdint cimport int64_t, uint64_t

from gputensor._kernels.dtypes cimport dtype_itemsize
from gputensor.blas.handle cimport CublasHandle, cublas_handle, load_libraries
from gputensor.blas.library cimport (
    BLAS_NOT_SUPPORTED, BLAS_OK, GEMM_DEFAULT, MATH_DEFAULT, MATH_DISALLOW_REDUCED_REDUCTION,
    CublasTable, cublas_table,
)
from gputensor.blas.product cimport ACT_NONE, PRODUCT_REDUCED_REDUCTION, Product
from gputensor.blas.scale_factor cimport ScaleFactor, library_type, scale_type, store_scale

cdef enum:
    MAX_BATCH = 65535

cdef CublasTable* cublas = NULL


cdef int bind_cublas() except -1:
    global cublas
    load_libraries(True)
    cublas = cublas_table()
    return 0


cdef int cublas_run(const Product* product, uint64_t workspace, size_t workspace_nbytes,
                    uint64_t stream) noexcept nogil:
    cdef ScaleFactor alpha, beta
    cdef int status = BLAS_OK
    cdef int scale = scale_type(product)
    cdef int math = MATH_DEFAULT
    cdef CublasHandle* own
    if product.activation != ACT_NONE or product.bias or product.scale_a:
        return BLAS_NOT_SUPPORTED
    if product.c != product.d or product.ldc != product.ldd:
        return BLAS_NOT_SUPPORTED
    if not product.flags & PRODUCT_REDUCED_REDUCTION:
        math = MATH_DISALLOW_REDUCED_REDUCTION
    own = cublas_handle(product.device, stream, workspace, workspace_nbytes, math, &status)
    if own is NULL:
        return status
    store_scale(scale, product.alpha, product.alpha_imag, &alpha)
    store_scale(scale, product.beta, product.beta_imag, &beta)
    if product.batch == 1:
        return cublas.gemm(own.handle, product.op_a, product.op_b, product.m, product.n, product.k,
                           &alpha, <void*>product.a, library_type(product.type_a), product.lda,
                           <void*>product.b, library_type(product.type_b), product.ldb,
                           &beta, <void*>product.d, library_type(product.type_d), product.ldd,
                           product.compute, GEMM_DEFAULT)
    return run_batches(product, own, &alpha, &beta)


cdef int run_batches(const Product* product, CublasHandle* own, const ScaleFactor* alpha,
                     const ScaleFactor* beta) noexcept nogil:
    cdef int64_t first = 0
    cdef int64_t count
    cdef int status = BLAS_OK
    cdef int64_t step_a = product.stride_a * dtype_itemsize(product.type_a)
    cdef int64_t step_b = product.stride_b * dtype_itemsize(product.type_b)
    cdef int64_t step_d = product.stride_d * dtype_itemsize(product.type_d)
    while first < product.batch and status == BLAS_OK:
        count = product.batch - first
        if count > MAX_BATCH:
            count = MAX_BATCH
        status = cublas.gemm_strided(
            own.handle, product.op_a, product.op_b, product.m, product.n, product.k,
            alpha, <void*>(product.a + first * step_a), library_type(product.type_a), product.lda,
            product.stride_a,
            <void*>(product.b + first * step_b), library_type(product.type_b), product.ldb,
            product.stride_b,
            beta, <void*>(product.d + first * step_d), library_type(product.type_d), product.ldd,
            product.stride_d, count, product.compute, GEMM_DEFAULT)
        first += count
    return status
