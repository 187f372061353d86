"""Products as data: a phantom GPU keeps a library's product so that it can be queued elsewhere.

A described product is a `Product` of one repetition: no outer dimensions, no device, and padding
bytes of 0. It may come from a file, so its numbers are checked before they are used. It may have
a pinned algorithm of cuBLASLt (`programs/ahead/tune.py`), which is used if the library has the same
version and accepts it; otherwise the library's heuristic chooses.
"""

cdef enum:
    LAST_OPERATION = 2          # of BLAS: N, T, C

cdef int64_t MOST_EXTENT = <int64_t>1 << 40


cdef void describe_product(const Product* product, Product* out) noexcept nogil:
    """Copy the fields one by one, so that the bytes between them are 0."""
    memset(out, 0, sizeof(Product))
    out.m, out.n, out.k, out.batch = product.m, product.n, product.k, product.batch
    out.lda, out.ldb, out.ldc, out.ldd = product.lda, product.ldb, product.ldc, product.ldd
    if product.batch > 1:
        out.stride_a, out.stride_b = product.stride_a, product.stride_b
        out.stride_c, out.stride_d = product.stride_c, product.stride_d
    out.op_a, out.op_b = product.op_a, product.op_b
    out.type_a, out.type_b, out.type_d = product.type_a, product.type_b, product.type_d
    out.compute, out.is_swapped, out.flags = product.compute, product.is_swapped, product.flags
    out.activation = product.activation
    out.a, out.b, out.c, out.d = product.a, product.b, product.c, product.d
    out.bias, out.scale_a, out.scale_b = product.bias, product.scale_a, product.scale_b
    out.scale_mode_a, out.scale_mode_b = product.scale_mode_a, product.scale_mode_b
    out.alpha, out.beta = product.alpha, product.beta
    out.alpha_imag, out.beta_imag = product.alpha_imag, product.beta_imag


cdef int keep_product(const Product* product) noexcept nogil:
    """Have a phantom GPU keep one repetition; a cuBLAS status."""
    cdef Product described
    describe_product(product, &described)
    phantom_recorder(driver_get(product.device)).product(&described, sizeof(Product))
    return BLAS_OK


cdef bint described_is_sound(const Product* given) noexcept nogil:
    cdef int kind, result
    if (given.outer_ndim or given.device or given.flags & PRODUCT_POINTERS
            or not 0 < given.m <= MOST_EXTENT or not 0 < given.n <= MOST_EXTENT
            or not 0 < given.k <= MOST_EXTENT or not 0 < given.batch <= MAX_LT_BATCH):
        return False
    if not (0 <= given.type_a < DTYPE_COUNT and 0 <= given.type_b < DTYPE_COUNT
            and 0 <= given.type_d < DTYPE_COUNT):
        return False
    kind, result = dtype_kind(given.type_a), dtype_kind(given.type_d)
    if kind == KIND_INT:
        if (given.type_a != DT_INT8 or given.type_b != DT_INT8 or given.type_d != DT_INT32
                or given.flags & PRODUCT_FACTORS):
            return False
    elif kind == KIND_FLOAT or kind == KIND_COMPLEX:
        if dtype_kind(given.type_b) != kind or result != kind:
            return False
    elif (kind != KIND_SMALL or dtype_kind(given.type_b) != KIND_SMALL
            or (result != KIND_FLOAT and result != KIND_SMALL)):
        return False
    return (0 <= given.op_a <= LAST_OPERATION and 0 <= given.op_b <= LAST_OPERATION
            and 0 <= given.activation <= ACT_GELU_TANH)


cdef bint pinned_choice(const Pinned* pinned, Choice* choice) noexcept nogil:
    """Read the pinned algorithm of a product, if it is one of the library's version."""
    cdef int index
    if pinned.version == 0 or pinned.version != lt_version():
        return False
    choice.pad, choice.backend, choice.has_config = PAD_NONE, BACKEND_LT, 1
    for index in range(CONFIG_COUNT):
        choice.config[index] = pinned.config[index]
    return True


cdef int described_queue(int device, uint64_t stream, const Product* given) except -1 nogil:
    """Plan a described product with the libraries, which compile nothing, and queue it."""
    cdef Product product = given[0]
    cdef Wanted wanted
    cdef Outcome outcome
    cdef Work work
    cdef Choice choice
    cdef Plan* plan
    product.device = device
    wanted_init(&wanted, &product, LIBRARY_AUTO, PLAN_PLAIN)
    if product.pinned.version:
        if not libraries_are_loaded(device):
            load_for_planning(device)
        if pinned_choice(&product.pinned, &choice):
            wanted.choice = &choice
    plan = plan_of(&wanted, stream, &outcome)
    if plan is NULL:
        return raise_for_plan(&product, &outcome)
    try:
        work_init(&work, plan, &product, stream)
        work_queue(&work, &outcome)
        return 0 if outcome.stage == STAGE_DONE else raise_for_outcome(&work, &outcome)
    finally:
        plan_drop(plan)
