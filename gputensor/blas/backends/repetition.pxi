"""Running a planned product for every index tuple of its outer dimensions.

The addresses of the product move through the tuples and are back where they were at the end. What
the pointer-array call takes (pointer_batch.pyx) is one call; the rest is one for each tuple.
"""

cdef inline int run_once(Plan* plan, const Product* product, const Workspace* workspace,
                         uint64_t stream, uint64_t scratch) except -1:
    if plan.backend == BACKEND_PACKED:
        return packed_run(plan, product, scratch, stream)
    if plan.backend == BACKEND_DIRECT:
        return direct_run(plan, product, stream)
    if plan.backend == BACKEND_TINY:
        return tiny_run(plan, product, stream)
    if plan.backend == BACKEND_SMALL_M:
        return skinny_product_run(product, stream)
    if plan.backend == BACKEND_INTEGER:
        return integer_run(product, stream)
    return plan_run(plan, product, workspace, stream)


cdef int repeat_product(Plan* plan, Product* product, const Workspace* workspace, uint64_t stream,
                        uint64_t scratch) except -1:
    cdef int64_t[16] index
    cdef int axis
    cdef int status
    cdef int64_t size_a, size_b, size_d
    if product.flags & PRODUCT_POINTERS:
        return pointer_batch_run(product, scratch, workspace, stream)
    status = run_once(plan, product, workspace, stream, scratch)
    if product.outer_ndim == 0 or status != BLAS_OK:
        return status
    size_a = dtype_itemsize(product.type_a)
    size_b = dtype_itemsize(product.type_b)
    size_d = dtype_itemsize(product.type_d)
    for axis in range(product.outer_ndim):
        index[axis] = 0
    axis = 0
    while axis < product.outer_ndim and status == BLAS_OK:
        index[axis] += 1
        product.a += <uint64_t>(product.outer_a[axis] * size_a)
        product.b += <uint64_t>(product.outer_b[axis] * size_b)
        product.c += <uint64_t>(product.outer_c[axis] * size_d)
        product.d += <uint64_t>(product.outer_d[axis] * size_d)
        if index[axis] < product.outer_count[axis]:
            status = run_once(plan, product, workspace, stream, scratch)
            axis = 0
            continue
        product.a -= <uint64_t>(product.outer_count[axis] * product.outer_a[axis] * size_a)
        product.b -= <uint64_t>(product.outer_count[axis] * product.outer_b[axis] * size_b)
        product.c -= <uint64_t>(product.outer_count[axis] * product.outer_c[axis] * size_d)
        product.d -= <uint64_t>(product.outer_count[axis] * product.outer_d[axis] * size_d)
        index[axis] = 0
        axis += 1
    return status
