"""Scans on a CUDA device: how a length is cut into chunks (cuda/orders/scan.cuh).

The cut depends on the shape alone, so the same call gives the same bits on every GPU.
"""

cdef enum:
    SCAN_TOTALS = 0             # the forms of scan.cuh
    SCAN_PREFIXES = 1
    SCAN_COLUMN = 2
    SCAN_ROW = 3
    SCAN_ONE_PASS = 4
    SCAN_THREADS = 256
    # Numbers of rows and of columns that fill a GPU without chunks.
    MANY_ROWS = 1024
    MANY_COLUMNS = 65536
    LEAST_COLUMN = 64
    COUNTER_NBYTES = 16         # before the words of prefix.cuh


cdef size_t prefix_nbytes(int64_t rows, int64_t tiles, int itemsize) noexcept nogil:
    """The memory of prefix.cuh: the counter, and words for tiles and groups of them."""
    cdef int64_t words = itemsize // 4
    return COUNTER_NBYTES + <size_t>(rows * (tiles + ceil_divide(tiles, SCAN_THREADS)) * words * 8)


cdef int cuda_scan(int device, uint64_t stream, const Operand* out, const Operand* x,
                   int op) except -1:
    cdef ScanParameters p
    cdef Launch launch
    cdef int[5] numbers
    cdef int itemsize = max(4, dtype_itemsize(out.dtype))   # of the kernel's arithmetic
    memset(&p, 0, sizeof(p))
    p.input, p.out = x.ptr, out.ptr
    p.outer, p.length, p.inner = x.shape[0], x.shape[1], x.shape[2]
    numbers[0], numbers[2], numbers[3], numbers[4] = x.dtype, out.dtype, op, 0
    launch_init(&launch, device, stream, 1, SCAN_THREADS, &p, sizeof(p))
    if p.inner == 1:
        return scan_rows(device, stream, &p, numbers, &launch, itemsize)
    return scan_columns(device, stream, &p, numbers, &launch, itemsize)


cdef int scan_rows(int device, uint64_t stream, ScanParameters* p, int* numbers, Launch* launch,
                   int itemsize) except -1:
    cdef int64_t tile = SCAN_THREADS * (8 if itemsize == 16 else 16 if itemsize == 8 else 32)
    cdef size_t nbytes
    cdef Block* block
    p.chunks, p.chunk = ceil_divide(p.length, tile), tile
    if p.chunks == 1 or p.outer >= MANY_ROWS:
        numbers[1] = SCAN_ROW
        return launch_order(SCAN, numbers, p.outer, launch)
    nbytes = prefix_nbytes(p.outer, p.chunks, itemsize)
    block = scratch(device, stream, nbytes)
    try:
        clear(device, stream, block.ptr, nbytes)
        p.counter, p.words = block.ptr, block.ptr + COUNTER_NBYTES
        numbers[1] = SCAN_ONE_PASS
        return launch_order(SCAN, numbers, p.outer * p.chunks, launch)
    finally:
        allocator_free(block)


cdef int scan_columns(int device, uint64_t stream, ScanParameters* p, int* numbers,
                      Launch* launch, int itemsize) except -1:
    cdef int64_t threads = p.outer * p.inner
    cdef int64_t blocks
    cdef Block* block
    p.chunk = p.length
    if threads < MANY_COLUMNS and p.length > LEAST_COLUMN:
        p.chunk = max(LEAST_COLUMN,
                      ceil_divide(p.length, ceil_divide(2 * MANY_COLUMNS, threads)))
    p.chunks = ceil_divide(p.length, p.chunk)
    blocks = ceil_divide(threads * p.chunks, SCAN_THREADS)
    numbers[1] = SCAN_COLUMN
    if p.chunks == 1:
        return launch_order(SCAN, numbers, blocks, launch)
    block = scratch(device, stream, <size_t>(threads * p.chunks * itemsize))
    try:
        p.totals = block.ptr
        numbers[1] = SCAN_TOTALS
        launch_order(SCAN, numbers, blocks, launch)
        numbers[1] = SCAN_PREFIXES
        launch_order(SCAN, numbers, ceil_divide(threads, SCAN_THREADS), launch)
        numbers[1] = SCAN_COLUMN
        return launch_order(SCAN, numbers, blocks, launch)
    finally:
        allocator_free(block)
