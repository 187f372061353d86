"""Products with narrow results in float32, whose long operand is stored term by term.

The libraries' kernels for it do not read at the memory's rate. The terms are cut among blocks until
these fill the device some times; the parts are added by a second launch.
"""

cdef enum:
    # As in narrow.cuh:
    NARROW_THREADS = 128
    NARROW_CHUNK = 128          # terms
    MOST_NARROW_COLUMNS = 8
    NARROW_BLOCKS = 4           # of a multiprocessor
    NARROW_LEAST_NBYTES = 8 << 20
    NARROW_LEAST_ROWS = 512

cdef extern from "gputensor/blas/kernels/narrow/narrow.h" namespace "gputensor" nogil:
    cdef struct NarrowParameters:
        uint64_t x
        uint64_t w
        uint64_t y
        uint64_t parts
        int64_t n
        int64_t k
        int64_t x_pitch
        int64_t w_term
        int64_t w_column
        int64_t y_pitch
        int64_t slice
        float alpha
        float beta
        int splits

cdef struct NarrowVariant:      # what a kernel is compiled for
    int columns
    int vector
    int is_join

cdef KernelTable narrow_kernels


cdef bint narrow_can(const Product* product) except -1 nogil:
    if product.batch != 1 or product.outer_ndim or product.scale_a or product.scale_b:
        return False
    if product.type_a != DT_FLOAT32 or product.type_b != DT_FLOAT32:
        return False
    if product.type_d != DT_FLOAT32 or product.compute != COMPUTE_32F or product.op_b == OP_N:
        return False
    return (1 < product.m <= MOST_NARROW_COLUMNS and product.k > 0 and product.n > 0
            and product.activation == ACT_NONE)


cdef bint narrow_wins(const Product* product) except -1 nogil:
    return (product.n >= NARROW_LEAST_ROWS and product.k >= NARROW_CHUNK
            and 4 * product.n * product.k >= NARROW_LEAST_NBYTES)


cdef object narrow_program(const void* variant):
    cdef const NarrowVariant* given = <const NarrowVariant*>variant
    return programs.narrow(given.columns, given.vector, bool(given.is_join))


cdef void* narrow_kernel(const Product* product, bint is_join) except NULL nogil:
    cdef NarrowVariant made
    made.columns, made.is_join = <int>product.m, is_join
    made.vector = 1 if is_join or product.b % 16 or product.ldb % 4 else 4
    # Threads have whole vectors.
    if product.n % 4:
        made.vector = 1
    return kernel_of(&narrow_kernels, made.columns << 4 | made.vector << 1 | made.is_join,
                     narrow_program, &made)


cdef int64_t narrow_blocks(const Product* product) noexcept nogil:
    """Return the blocks along the rows of the result."""
    cdef bint is_even = product.b % 16 == 0 and product.ldb % 4 == 0 and product.n % 4 == 0
    return ceil_divide(product.n, NARROW_THREADS * (4 if is_even else 1))


cdef int64_t narrow_slice(const Product* product) noexcept nogil:
    """Return the terms of a block, whole chunks."""
    cdef int64_t wanted = NARROW_BLOCKS * known_facts(product.device).multiprocessors
    cdef int64_t splits = ceil_divide(wanted, narrow_blocks(product))
    return ceil_divide(ceil_divide(product.k, splits), NARROW_CHUNK) * NARROW_CHUNK


cdef size_t narrow_scratch(const Plan* plan, const Product* product) noexcept nogil:
    cdef int64_t splits = ceil_divide(product.k, narrow_slice(product))
    return <size_t>(4 * splits * product.n * product.m) if splits > 1 else 0


cdef int narrow_build(const Product* product, const Choice* choice, Plan* plan) except -1 nogil:
    cdef int status
    plan.handle = narrow_kernel(product, False)
    status = compiled(plan.handle, product.device, 0)
    if status == BLAS_OK:
        status = compiled(narrow_kernel(product, True), product.device, 0)
    return status


cdef int narrow_launch(const Work* work) except -1 nogil:
    cdef const Product* product = work.products
    cdef NarrowParameters p
    cdef Grid grid
    memset(&p, 0, sizeof(p))
    p.x, p.w, p.y = product.b, product.a, product.d
    p.n, p.k, p.x_pitch, p.y_pitch = product.n, product.k, product.ldb, product.ldd
    p.w_term, p.w_column = product.lda, 1
    if product.op_a != OP_N:
        p.w_term, p.w_column = 1, product.lda
    p.alpha, p.beta = <float>product.alpha, <float>product.beta
    p.slice = narrow_slice(product)
    p.splits = <int>ceil_divide(product.k, p.slice)
    p.parts = work.scratch if p.splits > 1 else 0
    grid_of_blocks(&grid, narrow_blocks(product), NARROW_THREADS, 0)
    grid.y = p.splits
    queue_kernel(work, narrow_kernel(product, False), &grid, &p, sizeof(p))
    if p.splits > 1:
        grid_of_blocks(&grid, ceil_divide(p.n * product.m, NARROW_THREADS), NARROW_THREADS, 0)
        queue_kernel(work, narrow_kernel(product, True), &grid, &p, sizeof(p))
    return BLAS_OK
