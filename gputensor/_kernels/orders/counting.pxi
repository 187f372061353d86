"""Searching, counting and adding by index on a CUDA device (search.cuh, count.cuh, add.cuh)."""

cdef enum:
    COUNT_VALUES = 0            # the forms of count.cuh
    COUNT_EDGES = 1
    COUNT_EVEN_EDGES = 2
    SHARED_COUNTS = 4096        # most counts of values in shared memory; edges take memory too
    SHARED_EDGES = 2048
    COUNT_WAVES = 8
    ORDER_THREADS = 256


cdef int cuda_search(int device, uint64_t stream, const Operand* x, const Operand* values,
                     uint64_t out, bint is_right) except -1:
    cdef SearchParameters parameters
    cdef Launch launch
    cdef int[5] numbers
    memset(&parameters, 0, sizeof(parameters))
    memset(numbers, 0, sizeof(numbers))
    parameters.sorted, parameters.wanted, parameters.out = x.ptr, values.ptr, out
    parameters.columns, parameters.count = x.shape[0], values.shape[0]
    parameters.is_right = is_right
    numbers[0] = x.dtype
    launch_init(&launch, device, stream, 1, ORDER_THREADS, &parameters, sizeof(parameters))
    return launch_order(SEARCH, numbers, ceil_divide(values.shape[0], ORDER_THREADS), &launch)


cdef int slots_above(int64_t length, int64_t most) noexcept nogil:
    """The counts in shared memory for `length` kinds, in units of 64; 0 if there are too many."""
    cdef int64_t slots = 256
    if length > most:
        return 0
    while slots < length:
        slots *= 4
    return <int>(min(slots, most) // 64)


cdef int cuda_count(int device, uint64_t stream, const Operand* counts, const Operand* x,
                    const Operand* edges, bint is_even) except -1:
    """Count elements; `edges` is NULL if the elements are the numbers of the kinds."""
    cdef CountParameters parameters
    cdef Launch launch
    cdef int[5] numbers
    cdef int64_t most = COUNT_WAVES * <int64_t>max(1, device_facts(device).multiprocessors)
    memset(&parameters, 0, sizeof(parameters))
    parameters.input, parameters.counts = x.ptr, counts.ptr
    parameters.count, parameters.length = x.shape[0], counts.shape[0]
    numbers[0], numbers[1], numbers[2], numbers[4] = x.dtype, COUNT_VALUES, x.dtype, 0
    numbers[3] = slots_above(counts.shape[0], SHARED_COUNTS)
    if edges != NULL:
        parameters.edges = edges.ptr
        numbers[1] = COUNT_EVEN_EDGES if is_even else COUNT_EDGES
        numbers[2] = edges.dtype
        numbers[3] = slots_above(counts.shape[0], SHARED_EDGES)
    launch_init(&launch, device, stream, 1, ORDER_THREADS, &parameters, sizeof(parameters))
    return launch_order(COUNT, numbers, min(most, ceil_divide(x.shape[0], ORDER_THREADS)), &launch)


cdef int cuda_add(int device, uint64_t stream, const Operand* target, const Operand* index,
                  const Operand* source) except -1:
    cdef AddParameters p
    cdef Launch launch
    cdef int[5] numbers
    cdef int64_t size, vector = 1
    memset(&p, 0, sizeof(p))
    p.target, p.index, p.source = target.ptr, index.ptr, source.ptr
    p.outer, p.length, p.inner = target.shape[0], target.shape[1], target.shape[2]
    p.count = source.shape[1]
    if index.ndim == 1 and (target.ptr | source.ptr) % 16 == 0:
        vector = 16 // dtype_itemsize(source.dtype)
        while p.inner % vector:
            vector //= 2
    size = p.outer * p.count * (p.inner // vector)
    numbers[0], numbers[1], numbers[2] = source.dtype, index.dtype, index.ndim == 3
    numbers[3], numbers[4] = <int>vector, size + ORDER_THREADS >= <int64_t>1 << 32
    launch_init(&launch, device, stream, 1, ORDER_THREADS, &p, sizeof(p))
    return launch_order(ADD, numbers, ceil_divide(size, ORDER_THREADS), &launch)
