"""Searching and counting on a CUDA device (cuda/orders/search.cuh, count.cuh)."""

cdef enum:
    SHARED_COUNTS = 4096        # as in count.cuh
    COUNT_WAVES = 16


cdef int cuda_search(int device, uint64_t stream, const Operand* x, const Operand* values,
                     uint64_t out, bint is_right) except -1:
    cdef SearchParameters parameters
    cdef Launch launch
    memset(&parameters, 0, sizeof(parameters))
    parameters.sorted, parameters.wanted, parameters.out = x.ptr, values.ptr, out
    parameters.columns, parameters.count = x.shape[0], values.shape[0]
    parameters.is_right = is_right
    launch_init(&launch, device, stream, 1, ORDER_THREADS, &parameters, sizeof(parameters))
    return launch_order(SEARCH, x.dtype, 0,
                        (values.shape[0] + ORDER_THREADS - 1) // ORDER_THREADS, &launch)


cdef int cuda_count(int device, uint64_t stream, const Operand* counts,
                    const Operand* x) except -1:
    cdef CountParameters parameters
    cdef Launch launch
    cdef int64_t most = COUNT_WAVES * <int64_t>max(1, device_facts(device).multiprocessors)
    memset(&parameters, 0, sizeof(parameters))
    parameters.input, parameters.counts = x.ptr, counts.ptr
    parameters.count, parameters.length = x.shape[0], counts.shape[0]
    launch_init(&launch, device, stream, 1, ORDER_THREADS, &parameters, sizeof(parameters))
    return launch_order(COUNT, x.dtype, 1 if counts.shape[0] <= SHARED_COUNTS else 0,
                        min(most, (x.shape[0] + ORDER_THREADS - 1) // ORDER_THREADS), &launch)
