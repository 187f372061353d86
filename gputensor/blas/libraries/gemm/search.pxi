"""Searches cuBLASLt for its proposals, for all algorithms, and for neighbours of a good one.

A configuration is the tuple of an algorithm's CONFIG_* attributes. The library's heuristic proposes
a few; with less workspace it proposes others, which may be quicker. The attributes of an algorithm
span tens of thousands of configurations, most of which do not fit a product. So an enumeration
first finds the tiles and stages that fit, and varies the other attributes only for those.
"""

cdef enum:
    PROPOSALS = 64              # for each workspace limit
    CLUSTERS = 16               # shapes of up to 16 blocks have the first numbers

SPLITS = (1, 2, 3, 4, 6, 8, 16)


cdef bint fits(Plan* plan, const Product* product, size_t workspace_nbytes, config):
    cdef Choice choice
    cdef LtHeuristic result
    cdef int index
    if product.flags & PRODUCT_NO_SPLIT and config[CONFIG_SPLITK] > 1:
        return False
    for index in range(CONFIG_COUNT):
        choice.config[index] = config[index]
    choice.has_config = True
    return (lt_algo_of(plan, product, &choice, &result) == BLAS_OK
            and result.workspace_nbytes <= workspace_nbytes)


cdef int algo_of_id(Plan* plan, const Product* product, int number, LtAlgo* algo):
    cdef LtTable* lt = lt_table()
    cdef int type_d = library_type(product.type_d)
    return lt.algo_init(plan.handle, product.compute, scale_type(product),
                        library_type(product.type_a), library_type(product.type_b), type_d, type_d,
                        number, algo)


cdef list capabilities(const LtAlgo* algo, int attribute):
    """Return the values of an array capability; [0] (undefined) when the algorithm has none."""
    cdef uint32_t[1024] values
    cdef size_t written = 0
    if lt_table().algo_cap(algo, attribute, values, sizeof(values), &written) != BLAS_OK:
        return [0]
    return [values[index] for index in range(written // sizeof(uint32_t))] or [0]


cdef int number_capability(const LtAlgo* algo, int attribute):
    cdef int32_t value = 0
    cdef size_t written = 0
    if lt_table().algo_cap(algo, attribute, &value, sizeof(value), &written) != BLAS_OK:
        return 0
    return value


cdef dict ranges_of(const LtAlgo* algo):
    """Return the values that each attribute of an algorithm may take."""
    return {
        CONFIG_TILE: capabilities(algo, CAP_TILE_IDS),
        CONFIG_STAGES: capabilities(algo, CAP_STAGES_IDS),
        CONFIG_CUSTOM_OPTION: list(range(number_capability(algo, CAP_CUSTOM_OPTION_MAX) + 1)),
        CONFIG_SWIZZLING: [0, 1] if number_capability(algo, CAP_SWIZZLING) else [0],
        CONFIG_SPLITK: list(SPLITS) if number_capability(algo, CAP_SPLITK) else [1],
        CONFIG_CLUSTER: list(range(CLUSTERS)),
    }


cdef tuple changed(config, int attribute, int value):
    """Return the configuration with one attribute changed, and the reduction that a split needs."""
    new = list(config)
    new[attribute] = value
    if attribute == CONFIG_SPLITK:
        new[CONFIG_REDUCTION] = REDUCTION_NONE if value == 1 else REDUCTION_COMPUTE_TYPE
    return tuple(new)


cdef list lt_proposals(Plan* plan, const Product* product, size_t workspace_nbytes):
    cdef LtHeuristic[PROPOSALS] results
    cdef Choice choice
    cdef int index
    cdef int count = 0
    found = []
    for limit in (workspace_nbytes, LITTLE_WORKSPACE, 0):
        lt_propose(plan, product, min(limit, workspace_nbytes), PROPOSALS, results, &count)
        for index in range(count):
            if results[index].state == BLAS_OK and (
                    lt_config_of(&results[index].algo, &choice) == BLAS_OK):
                found.append(tuple([choice.config[i] for i in range(CONFIG_COUNT)]))
    return list(dict.fromkeys(found))


cdef list lt_enumerate(Plan* plan, const Product* product, size_t workspace_nbytes,
                       double deadline):
    cdef LtTable* lt = lt_table()
    cdef int[256] ids
    cdef int count = 0
    cdef int type_d = library_type(product.type_d)
    cdef LtAlgo algo
    found = []
    if lt.algo_ids(plan.handle, product.compute, scale_type(product),
                   library_type(product.type_a), library_type(product.type_b), type_d, type_d,
                   256, ids, &count) != BLAS_OK:
        return found
    for number in [ids[index] for index in range(count)]:
        if algo_of_id(plan, product, number, &algo) != BLAS_OK:
            continue
        ranges = ranges_of(&algo)
        for tile in ranges[CONFIG_TILE]:
            for stages in ranges[CONFIG_STAGES]:
                if time.monotonic() > deadline:
                    return found
                base = [0] * CONFIG_COUNT
                base[CONFIG_ID], base[CONFIG_TILE], base[CONFIG_STAGES] = number, tile, stages
                base[CONFIG_SPLITK] = 1
                if not fits(plan, product, workspace_nbytes, base):
                    continue
                found.append(tuple(base))
                for attribute in (CONFIG_CUSTOM_OPTION, CONFIG_SWIZZLING, CONFIG_SPLITK):
                    found += [one for one in [changed(base, attribute, value)
                                              for value in ranges[attribute]]
                              if fits(plan, product, workspace_nbytes, one)]
    return list(dict.fromkeys(found))


cdef list lt_neighbours(Plan* plan, const Product* product, size_t workspace_nbytes, tuple config,
                        double deadline):
    cdef LtAlgo algo
    found = []
    if algo_of_id(plan, product, config[CONFIG_ID], &algo) != BLAS_OK:
        return found
    ranges = ranges_of(&algo)
    for attribute in (CONFIG_CUSTOM_OPTION, CONFIG_CLUSTER, CONFIG_SPLITK, CONFIG_SWIZZLING,
                      CONFIG_STAGES, CONFIG_TILE):
        for value in ranges[attribute]:
            if time.monotonic() > deadline:
                return found
            one = changed(config, attribute, value)
            if one != config and fits(plan, product, workspace_nbytes, one):
                found.append(one)
    return found
