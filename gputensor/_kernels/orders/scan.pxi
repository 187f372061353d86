"""Scans on a CUDA device: how a length is cut into chunks (cuda/orders/scan.cuh).

The cut depends on the shape alone, so the same call gives the same bits on every GPU.
"""

cdef enum:
    SCAN_TOTALS = 0             # the forms of scan.cuh
    SCAN_PREFIXES = 1
    SCAN_APPLY = 2
    SCAN_THREADS = 256
    MOST_CHUNKS = 4096
    # Rows, or columns, that fill a GPU without chunks.
    MANY_ROWS = 1024
    MANY_COLUMNS = 65536
    LEAST_COLUMN = 64

cdef KernelTable scan_kernels


cdef int64_t scan_ceil(int64_t a, int64_t b) noexcept nogil:
    return (a + b - 1) // b


cdef int launch_scan(int form, int* variant, int64_t blocks, Launch* launch) except -1:
    """`variant`: form, dtypes of input and output, product, column."""
    variant[0] = form
    if blocks > MOST_BLOCKS:
        raise argument_error(ValueError, "blocks", blocks, "fewer than 2**31")
    launch.grid[0] = <uint32_t>blocks
    cdef uint64_t key = (((form << 5 | variant[1]) << 5 | variant[2]) << 1 | variant[3]) << 1
    return launch_kernel(kernel_of(&scan_kernels, key | <uint64_t>variant[4], scan_program,
                                   variant), launch)


cdef object scan_program(const void* given):
    cdef const int* variant = <const int*>given
    return programs.scan(variant[0], variant[1], variant[2], variant[3], variant[4])


cdef void cut(ScanParameters* p, int64_t tile) noexcept nogil:
    cdef int64_t threads = p.outer * p.inner
    p.chunk = p.length
    if p.inner == 1:
        if p.outer < MANY_ROWS and p.length > tile:
            p.chunk = tile * scan_ceil(scan_ceil(p.length, tile), MOST_CHUNKS)
    elif threads < MANY_COLUMNS and p.length > LEAST_COLUMN:
        p.chunk = max(LEAST_COLUMN, scan_ceil(p.length, scan_ceil(2 * MANY_COLUMNS, threads)))
    p.chunks = scan_ceil(p.length, p.chunk)


cdef int cuda_scan(int device, uint64_t stream, const Operand* out, const Operand* x,
                   bint is_product) except -1:
    cdef ScanParameters p
    cdef Launch launch
    cdef int[5] variant
    cdef int64_t columns, rows
    cdef int itemsize = max(4, dtype_itemsize(out.dtype))
    cdef Block* block = NULL
    memset(&p, 0, sizeof(p))
    p.input, p.out = x.ptr, out.ptr
    p.outer, p.length, p.inner = x.shape[0], x.shape[1], x.shape[2]
    cut(&p, SCAN_THREADS * (8 if itemsize == 16 else 16))
    variant[1], variant[2], variant[3] = x.dtype, out.dtype, is_product
    variant[4] = p.inner > 1
    launch_init(&launch, device, stream, 1, SCAN_THREADS, &p, sizeof(p))
    rows = p.outer * p.chunks
    columns = scan_ceil(rows * p.inner, SCAN_THREADS)
    if p.chunks == 1:
        return launch_scan(SCAN_APPLY, variant, columns if variant[4] else rows, &launch)
    block = scratch(device, stream, <size_t>(rows * p.inner * itemsize))
    try:
        p.totals = block.ptr
        launch_scan(SCAN_TOTALS, variant, columns if variant[4] else rows, &launch)
        launch_scan(SCAN_PREFIXES, variant,
                    scan_ceil(p.outer * p.inner, SCAN_THREADS) if variant[4] else p.outer, &launch)
        return launch_scan(SCAN_APPLY, variant, columns if variant[4] else rows, &launch)
    finally:
        allocator_free(block)
