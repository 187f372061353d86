"""Sorting rows and selecting from them on a CUDA device (cuda/orders/sort.cuh, topk.cuh)."""

cdef extern from "gputensor/_kernels/cuda/orders/orders.h" namespace "gputensor" nogil:
    cdef struct SortParameters:
        uint64_t input
        uint64_t values
        uint64_t order
        uint64_t keys
        uint64_t next_keys
        uint64_t places
        uint64_t next_places
        int64_t rows
        int64_t columns
        int64_t width
        int64_t is_descending

    cdef struct SearchParameters:
        uint64_t sorted
        uint64_t wanted
        uint64_t out
        int64_t columns
        int64_t count
        int64_t is_right

    cdef struct CountParameters:
        uint64_t input
        uint64_t counts
        int64_t count
        int64_t length

    cdef struct ScanParameters:
        uint64_t input
        uint64_t out
        uint64_t totals
        int64_t outer
        int64_t length
        int64_t inner
        int64_t chunks
        int64_t chunk

cdef enum:
    SORT_TILES = 0          # the forms of sort.cuh
    SORT_MERGE = 1
    SORT_FINISH = 2
    TOPK = 3
    SEARCH = 4
    COUNT = 5
    LARGEST_TILE = 2048
    ORDER_THREADS = 256
    TOPK_THREADS = 512
    MOST_BLOCKS = 0x7fffffff

cdef KernelTable order_kernels


cdef int launch_order(int form, int dtype, int64_t size, int64_t blocks, Launch* launch) except -1:
    """Launch a kernel of this room in so many blocks; `size` is a tile, slots or a flag."""
    cdef int64_t[3] variant
    variant[0], variant[1], variant[2] = form, dtype, size
    if blocks > MOST_BLOCKS:
        raise argument_error(ValueError, "blocks", blocks, "fewer than 2**31")
    launch.grid[0] = <uint32_t>blocks
    return launch_kernel(kernel_of(&order_kernels, <uint64_t>((size << 5 | dtype) << 3 | form),
                                   order_program, variant), launch)


cdef object order_program(const void* given):
    cdef const int64_t* variant = <const int64_t*>given
    return programs.order(variant[0], variant[1], variant[2])


cdef Block* scratch(int device, uint64_t stream, size_t nbytes) except NULL:
    cdef status_t status = 0
    cdef Block* block = allocator_malloc(device, nbytes, stream, &status)
    if block == NULL:
        raise_for_malloc(device, nbytes, stream, status)
    return block


cdef int64_t tile_above(int64_t count) noexcept nogil:
    cdef int64_t tile = 64
    while tile < count and tile < LARGEST_TILE:
        tile *= 2
    return tile


cdef int cuda_sort(int device, uint64_t stream, const Operand* x, uint64_t values, uint64_t order,
                   bint is_descending) except -1:
    cdef SortParameters parameters
    cdef Launch launch
    cdef int64_t tile = tile_above(x.shape[1])
    cdef int64_t tiles = (x.shape[1] + tile - 1) // tile
    cdef size_t count = <size_t>(x.shape[0] * x.shape[1])
    cdef size_t key = 8 if dtype_itemsize(x.dtype) == 8 else 4
    cdef Block* block
    memset(&parameters, 0, sizeof(parameters))
    parameters.input, parameters.values, parameters.order = x.ptr, values, order
    parameters.rows, parameters.columns = x.shape[0], x.shape[1]
    parameters.is_descending = is_descending
    launch_init(&launch, device, stream, 1, <uint32_t>(tile // 2), &parameters, sizeof(parameters))
    if tiles == 1:
        return launch_order(SORT_TILES, x.dtype, tile, x.shape[0], &launch)
    block = scratch(device, stream, 2 * count * (key + 4))
    try:
        parameters.keys = block.ptr
        parameters.next_keys = parameters.keys + count * key
        parameters.places = parameters.next_keys + count * key
        parameters.next_places = parameters.places + count * 4
        launch_order(SORT_TILES, x.dtype, tile, x.shape[0] * tiles, &launch)
        launch.block[0] = ORDER_THREADS
        tiles = <int64_t>((count + ORDER_THREADS - 1) // ORDER_THREADS)
        parameters.width = tile
        while parameters.width < parameters.columns:
            launch_order(SORT_MERGE, x.dtype, 0, tiles, &launch)
            parameters.keys, parameters.next_keys = parameters.next_keys, parameters.keys
            parameters.places, parameters.next_places = parameters.next_places, parameters.places
            parameters.width *= 2
        return launch_order(SORT_FINISH, x.dtype, 0, tiles, &launch)
    finally:
        allocator_free(block)


cdef int cuda_topk(int device, uint64_t stream, const Operand* x, const Operand* values,
                   const Operand* order, bint is_largest) except -1:
    cdef SortParameters parameters
    cdef Launch launch
    if order.shape[1] > LARGEST_TILE:
        raise argument_error(ValueError, "topk: k", order.shape[1], "2048 at most")
    memset(&parameters, 0, sizeof(parameters))
    parameters.input, parameters.values, parameters.order = x.ptr, values.ptr, order.ptr
    parameters.rows, parameters.columns = x.shape[0], x.shape[1]
    parameters.width = order.shape[1]
    parameters.is_descending = is_largest
    launch_init(&launch, device, stream, 1, TOPK_THREADS, &parameters, sizeof(parameters))
    return launch_order(TOPK, x.dtype, tile_above(order.shape[1]), x.shape[0], &launch)
