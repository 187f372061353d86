"""Sorting rows and selecting from them on a CUDA device (sort.cuh, radix.cuh, topk.cuh)."""

cdef enum:
    STEP_COUNTS = 0         # of radix.cuh
    STEP_STARTS = 1
    STEP_PASS = 2
    DIGITS = 256
    RADIX_COUNTED = 64
    LARGEST_TILE = 2048     # of sort.cuh
    TOPK_THREADS = 512


cdef int64_t tile_above(int64_t count) noexcept nogil:
    cdef int64_t tile = 64
    while tile < count and tile < LARGEST_TILE:
        tile *= 2
    return tile


cdef int cuda_sort(int device, uint64_t stream, const Operand* x, uint64_t values, uint64_t order,
                   bint is_descending) except -1:
    """Sort rows; writes `values` or `order`, of which the other is 0."""
    cdef SortParameters parameters
    cdef Launch launch
    cdef int[5] numbers
    cdef int64_t tile = tile_above(x.shape[1])
    cdef int64_t rows
    if x.shape[1] > LARGEST_TILE:
        return radix_sort(device, stream, x, values, order, is_descending)
    memset(&parameters, 0, sizeof(parameters))
    parameters.input, parameters.values, parameters.order = x.ptr, values, order
    parameters.rows, parameters.columns = x.shape[0], x.shape[1]
    parameters.is_descending = is_descending
    numbers[0], numbers[1], numbers[2], numbers[3] = x.dtype, <int>tile, order != 0, 0
    numbers[4] = 0
    rows = 4 if tile <= 256 else 1
    launch_init(&launch, device, stream, 1, 32 if tile <= 256 else <uint32_t>(tile // 8),
                &parameters, sizeof(parameters))
    launch.block[1] = <uint32_t>rows
    return launch_order(SORT, numbers, ceil_divide(x.shape[0], rows), &launch)


cdef int radix_sort(int device, uint64_t stream, const Operand* x, uint64_t values, uint64_t order,
                    bint is_descending) except -1:
    """Sort rows by passes. Scratch memory: two buffers of keys and places, and states of tiles."""
    cdef RadixParameters p
    cdef Launch launch
    cdef int[5] numbers
    cdef int passes = order_programs.passes(x.dtype)
    cdef int threads, each
    cdef size_t count = <size_t>(x.shape[0] * x.shape[1])
    cdef size_t key = 8 if dtype_itemsize(x.dtype) == 8 else 4
    cdef bint is_wide = x.shape[1] >= 1 << 30
    cdef size_t buffers = min(2, passes - 1)
    cdef size_t states, counts, zeros
    cdef uint64_t[2] keys
    cdef uint64_t[2] places
    cdef Block* block
    cdef int i
    memset(&p, 0, sizeof(p))
    p.rows, p.columns, p.is_descending = x.shape[0], x.shape[1], is_descending
    threads, each = order_programs.radix_tile(x.dtype)
    p.tiles = ceil_divide(p.columns, threads * each)
    counts = states = 0
    if p.tiles > 1:
        counts = <size_t>(p.rows * passes * DIGITS * 8)
        states = <size_t>(p.rows * p.tiles * DIGITS * (8 if is_wide else 4))
    # The first part begins as zeros: the counters of the passes, the counts, states of each pass.
    zeros = 64 + counts + states * passes
    block = scratch(device, stream, zeros + buffers * count * (key + (4 if order else 0)))
    try:
        clear(device, stream, block.ptr, zeros)
        for i in range(2):
            keys[i] = block.ptr + zeros + min(i, buffers) * count * key
            places[i] = block.ptr + zeros + buffers * count * key + min(i, buffers) * count * 4
        p.input, p.counts = x.ptr, block.ptr + 64
        p.result = order if order else values
        numbers[0], numbers[1], numbers[2] = x.dtype, STEP_COUNTS, order != 0
        numbers[3], numbers[4] = 0, is_wide
        launch_init(&launch, device, stream, 1, threads, &p, sizeof(p))
        if p.tiles > 1:
            launch_order(RADIX, numbers, p.rows * ceil_divide(p.tiles, RADIX_COUNTED), &launch)
            numbers[1] = STEP_STARTS
            launch_order(RADIX, numbers, p.rows * passes, &launch)
        numbers[1] = STEP_PASS
        for i in range(passes):
            p.number = i
            p.counter = block.ptr + 4 * i
            p.words = p.counts + counts + i * states
            numbers[3] = i == 0
            p.out = keys[i % 2]
            p.next_places = places[i % 2]
            launch_order(RADIX, numbers, p.rows * p.tiles, &launch)
            p.input, p.places = p.out, p.next_places
        return 0
    finally:
        allocator_free(block)


cdef int cuda_topk(int device, uint64_t stream, const Operand* x, const Operand* values,
                   const Operand* order, bint is_largest) except -1:
    cdef SortParameters parameters
    cdef Launch launch
    cdef int[5] numbers
    if order.shape[1] > LARGEST_TILE:
        raise argument_error(ValueError, "topk: k", order.shape[1], "at most 2048")
    memset(&parameters, 0, sizeof(parameters))
    memset(numbers, 0, sizeof(numbers))
    parameters.input, parameters.values, parameters.order = x.ptr, values.ptr, order.ptr
    parameters.rows, parameters.columns = x.shape[0], x.shape[1]
    parameters.width = order.shape[1]
    parameters.is_descending = is_largest
    numbers[0], numbers[1] = x.dtype, <int>tile_above(order.shape[1])
    launch_init(&launch, device, stream, 1, TOPK_THREADS, &parameters, sizeof(parameters))
    return launch_order(TOPK, numbers, x.shape[0], &launch)
