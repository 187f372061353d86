"""Products by cuBLASLt, planned once and then queued with one library call.

The bias and scale pointers of a product are in the plan's descriptor and are set before each call
that has them. Such calls hold the GIL from then until the launch; the calls of the C entry have no
such pointers, so they share descriptors without a lock.
"""

cdef extern from "gputensor/blas/libraries/proposal.h" namespace "gputensor" nogil:
    size_t LITTLE_WORKSPACE
    cdef struct Proposal:
        int id
        int tile
        int split
        int stages
        size_t workspace
        float waves
    bint second_is_better(int64_t m, int64_t n, int64_t k, const Proposal& first,
                          const Proposal& second)
    double unaligned_seconds(const Proposal& one, int64_t m, int64_t n, int64_t k, int64_t batch,
                             int itemsize)
    uint32_t proposal_reductions(bint may_split, bint may_round, int type_d, bint has_bias,
                                 size_t version)

cdef LtTable* lt = NULL


cdef int bind_table() except -1:
    global lt
    lt = lt_table()
    return 0


cdef size_t lt_version() noexcept nogil:
    return lt.version()


cdef int lt_epilogue(const Product* product) noexcept nogil:
    """Return the library's epilogue, or -1 when it lacks the activation."""
    cdef int epilogue
    if product.activation == ACT_NONE:
        epilogue = EPILOGUE_DEFAULT if not product.bias else 0
    elif product.activation == ACT_RELU:
        epilogue = EPILOGUE_RELU
    elif product.activation == ACT_GELU_TANH:
        epilogue = EPILOGUE_GELU
    else:
        return -1
    return epilogue | (EPILOGUE_BIAS if product.bias else 0)


cdef int make_layout(void** layout, int dtype, int64_t rows, int64_t columns, int64_t ld,
                     int64_t batch, int64_t stride) noexcept nogil:
    cdef int32_t count = <int32_t>batch
    cdef int status = lt.layout_create(layout, library_type(dtype), <uint64_t>rows,
                                       <uint64_t>columns, ld)
    if status == BLAS_OK and batch > 1:
        status = lt.layout_set(layout[0], LAYOUT_BATCH_COUNT, &count, sizeof(count))
        if status == BLAS_OK:
            status = lt.layout_set(layout[0], LAYOUT_BATCH_STRIDE, &stride, sizeof(stride))
    return status


cdef int make_desc(const Product* product, Plan* plan) noexcept nogil:
    cdef int32_t op_a = product.op_a
    cdef int32_t op_b = product.op_b
    cdef int32_t epilogue = lt_epilogue(product)
    cdef int32_t mode
    cdef int8_t fast = 1
    cdef int status
    if epilogue < 0:
        return BLAS_NOT_SUPPORTED
    status = lt.desc_create(&plan.desc, product.compute, scale_type(product))
    if status == BLAS_OK:
        status = lt.desc_set(plan.desc, DESC_TRANSA, &op_a, sizeof(op_a))
    if status == BLAS_OK:
        status = lt.desc_set(plan.desc, DESC_TRANSB, &op_b, sizeof(op_b))
    if status == BLAS_OK and epilogue != EPILOGUE_DEFAULT:
        status = lt.desc_set(plan.desc, DESC_EPILOGUE, &epilogue, sizeof(epilogue))
    if status == BLAS_OK and product.flags & PRODUCT_FAST_ACCUMULATION:
        status = lt.desc_set(plan.desc, DESC_FAST_ACCUM, &fast, sizeof(fast))
    # Libraries before CUDA 12.9 have only the default scale mode and no attribute for it.
    if status == BLAS_OK and product.scale_mode_a != SCALE_TENSOR:
        mode = product.scale_mode_a
        status = lt.desc_set(plan.desc, DESC_A_SCALE_MODE, &mode, sizeof(mode))
    if status == BLAS_OK and product.scale_mode_b != SCALE_TENSOR:
        mode = product.scale_mode_b
        status = lt.desc_set(plan.desc, DESC_B_SCALE_MODE, &mode, sizeof(mode))
    if status == BLAS_OK:
        status = set_pointers(plan, product)
    return status


cdef int set_pointers(Plan* plan, const Product* product) noexcept nogil:
    cdef int status = BLAS_OK
    if product.bias:
        status = lt.desc_set(plan.desc, DESC_BIAS_POINTER, &product.bias, sizeof(uint64_t))
    if status == BLAS_OK and product.scale_a:
        status = lt.desc_set(plan.desc, DESC_A_SCALE_POINTER, &product.scale_a, sizeof(uint64_t))
    if status == BLAS_OK and product.scale_b:
        status = lt.desc_set(plan.desc, DESC_B_SCALE_POINTER, &product.scale_b, sizeof(uint64_t))
    return status


cdef int make_layouts(const Product* product, Plan* plan) noexcept nogil:
    cdef int64_t rows_a = product.m if product.op_a == OP_N else product.k
    cdef int64_t columns_a = product.k if product.op_a == OP_N else product.m
    cdef int64_t rows_b = product.k if product.op_b == OP_N else product.n
    cdef int64_t columns_b = product.n if product.op_b == OP_N else product.k
    cdef int status = make_layout(&plan.layout_a, product.type_a, rows_a, columns_a, product.lda,
                                  product.batch, product.stride_a)
    if status == BLAS_OK:
        status = make_layout(&plan.layout_b, product.type_b, rows_b, columns_b, product.ldb,
                             product.batch, product.stride_b)
    if status == BLAS_OK:
        status = make_layout(&plan.layout_c, product.type_d, product.m, product.n, product.ldc,
                             product.batch, product.stride_c)
    if status == BLAS_OK:
        status = make_layout(&plan.layout_d, product.type_d, product.m, product.n, product.ldd,
                             product.batch, product.stride_d)
    return status


cdef Proposal proposal_of(const LtHeuristic* result) noexcept nogil:
    cdef Choice choice
    cdef Proposal proposal
    lt_config_of(&result.algo, &choice)
    proposal.id, proposal.tile = choice.config[CONFIG_ID], choice.config[CONFIG_TILE]
    proposal.split, proposal.stages = choice.config[CONFIG_SPLITK], choice.config[CONFIG_STAGES]
    proposal.workspace, proposal.waves = result.workspace_nbytes, result.waves
    return proposal


cdef int describe_product(const Product* product, Plan* plan) noexcept nogil:
    """Make a plan's handle, descriptor and layouts; `lt_plan_destroy` undoes this, a part too."""
    cdef int status = BLAS_OK
    plan.desc = plan.layout_a = plan.layout_b = plan.layout_c = plan.layout_d = NULL
    plan.handle = lt_handle(product.device, &status)
    if status == BLAS_OK:
        status = make_desc(product, plan)
    if status == BLAS_OK:
        status = make_layouts(product, plan)
    return status


cdef double lt_unaligned_seconds(const Product* product, size_t workspace_nbytes) noexcept nogil:
    """Estimate the seconds of the first proposal for unaligned matrices; 0: unknown.

    A plan asks for this proposal again, but only if the product is not padded then.
    """
    cdef Plan plan
    cdef LtHeuristic result
    cdef int count = 0
    cdef double seconds = 0
    if (describe_product(product, &plan) == BLAS_OK
            and lt_propose(&plan, product, workspace_nbytes, 1, &result, &count) == BLAS_OK
            and count):
        seconds = unaligned_seconds(proposal_of(&result), product.m, product.n, product.k,
                                    product.batch, dtype_itemsize(product.type_a))
    lt_plan_destroy(&plan)
    return seconds


cdef int lt_plan_build(const Product* product, size_t workspace_nbytes, const Choice* choice,
                       Plan* plan) noexcept nogil:
    cdef LtHeuristic result, second
    cdef int count = 0, found = 0
    cdef int status = describe_product(product, plan)
    if status == BLAS_OK and choice is not NULL and choice.has_config:
        # The choice may come from a file, measured where workspaces are larger.
        if (lt_algo_of(plan, product, choice, &result) == BLAS_OK
                and result.workspace_nbytes <= workspace_nbytes):
            count = 1
    if status == BLAS_OK and count == 0:
        status = lt_propose(plan, product, workspace_nbytes, 1, &result, &count)
        if status == BLAS_OK and count and workspace_nbytes > LITTLE_WORKSPACE:
            if (lt_propose(plan, product, LITTLE_WORKSPACE, 1, &second, &found) == BLAS_OK
                    and found and second_is_better(product.m, product.n, product.k,
                                                   proposal_of(&result), proposal_of(&second))):
                result = second
    if status == BLAS_OK and count == 0:
        status = BLAS_NOT_SUPPORTED
    if status != BLAS_OK:
        lt_plan_destroy(plan)
        return status
    plan.algo = result.algo
    plan.workspace_nbytes = result.workspace_nbytes
    return BLAS_OK


cdef inline size_t config_nbytes(int attribute) noexcept nogil:
    return 2 if attribute == CONFIG_INNER_SHAPE or attribute == CONFIG_CLUSTER else 4


# Finds the algorithm of a choice for a plan's product, with its workspace; returns a cuBLAS status.
cdef int lt_algo_of(Plan* plan, const Product* product, const Choice* choice,
                    LtHeuristic* result) noexcept nogil:
    cdef LtAlgo algo
    cdef int attribute
    cdef int type_d = library_type(product.type_d)
    cdef int status = lt.algo_init(
        plan.handle, product.compute, scale_type(product), library_type(product.type_a),
        library_type(product.type_b), type_d, type_d, choice.config[CONFIG_ID], &algo)
    for attribute in range(CONFIG_TILE, CONFIG_COUNT):
        if status == BLAS_OK:
            # Little-endian: the low bytes come first, so a narrower attribute reads the right ones.
            status = lt.algo_set(&algo, attribute, &choice.config[attribute],
                                 config_nbytes(attribute))
    if status == BLAS_OK:
        memset(result, 0, sizeof(LtHeuristic))
        status = lt.algo_check(plan.handle, plan.desc, plan.layout_a, plan.layout_b, plan.layout_c,
                               plan.layout_d, &algo, result)
    if status == BLAS_OK:
        result.algo = algo
    return status


cdef int lt_config_of(const LtAlgo* algo, Choice* choice) noexcept nogil:
    cdef int attribute
    cdef size_t written = 0
    cdef int status = BLAS_OK
    for attribute in range(CONFIG_COUNT):
        choice.config[attribute] = 0
        if status == BLAS_OK:
            status = lt.algo_get(algo, attribute, &choice.config[attribute],
                                 config_nbytes(attribute), &written)
    choice.has_config = status == BLAS_OK
    return status


# Finds up to `capacity` algorithms that the library proposes, best first.
cdef int lt_propose(Plan* plan, const Product* product, size_t workspace_nbytes, int capacity,
                    LtHeuristic* results, int* count) noexcept nogil:
    cdef void* preference = NULL
    cdef uint64_t limit = workspace_nbytes
    cdef uint32_t mask = proposal_reductions(
        not product.flags & PRODUCT_NO_SPLIT, product.flags & PRODUCT_REDUCED_REDUCTION != 0,
        product.type_d, product.bias != 0, lt.version())
    cdef int[4] alignments
    cdef uint32_t alignment
    cdef int index
    cdef int[4] attributes
    cdef int status = lt.preference_create(&preference)
    attributes[0], attributes[1] = PREF_ALIGNMENT_A, PREF_ALIGNMENT_B
    attributes[2], attributes[3] = PREF_ALIGNMENT_C, PREF_ALIGNMENT_D
    count[0] = 0
    if status != BLAS_OK:
        return status
    product_alignments(product, &alignments[0], &alignments[1], &alignments[2], &alignments[3])
    status = lt.preference_set(preference, PREF_MAX_WORKSPACE, &limit, sizeof(limit))
    if status == BLAS_OK:
        status = lt.preference_set(preference, PREF_REDUCTION_MASK, &mask, sizeof(mask))
    for index in range(4):
        alignment = <uint32_t>alignments[index]
        if status == BLAS_OK:
            status = lt.preference_set(preference, attributes[index], &alignment, sizeof(alignment))
    if status == BLAS_OK:
        memset(results, 0, capacity * sizeof(LtHeuristic))
        status = lt.heuristic(plan.handle, plan.desc, plan.layout_a, plan.layout_b, plan.layout_c,
                              plan.layout_d, preference, capacity, results, count)
    lt.preference_destroy(preference)
    return status


cdef void lt_plan_destroy(Plan* plan) noexcept nogil:
    if plan.desc is not NULL:
        lt.desc_destroy(plan.desc)
    if plan.layout_a is not NULL:
        lt.layout_destroy(plan.layout_a)
    if plan.layout_b is not NULL:
        lt.layout_destroy(plan.layout_b)
    if plan.layout_c is not NULL:
        lt.layout_destroy(plan.layout_c)
    if plan.layout_d is not NULL:
        lt.layout_destroy(plan.layout_d)
    plan.desc = plan.layout_a = plan.layout_b = plan.layout_c = plan.layout_d = NULL


cdef int lt_run(Plan* plan, const Product* product, uint64_t workspace, size_t workspace_nbytes,
                uint64_t stream) noexcept nogil:
    cdef ScaleFactor alpha, beta
    cdef int scale = scale_type(product)
    cdef int status = BLAS_OK
    store_scale(scale, product.alpha, product.alpha_imag, &alpha)
    store_scale(scale, product.beta, product.beta_imag, &beta)
    if product.bias or product.scale_a:
        status = set_pointers(plan, product)
        if status != BLAS_OK:
            return status
    return lt.matmul(plan.handle, plan.desc, &alpha, <void*>product.a, plan.layout_a,
                     <void*>product.b, plan.layout_b, &beta, <void*>product.c, plan.layout_c,
                     <void*>product.d, plan.layout_d, &plan.algo, <void*>workspace,
                     workspace_nbytes, <void*>stream)
