"""Products of few rows by weights whose rows lie along the outputs, such as `x @ w` for w [k, n].

The libraries read such weights at half of the memory's rate and less. A block has outputs and a
part of K; a model of the time of its waves chooses how many of each.
"""

cdef enum:
    AXPY_MAX_ROWS = 8
    AXPY_THREADS = 256
    AXPY_NBYTES = 16            # of a row of weights, for each thread
    AXPY_SHARED_NBYTES = 32768
    AXPY_LEAST_TERMS = 128      # of a part of K
    AXPY_LEAST_NBYTES = 262144  # of weights

# The model of time, in nanoseconds and bytes per nanosecond, of an H200.
cdef double AXPY_RATE = 4200            # of the device
cdef double AXPY_BLOCK_RATE = 40        # of a block that has the memory to itself
cdef double AXPY_WAVE = 1000            # to begin and end a block
cdef double AXPY_PART = 100             # for each part of K
cdef double AXPY_TERM = 0.15            # for each term of a row of x

cdef extern from "gputensor/blas/kernels/axpy/axpy.h" namespace "gputensor" nogil:
    cdef struct AxpyParameters:
        uint64_t x
        uint64_t w
        uint64_t bias
        uint64_t addend
        uint64_t y
        int64_t n
        int64_t k
        int64_t w_pitch
        int64_t x_row
        int64_t x_term
        int64_t y_row
        int64_t y_column
        int64_t addend_row
        int64_t addend_column
        int64_t bias_row
        int64_t bias_column
        int64_t slice
        int m
        float alpha
        float beta

cdef struct AxpyForm:
    int type_x
    int type_y
    int tokens
    int lanes
    int splits

cdef KernelTable axpy_kernels


cdef inline bint axpy_is_turned(const Product* product) noexcept nogil:
    """Return whether the weights are B; otherwise they are A."""
    return product.n > AXPY_MAX_ROWS


cdef void axpy_fill(const Product* product, AxpyParameters* p) noexcept nogil:
    """Fill in operands and extents, in elements."""
    cdef int itemsize = dtype_itemsize(product.type_a)
    memset(p, 0, sizeof(p[0]))
    p.k, p.y, p.bias, p.addend = product.k, product.d, product.bias, product.c
    p.alpha, p.beta = <float>product.alpha, <float>product.beta
    if axpy_is_turned(product):
        p.x, p.w, p.m, p.n = product.a, product.b, <int>product.m, product.n
        p.w_pitch = product.ldb * itemsize
        p.x_row, p.x_term = 1, product.lda
        if product.op_a == OP_T:
            p.x_row, p.x_term = product.lda, 1
        p.y_row, p.y_column = 1, product.ldd
        p.addend_row, p.addend_column = 1, product.ldc
        p.bias_row = 1
    else:
        p.x, p.w, p.m, p.n = product.b, product.a, <int>product.n, product.m
        p.w_pitch = product.lda * itemsize
        p.x_row, p.x_term = product.ldb, 1
        if product.op_b == OP_T:
            p.x_row, p.x_term = 1, product.ldb
        p.y_row, p.y_column = product.ldd, 1
        p.addend_row, p.addend_column = product.ldc, 1
        p.bias_column = 1


cdef double axpy_cost(const AxpyForm* form, int64_t blocks, int64_t k, int each,
                      int multiprocessors) noexcept nogil:
    """Return the nanoseconds that a shape of blocks takes: those of its waves, one by one."""
    cdef int64_t room = (3 if form.tokens * each < 32 else 2) * multiprocessors
    cdef double terms = <double>ceil_divide(k, form.splits)
    cdef double nbytes = terms * form.lanes * AXPY_NBYTES, alone = nbytes / AXPY_BLOCK_RATE
    cdef double fixed = AXPY_WAVE + AXPY_TERM * terms * form.tokens, cost
    if form.splits > 2:
        room = max(1, room * 10 // 11)      # clusters leave some multiprocessors idle
    cost = blocks // room * (max(alone, nbytes * room / AXPY_RATE) + fixed)
    if blocks % room:
        cost += max(alone, nbytes * (blocks % room) / AXPY_RATE) + fixed
    return cost + AXPY_PART * form.splits


cdef int64_t axpy_choose(const Product* product, const AxpyParameters* p,
                         AxpyForm* form) noexcept nogil:
    """Choose the shape of blocks, and return the number of blocks."""
    cdef const DeviceFacts* device = known_facts(product.device)
    cdef int multiprocessors = max(1, device.multiprocessors)
    cdef int each = AXPY_NBYTES // dtype_itemsize(product.type_a)
    cdef int lanes, splits, halving, doubling
    cdef int64_t blocks, best_blocks = 0
    cdef double cost, best = 0
    cdef AxpyForm tried
    tried.type_x, tried.type_y = product.type_a, product.type_d
    tried.tokens = p.m if p.m <= 2 else 4 if p.m <= 4 else 8
    for halving in range(3):
        for doubling in range(4):
            lanes, splits = 32 >> halving, 1 << doubling
            if splits > 1 and (not device.can_cluster or p.k < splits * AXPY_LEAST_TERMS):
                break
            tried.lanes, tried.splits = lanes, splits
            blocks = ceil_divide(p.n, lanes * each) * splits
            cost = axpy_cost(&tried, blocks, p.k, each, multiprocessors)
            if best_blocks == 0 or cost < best:
                best, best_blocks, form[0] = cost, blocks, tried
    return best_blocks


cdef object axpy_program_of(const void* variant):
    cdef const AxpyForm* form = <const AxpyForm*>variant
    return axpy_program(DTYPES[form.type_x].name, DTYPES[form.type_y].name, form.tokens,
                        form.lanes, form.splits)


cdef void* axpy_kernel(const AxpyForm* form) except NULL nogil:
    cdef uint64_t key = form.type_x << 5 | form.type_y
    key = ((key << 4 | form.tokens) << 6 | form.lanes) << 4 | form.splits
    return kernel_of(&axpy_kernels, key, axpy_program_of, form)


cdef bint axpy_can(const Product* product) except -1 nogil:
    cdef AxpyParameters p
    if product.batch != 1 or product.outer_ndim or product.scale_a or product.k < 1:
        return False
    if not is_float(product.type_a) or product.type_b != product.type_a:
        return False
    if product.type_d != product.type_a and product.type_d != DT_FLOAT32:
        return False
    if product.activation != ACT_NONE or product.alpha_imag != 0 or product.beta_imag != 0:
        return False
    if product.compute not in (COMPUTE_32F, COMPUTE_32F_FAST_TF32, COMPUTE_32F_FAST_16BF):
        return False
    if axpy_is_turned(product):
        if product.m > AXPY_MAX_ROWS or product.op_b != OP_T:
            return False
    elif product.op_a != OP_N:
        return False
    axpy_fill(product, &p)
    return ((p.w | <uint64_t>p.w_pitch | <uint64_t>(p.n * dtype_itemsize(product.type_a)))
            % AXPY_NBYTES == 0 and p.n <= SKINNY_MAX_SIZE and p.k <= SKINNY_MAX_SIZE)


cdef bint axpy_wins(const Product* product) except -1 nogil:
    # Measured on an H200 at 300 random sizes, m from 1 to 8. With more rows the libraries' tensor
    # cores win in TF32 and in 16-bit floats.
    cdef AxpyParameters p
    cdef int64_t rows = 8, columns = 64
    if product.type_a != DT_FLOAT32:
        rows, columns = 3, 256
    elif product.compute != COMPUTE_32F:
        rows = 4
    axpy_fill(product, &p)
    return (p.m <= rows and p.n >= columns
            and p.n * p.k * dtype_itemsize(product.type_a) >= AXPY_LEAST_NBYTES)


cdef int axpy_build(const Product* product, const Choice* choice, Plan* plan) except -1 nogil:
    cdef AxpyParameters p
    cdef AxpyForm form
    axpy_fill(product, &p)
    axpy_choose(product, &p, &form)
    plan.handle = axpy_kernel(&form)
    return compiled(plan.handle, product.device, AXPY_SHARED_NBYTES)


cdef int axpy_launch(const Work* work) except -1 nogil:
    cdef AxpyParameters p
    cdef AxpyForm form
    cdef Launch launch
    cdef int64_t blocks
    axpy_fill(work.products, &p)
    blocks = axpy_choose(work.products, &p, &form)
    p.slice = ceil_divide(p.k, form.splits)
    launch_init(&launch, work.products.device, work.stream, <uint32_t>blocks, AXPY_THREADS, &p,
                sizeof(p))
    launch.shared_nbytes = launch.most_shared_nbytes = AXPY_SHARED_NBYTES
    return launch_kernel(axpy_kernel(&form), &launch)


def axpy_program(x_name, y_name, tokens, lanes, splits):
    """Return the program of products in the axpy form.

    Parameters
    ----------
    x_name, y_name : {"float16", "bfloat16", "float32"}
        Element types of the operands and of the result.
    tokens : {1, 2, 4, 8}
        Rows of x at most.
    lanes : {8, 16, 32}
        Threads of a block with different outputs; each has 16 bytes of a row of weights.
    splits : {1, 2, 4, 8}
        Blocks of a cluster among which K is cut. More than 1 needs sm_90.

    Examples
    --------
    >>> ("LANES", 32) in axpy_program("float32", "float32", 4, 32, 1).defines
    True
    """
    defines = {"X_KIND": programs.KINDS[x_name], "Y_KIND": programs.KINDS[y_name]}
    defines |= {"TOKENS": tokens, "LANES": lanes, "SPLITS": splits}
    return programs.program_of("axpy/axpy.cuh", defines, minimum=90 if splits > 1 else 75)
