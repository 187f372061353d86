"""Planning on a miss of the plan table.

The result of tuning decides, if there is one for the product; else what is known of the device for
the product (known_ways.py); else the result of tuning of a near product. Otherwise padding is
chosen by its cost model, and the algorithm by the library. With tuning enabled, a product that
nobody tuned is tuned here, before its first run, unless its stream is capturing.
"""

cdef str product_facts(const Product* product):
    names = [DTYPES[code].name for code in (product.type_a, product.type_b, product.type_d)]
    return (
        f"for m={product.m} n={product.n} k={product.k} batch={product.batch} "
        f"ld=({product.lda}, {product.ldb}, {product.ldd}) of {', '.join(names)} "
        f"on device {product.device}"
    )


cdef bint is_capturing(int device, uint64_t stream) noexcept nogil:
    cdef Driver* driver = driver_get(device)
    cdef int active = 0
    cdef uint64_t capture_id = 0
    return driver.capture_info(driver.self, stream, &active, &capture_id) != 0 or active


cdef int read_choice(object found, Choice* choice) except -1:
    """`found` is (pad, backend, configuration or None), as tunable.find gives it."""
    cdef int index
    choice.pad, choice.backend, config = found
    choice.has_config = config is not None
    if config is not None:
        for index in range(CONFIG_COUNT):
            choice.config[index] = config[index]
    return 0


cdef Plan* plan_now(const Product* product, const PlanKey* key, uint64_t hash_value,
                    int preference, uint64_t stream) except NULL:
    cdef Choice choice
    cdef const Choice* chosen = NULL
    cdef Plan* plan = NULL
    cdef uint64_t before = 0
    cdef int status = BLAS_OK
    cdef bint is_batch, is_auto
    dispatch_load(product.device)
    # A pointer-array call is cuBLAS's, and there is one algorithm of it.
    is_batch = product.flags & PRODUCT_POINTERS != 0
    preferred_blas_library()        # raises where the environment asks for none that there is
    # Who asks for a library or for padding gets a library.
    is_auto = preference == LIBRARY_AUTO and padding() == "auto" and not is_batch
    signature = product_signature(product)
    known = None
    if is_auto:
        known = find_way(signature, product.device, dtype_itemsize(product.type_a))
    if tunable.is_active and not is_batch and not product.flags & PRODUCT_AS_IT_IS:
        found = tunable.find(signature, product.device,
                             is_capturing(product.device, stream))
        if found is None and known is None:
            found = tunable.find_near(signature, product.device)
        if found is not None:
            read_choice(found, &choice)
            chosen = &choice
    if is_auto:
        if chosen is not NULL:
            plan = own_plan(chosen.backend, product, key, hash_value)
        else:
            plan = own_plan(BACKEND_TINY, product, key, hash_value)
        if plan is NULL and chosen is NULL and known is not None:
            read_choice((PAD_NONE, BACKEND_LT, known), &choice)
            chosen = &choice
        if plan is NULL and chosen is NULL:
            for backend in (BACKEND_SMALL_M, BACKEND_DIRECT, BACKEND_PACKED):
                if plan is NULL:
                    plan = own_plan(backend, product, key, hash_value)
    if chosen is not NULL and is_own(chosen.backend):
        # Its kernel cannot be had here; the libraries' way is as good as any.
        chosen = NULL
    if plan is NULL:
        raise_for_status(context_enter(product.device, &before), "context_enter")
        plan = plan_build(product, key, hash_value, preference, chosen, &status)
        context_leave(product.device, before)
    if plan is NULL:
        raise_for_blas(status, "planning a product", product_facts(product))
    plan.is_transient = not plan_insert(plan)
    return plan
