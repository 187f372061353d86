"""Planning: finds the plan in the table, or loops over the rows of backends, without Python.

The first of these that exists decides: the product's own result of tuning; the algorithm measured
for it on such a device (measured_algorithms.py); the result of tuning of a near product. Without
any, the first of our kernels that expects to win takes the product. The rest goes to the libraries:
padded by a cost model, with the algorithm that the library proposes. With tuning enabled, a product
that has no tuned result is tuned here, before its first run, unless its stream is capturing.
"""

cdef str product_facts(const Product* product):
    names = [DTYPES[code].name for code in (product.type_a, product.type_b, product.type_d)]
    return (
        f"for m={product.m} n={product.n} k={product.k} batch={product.batch} "
        f"ld=({product.lda}, {product.ldb}, {product.ldd}) of {', '.join(names)} "
        f"on device {product.device}"
    )


# ---- the table of plans

cdef uint64_t PINNED_FACTOR = <uint64_t>0x9e3779b97f4a7c15


cdef Plan* plan_known(Wanted* wanted) noexcept nogil:
    cdef int index
    plan_key(wanted.product, wanted.preference | wanted.limits, &wanted.key)
    if wanted.limits & PLAN_PLAIN and wanted.choice is not NULL:
        for index in range(CONFIG_COUNT):       # mixed with the strides of a batch
            wanted.key.words[8 + index % 4] = <int64_t>(
                <uint64_t>wanted.key.words[8 + index % 4] * PINNED_FACTOR
                + <uint64_t>wanted.choice.config[index] + 1)
    wanted.hash = plan_hash(&wanted.key)
    return plan_find(&wanted.key, wanted.hash)


cdef Plan* plan_publish(Plan* plan) noexcept nogil:
    if plan is not NULL:
        plan.is_transient = not plan_insert(plan)
    return plan


cdef Plan* plan_new(const Wanted* wanted) noexcept nogil:
    cdef Plan* plan = <Plan*>calloc(1, sizeof(Plan))
    if plan is not NULL:
        plan.key = wanted.key
        plan.hash = wanted.hash
        plan.is_transient = 1
    return plan


cdef void plan_destroy(Plan* plan) noexcept nogil:
    lt_plan_destroy(plan)
    free(plan)


cdef void plan_drop(Plan* plan) noexcept nogil:
    if plan.is_transient:
        plan_destroy(plan)


# ---- the libraries

cdef int build_by_libraries(const Product* product, const Wanted* wanted,
                            Plan* plan) except -1 nogil:
    """Complete a plan with the first library that can; returns the status of the last one tried."""
    cdef const Choice* choice = wanted.choice
    cdef bint wants_cublas = wanted.preference == LIBRARY_CUBLAS
    cdef int status = BLAS_NOT_SUPPORTED
    cdef int index
    cdef const Backend* row
    if choice is not NULL and choice.backend != CHOICE_ANY:
        wants_cublas = choice.backend == BACKEND_CUBLAS
    for index in range(row_count):
        row = &rows[index]
        if row.role != ROLE_LIBRARY or not row.can(product):
            continue
        if row.number == BACKEND_LT and wants_cublas and not needs_lt(product):
            continue
        plan.backend = row.number
        status = row.build(product, choice, plan)
        if status == BLAS_OK:
            return status
    return status


cdef Plan* plan_build(const Wanted* wanted, Outcome* outcome) except? NULL nogil:
    cdef Product final = wanted.product[0]
    cdef Relayout before, after
    cdef uint64_t context = 0
    cdef Plan* plan = plan_new(wanted)
    outcome.stage, outcome.status = STAGE_LIBRARY, BLAS_ALLOC_FAILED
    if plan is NULL:
        return NULL
    outcome.stage = STAGE_CONTEXT
    outcome.status = context_enter(final.device, &context)
    if outcome.status == STATUS_OK:
        outcome.stage = STAGE_LIBRARY
        try:
            if wanted.choice is not NULL and wanted.choice.pad != CHOICE_ANY:
                plan.pad = wanted.choice.pad
            else:
                plan.pad = pad_choose(wanted.product, lt_seconds_as_it_is)
            # Padded matrices start at addresses of the allocator, aligned as address 0 is.
            pad_bind(&final, plan.pad, 0, 0, 0, &before, &after)
            outcome.status = build_by_libraries(&final, wanted, plan)
        finally:
            context_leave(final.device, context)
    if outcome.status != BLAS_OK:
        free(plan)
        return NULL
    outcome.stage = STAGE_DONE
    return plan


# ---- our own kernels

cdef Plan* plan_by(const Backend* row, const Wanted* wanted,
                   bint is_asked=False) except? NULL nogil:
    """Plan with one of our kernels if it can and, unless forced, is expected to be the fastest."""
    cdef Plan* plan
    cdef int status = BLAS_NOT_SUPPORTED
    if not row.can(wanted.product) or not (is_asked or row.wins(wanted.product)):
        return NULL
    plan = plan_new(wanted)
    if plan is NULL:
        return NULL
    plan.backend = row.number
    try:
        status = row.build(wanted.product, NULL, plan)
    finally:
        if status != BLAS_OK:
            free(plan)
    return plan if status == BLAS_OK else NULL


cdef Plan* own_plan(int number, const Wanted* wanted) except? NULL nogil:
    return plan_by(backend_of(number), wanted) if is_own(number) else NULL


cdef Plan* first_own_plan(Role role, const Wanted* wanted) except? NULL nogil:
    cdef Plan* plan = NULL
    cdef int index
    for index in range(row_count):
        if rows[index].role == role:
            plan = plan_by(&rows[index], wanted)
            if plan is not NULL:
                return plan
    return NULL


# ---- with the results of tuning

cdef int fill_known(int device) except -1 with gil:
    tunable.fill(device)
    measured_algorithms.fill(device)
    return 0


cdef bint ask_tuning(const Product* product, uint64_t stream, Choice* choice) except -1 with gil:
    found = tunable.find(product_signature(product), product.device,
                         stream_captures(product.device, stream) != 0)
    if found is None:
        return False
    choice_read(found, choice)
    return True


cdef bint find_tuned(const Product* product, uint64_t stream, bint is_measured,
                     Choice* choice) except -1 nogil:
    """Find the result of tuning, or that of a near product if no algorithm was measured."""
    # A pointer-array call belongs to cuBLAS, which has one algorithm for it.
    if product.flags & (PRODUCT_POINTERS | PRODUCT_AS_IT_IS):
        return False
    if known_tuned(product, choice) or (tuning_asks() and ask_tuning(product, stream, choice)):
        return True
    return not is_measured and known_near(product, choice)


cdef Plan* plan_by_knowledge(Wanted* wanted, uint64_t stream,
                             Outcome* outcome) except? NULL nogil:
    cdef const Product* product = wanted.product
    cdef Choice known, found
    cdef Plan* plan = NULL
    # A caller that requests a library or padding gets a library.
    cdef bint is_auto = (wanted.preference == LIBRARY_AUTO and padding_is_auto()
                         and not product.flags & PRODUCT_POINTERS)
    cdef bint is_measured
    if not known_is_filled(product.device):
        fill_known(product.device)
    is_measured = is_auto and known_measured(product, &known)
    if find_tuned(product, stream, is_measured, &found):
        wanted.choice = &found
    if is_auto and wanted.choice is not NULL:
        plan = own_plan(found.backend, wanted)
    elif is_auto:
        plan = first_own_plan(ROLE_OWN_FIRST, wanted)
        if plan is NULL and is_measured:
            wanted.choice = &known
        elif plan is NULL:
            plan = first_own_plan(ROLE_OWN, wanted)
    if wanted.choice is not NULL and is_own(wanted.choice.backend):
        # Its kernel is not available here, so the libraries take the product.
        wanted.choice = NULL
    if plan is NULL:
        plan = plan_build(wanted, outcome)
    wanted.choice = NULL
    return plan


# ---- the entry of planning

# By device: 1 + the number of the backend with which a phantom GPU plans; 0: the models decide.
cdef int[MAX_DEVICES] phantom_backends


def plan_phantom_by(int device, backend):
    """Have a phantom GPU plan with this backend where that can; None: the models decide."""
    phantom_backends[device + HOST_DEVICES] = 0 if backend is None else <int>backend + 1


cdef void wanted_init(Wanted* wanted, Product* product, int preference,
                      int limits) noexcept nogil:
    wanted.product, wanted.preference, wanted.limits = product, preference, limits
    wanted.choice = NULL


cdef int load_for_planning(int device) except -1 with gil:
    return libraries_load(device)


cdef int read_preference() except -1 with gil:
    preferred_blas_library()        # raises if the environment names an unknown library
    return 0


cdef Plan* plan_for_phantom(Wanted* wanted, Outcome* outcome) except? NULL nogil:
    """Plan by models alone, outside the table: the device number is another GPU each time."""
    cdef Choice plain
    cdef Plan* plan = NULL
    cdef int number = phantom_backends[wanted.product.device + HOST_DEVICES] - 1
    if wanted.product.compute == COMPUTE_32F_EMULATED_16BFX9:
        wanted.product.compute = COMPUTE_32F        # the library is only known where it runs
    if not libraries_are_loaded(wanted.product.device):
        load_for_planning(wanted.product.device)
    plan_key(wanted.product, wanted.preference | wanted.limits, &wanted.key)
    wanted.hash = plan_hash(&wanted.key)
    if wanted.limits & PLAN_PLAIN:
        plain.pad, plain.backend, plain.has_config = PAD_NONE, CHOICE_ANY, 0
        wanted.choice = &plain
    elif is_own(number):
        plan = plan_by(backend_of(number), wanted, True)
    elif number >= 0:
        plain.pad, plain.backend, plain.has_config = PAD_NONE, number, 0
        wanted.choice = &plain
    else:
        plan = first_own_plan(ROLE_OWN_FIRST, wanted)
        if plan is NULL:
            plan = first_own_plan(ROLE_OWN, wanted)
    if plan is NULL:
        plan = plan_build(wanted, outcome)
    wanted.choice = NULL
    return plan


cdef Plan* plan_of(Wanted* wanted, uint64_t stream, Outcome* outcome) except? NULL nogil:
    cdef Product* product = wanted.product
    cdef Choice plain
    cdef Plan* plan
    if known_facts(product.device).is_phantom:
        return plan_for_phantom(wanted, outcome)
    if product.compute == COMPUTE_32F_EMULATED_16BFX9:
        if not libraries_are_loaded(product.device):
            load_for_planning(product.device)
        if not library_emulates():
            product.compute = COMPUTE_32F
    plan = plan_known(wanted)
    if plan is not NULL:
        return plan
    if not libraries_are_loaded(product.device):
        load_for_planning(product.device)
    if wanted.limits & PLAN_PLAIN:
        plain.pad, plain.backend, plain.has_config = PAD_NONE, CHOICE_ANY, 0
        if wanted.choice is NULL:
            wanted.choice = &plain
        plan = plan_build(wanted, outcome)
        wanted.choice = NULL
    else:
        if preference_is_unread():
            read_preference()
        plan = plan_by_knowledge(wanted, stream, outcome)
    return plan_publish(plan)


cdef int raise_for_plan(const Product* product, const Outcome* outcome) except -1 with gil:
    if outcome.stage == STAGE_CONTEXT:
        raise_for_status(outcome.status, "context_enter")
    raise_for_blas(outcome.status, "planning a product", product_facts(product))
    return 0
