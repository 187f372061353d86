"""The rows of the libraries: cuBLASLt, whose plans can be kept, and cuBLAS for other products.

A phantom GPU has no libraries. It keeps their products, described (described.pxi), and they are
planned where they run.
"""

cdef enum:
    MAX_LT_BATCH = 65535
    EMULATION_VERSION = 120900
    BACKEND_GROUPED = 8
    LT_SMALL = 89               # fp8 from this capability on

cdef bint is_loaded = False


cdef int libraries_load(int device) except -1:
    global is_loaded
    if not is_loaded and not device_facts(device).is_phantom:
        load_libraries(True)
        bind_table()
        bind_cublas()
        is_loaded = True
    return workspace_configure(device)


cdef bint library_emulates() noexcept nogil:
    return lt_version() >= EMULATION_VERSION


cdef bint libraries_are_loaded(int device) noexcept nogil:
    return (is_loaded or known_facts(device).is_phantom) and workspace_nbytes(device) != 0


# ---- cuBLASLt

cdef bint needs_lt(const Product* product) noexcept nogil:
    """Whether only cuBLASLt does the epilogue, multiplies the type, or can be kept from splits."""
    return (product.bias != 0 or product.activation != ACT_NONE
            or dtype_kind(product.type_a) == KIND_SMALL
            or product.flags & PRODUCT_NO_SPLIT)


cdef bint lt_can(const Product* product) except -1 nogil:
    # The libraries promise integer sums only for int8 products with factors of 0 and 1.
    if is_integer(product.type_a) and (product.type_a != DT_INT8 or product.type_d != DT_INT32
                                       or product.flags & PRODUCT_FACTORS):
        return False
    return product.batch <= MAX_LT_BATCH


cdef int lt_build(const Product* product, const Choice* choice, Plan* plan) except -1 nogil:
    cdef const DeviceFacts* facts = known_facts(product.device)
    if facts.is_phantom:
        if dtype_kind(product.type_a) == KIND_SMALL and facts.capability < LT_SMALL:
            return BLAS_NOT_SUPPORTED
        return BLAS_OK
    return lt_plan_build(product, workspace_nbytes(product.device), choice, plan)


cdef double lt_seconds_as_it_is(const Product* product) noexcept nogil:
    """Estimate the seconds of a product of odd matrices by cuBLASLt; 0 where it cannot be asked."""
    if known_facts(product.device).is_phantom:
        return 0
    return lt_unaligned_seconds(product, workspace_nbytes(product.device))


cdef int lt_launch(const Work* work) except -1 nogil:
    if known_facts(work.products.device).is_phantom:
        return keep_product(work.products)
    return lt_run(work.plan, work.products, work.workspace.ptr, work.workspace.nbytes, work.stream)


# ---- cuBLAS

cdef bint cublas_can(const Product* product) except -1 nogil:
    return dtype_kind(product.type_a) != KIND_SMALL and not product.flags & PRODUCT_NO_SPLIT


cdef int cublas_build(const Product* product, const Choice* choice, Plan* plan) except -1 nogil:
    plan.workspace_nbytes = workspace_nbytes(product.device)
    if known_facts(product.device).is_phantom:
        plan.workspace_nbytes = 0
    return BLAS_OK


cdef int cublas_launch(const Work* work) except -1 nogil:
    if known_facts(work.products.device).is_phantom:
        return keep_product(work.products)
    return cublas_run(work.products, work.workspace.ptr, work.workspace.nbytes, work.stream)


# ---- groups

cdef void grouped_plan(const Product* products, Plan* plan) noexcept nogil:
    memset(plan, 0, sizeof(Plan))
    plan.backend = BACKEND_GROUPED
    plan.workspace_nbytes = workspace_nbytes(products.device)


cdef size_t grouped_table_nbytes(int64_t count) noexcept nogil:
    return <size_t>(3 * sizeof(uint64_t) * count)
