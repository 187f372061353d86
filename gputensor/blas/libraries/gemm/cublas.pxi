"""Products by cuBLAS: the 64-bit forms of GemmEx and of its batched variants.

The handle belongs to this thread; its stream, workspace and math mode are set only when they
change. A batch above 65,535 is cut into several calls, since a grid has at most that many blocks in
its third dimension; so is a long pointer array.
"""

cdef enum:
    MAX_BATCH = 65535

cdef CublasTable* cublas = NULL


cdef int bind_cublas() except -1:
    global cublas
    load_libraries(True)
    cublas = cublas_table()
    return 0


cdef CublasHandle* bound_handle(const Product* product, uint64_t workspace,
                                size_t workspace_nbytes, uint64_t stream,
                                int* status) noexcept nogil:
    """Return the thread's handle, set for the product, or NULL and a status if cuBLAS cannot."""
    cdef int math = MATH_DEFAULT
    if product.activation != ACT_NONE or product.bias or product.scale_a:
        status[0] = BLAS_NOT_SUPPORTED
        return NULL
    if product.c != product.d or product.ldc != product.ldd:
        status[0] = BLAS_NOT_SUPPORTED
        return NULL
    if not product.flags & PRODUCT_REDUCED_REDUCTION:
        math = MATH_DISALLOW_REDUCED_REDUCTION
    return cublas_handle(product.device, stream, workspace, workspace_nbytes, math, status)


cdef int cublas_run(const Product* product, uint64_t workspace, size_t workspace_nbytes,
                    uint64_t stream) noexcept nogil:
    cdef ScaleFactor alpha, beta
    cdef int status = BLAS_OK
    cdef int scale = scale_type(product)
    cdef CublasHandle* own = bound_handle(product, workspace, workspace_nbytes, stream, &status)
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


cdef int cublas_run_pointers(const Product* product, int64_t total, uint64_t table,
                             uint64_t workspace, size_t workspace_nbytes,
                             uint64_t stream) noexcept nogil:
    cdef ScaleFactor alpha, beta
    cdef int64_t first = 0
    cdef int64_t count
    cdef int status = BLAS_OK
    cdef int scale = scale_type(product)
    cdef uint64_t* addresses = <uint64_t*>table
    cdef CublasHandle* own = bound_handle(product, workspace, workspace_nbytes, stream, &status)
    if own is NULL:
        return status
    store_scale(scale, product.alpha, product.alpha_imag, &alpha)
    store_scale(scale, product.beta, product.beta_imag, &beta)
    while first < total and status == BLAS_OK:
        count = total - first if total - first < MAX_BATCH else MAX_BATCH
        status = cublas.gemm_batched(
            own.handle, product.op_a, product.op_b, product.m, product.n, product.k,
            &alpha, addresses + first, library_type(product.type_a), product.lda,
            addresses + total + first, library_type(product.type_b), product.ldb,
            &beta, addresses + 2 * total + first, library_type(product.type_d), product.ldd,
            count, product.compute, GEMM_DEFAULT)
        first += count
    return status


# ---- products of different geometries

# The library's array arguments, with one entry for each run of products of one geometry.
cdef struct Groups:
    int64_t count
    int* op_a
    int* op_b
    int64_t* m
    int64_t* n
    int64_t* k
    int64_t* lda
    int64_t* ldb
    int64_t* ldd
    int64_t* size
    char* alpha
    char* beta


cdef bint same_geometry(const Product* one, const Product* other) noexcept nogil:
    return (one.op_a == other.op_a and one.op_b == other.op_b and one.m == other.m
            and one.n == other.n and one.k == other.k and one.lda == other.lda
            and one.ldb == other.ldb and one.ldd == other.ldd)


cdef void* groups_make(Groups* groups, int64_t capacity) noexcept nogil:
    """Lay the arrays out in one piece of memory, which the caller frees."""
    cdef char* memory = <char*>malloc(
        capacity * (7 * sizeof(int64_t) + 2 * sizeof(int) + 2 * sizeof(ScaleFactor)))
    cdef int64_t* words = <int64_t*>memory
    if memory is NULL:
        return NULL
    groups.count = 0
    groups.m = words
    groups.n = words + capacity
    groups.k = words + 2 * capacity
    groups.lda = words + 3 * capacity
    groups.ldb = words + 4 * capacity
    groups.ldd = words + 5 * capacity
    groups.size = words + 6 * capacity
    groups.alpha = <char*>(words + 7 * capacity)
    groups.beta = groups.alpha + capacity * sizeof(ScaleFactor)
    groups.op_a = <int*>(groups.beta + capacity * sizeof(ScaleFactor))
    groups.op_b = groups.op_a + capacity
    return memory


cdef void groups_fill(Groups* groups, const Product* products, int64_t total) noexcept nogil:
    cdef int64_t index, group
    cdef int scale = scale_type(products)
    # Factors are contiguous in their type.
    cdef int nbytes = 8 if scale == TYPE_R_64F else 2 if scale == TYPE_R_16F else 4
    cdef const Product* product
    for index in range(total):
        product = &products[index]
        if index and same_geometry(product, &products[index - 1]):
            groups.size[groups.count - 1] += 1
            continue
        group = groups.count
        groups.op_a[group], groups.op_b[group] = product.op_a, product.op_b
        groups.m[group], groups.n[group], groups.k[group] = product.m, product.n, product.k
        groups.lda[group], groups.ldb[group] = product.lda, product.ldb
        groups.ldd[group] = product.ldd
        groups.size[group] = 1
        store_scale(scale, product.alpha, 0, <ScaleFactor*>(groups.alpha + group * nbytes))
        store_scale(scale, product.beta, 0, <ScaleFactor*>(groups.beta + group * nbytes))
        groups.count += 1


cdef int cublas_run_grouped(const Product* products, int64_t total, uint64_t table,
                            uint64_t workspace, size_t workspace_nbytes,
                            uint64_t stream) noexcept nogil:
    cdef Groups groups
    cdef int status = BLAS_OK
    cdef uint64_t* addresses = <uint64_t*>table
    cdef void* memory
    cdef CublasHandle* own
    if cublas.gemm_grouped is NULL:
        return BLAS_NOT_SUPPORTED
    own = bound_handle(products, workspace, workspace_nbytes, stream, &status)
    if own is NULL:
        return status
    memory = groups_make(&groups, total)
    if memory is NULL:
        return BLAS_ALLOC_FAILED
    groups_fill(&groups, products, total)
    status = cublas.gemm_grouped(
        own.handle, groups.op_a, groups.op_b, groups.m, groups.n, groups.k, groups.alpha,
        addresses, library_type(products.type_a), groups.lda,
        addresses + total, library_type(products.type_b), groups.ldb, groups.beta,
        addresses + 2 * total, library_type(products.type_d), groups.ldd,
        groups.count, groups.size, products.compute)
    free(memory)
    return status
