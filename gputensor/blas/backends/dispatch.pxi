"""Which library a product goes to, and the life of its plan.

cuBLASLt comes first, because its plans can be kept; cuBLAS takes what cuBLASLt has no kernel for
and batches longer than a grid; integers go to cuBLASLt (int8 into int32) or to our own kernel.
"""

cdef enum:
    MAX_LT_BATCH = 65535
    EMULATION_VERSION = 120900

cdef bint[MAX_DEVICES] loaded


cdef int dispatch_load(int device) except -1:
    if not loaded[device + HOST_DEVICES]:
        load_libraries(True)
        bind_table()
        bind_cublas()
        workspace_configure(device)
        loaded[device + HOST_DEVICES] = True
    return 0


cdef bint dispatch_emulates(int device) except -1:
    dispatch_load(device)
    return library_emulates()


cdef bint library_emulates() noexcept nogil:
    return lt_version() >= EMULATION_VERSION


cdef bint dispatch_is_loaded(int device) noexcept nogil:
    return loaded[device + HOST_DEVICES]


cdef int choose_backend(const Product* product, int preference, const Choice* choice,
                        Plan* plan) noexcept nogil:
    cdef int status
    cdef size_t nbytes = workspace_nbytes(product.device)
    cdef bint is_fp8 = dtype_kind(product.type_a) == KIND_SMALL
    cdef bint needs_lt = product.bias != 0 or product.activation != ACT_NONE or is_fp8
    # The libraries promise sums of int8 products without other factors than 0 and 1 only.
    cdef bint is_own = is_integer(product.type_a) and (
        product.type_a != DT_INT8 or product.type_d != DT_INT32 or product.flags & PRODUCT_FACTORS)
    cdef bint wants_cublas = preference == LIBRARY_CUBLAS
    if product.flags & PRODUCT_POINTERS:
        plan.backend = BACKEND_CUBLAS
        plan.workspace_nbytes = nbytes
        return BLAS_OK
    if choice is not NULL and choice.backend != CHOICE_ANY:
        wants_cublas = choice.backend == BACKEND_CUBLAS
    if not is_own and product.batch <= MAX_LT_BATCH and (needs_lt or not wants_cublas):
        plan.backend = BACKEND_LT
        status = lt_plan_build(product, nbytes, choice, plan)
        if status == BLAS_OK:
            return BLAS_OK
        # Only cuBLASLt multiplies fp8.
        if is_fp8:
            return status
    if is_integer(product.type_a):
        plan.backend = BACKEND_INTEGER
        plan.workspace_nbytes = 0
        return BLAS_OK
    plan.backend = BACKEND_CUBLAS
    plan.workspace_nbytes = nbytes
    return BLAS_OK


cdef Plan* plan_build(const Product* product, const PlanKey* key, uint64_t hash_value,
                      int preference, const Choice* choice, int* status) noexcept nogil:
    cdef Product final = product[0]
    cdef Relayout before, after
    cdef Plan* plan = <Plan*>calloc(1, sizeof(Plan))
    status[0] = BLAS_ALLOC_FAILED
    if plan is NULL:
        return NULL
    plan.key = key[0]
    plan.hash = hash_value
    plan.is_transient = 1
    if choice is not NULL and choice.pad != CHOICE_ANY:
        plan.pad = choice.pad
    else:
        plan.pad = pad_choose(product)
    # Padded matrices start at addresses of the allocator, which are aligned as address 0 is.
    pad_bind(&final, plan.pad, 0, 0, 0, &before, &after)
    status[0] = choose_backend(&final, preference, choice, plan)
    if status[0] != BLAS_OK:
        free(plan)
        return NULL
    return plan


cdef int plan_run(Plan* plan, const Product* product, const Workspace* workspace,
                  uint64_t stream) noexcept nogil:
    if plan.backend == BACKEND_LT:
        return lt_run(plan, product, workspace.ptr, workspace.nbytes, stream)
    if plan.backend == BACKEND_CUBLAS:
        return cublas_run(product, workspace.ptr, workspace.nbytes, stream)
    return BLAS_NOT_SUPPORTED


cdef void plan_destroy(Plan* plan) noexcept nogil:
    if plan.backend == BACKEND_LT:
        lt_plan_destroy(plan)
    free(plan)


cdef void plan_drop(Plan* plan) noexcept nogil:
    if plan.is_transient:
        plan_destroy(plan)
