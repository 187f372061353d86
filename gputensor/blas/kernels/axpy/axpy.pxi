"""Products of few rows by weights whose rows lie along the outputs, such as `x @ w` for w [k, n].

The libraries read such weights at half of the memory's rate and less. A block has outputs and a
part of K: as few outputs as leave two blocks for each multiprocessor, then more parts.
"""

cdef enum:
    # As in axpy.cuh: most TOKENS, THREADS, bytes of a row of weights for each thread, and shared
    # memory of a block.
    AXPY_MAX_ROWS = 8
    AXPY_THREADS = 256
    AXPY_NBYTES = 16
    AXPY_SHARED_NBYTES = 32768
    AXPY_LEAST_TERMS = 128      # of a part of K
    AXPY_MOST_PARTS = 8         # blocks of a cluster
    # Bytes of weights: at least; at most for one row, and at least for more than four, in float32.
    AXPY_LEAST_NBYTES = 262144
    AXPY_MOST_OF_ONE = 10000000
    AXPY_LEAST_OF_MANY = 60000000

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


cdef int64_t axpy_choose(const Product* product, const AxpyParameters* p,
                         AxpyForm* form) noexcept nogil:
    """Choose the shape of blocks, and return the number of blocks."""
    cdef const DeviceFacts* device = known_facts(product.device)
    cdef int64_t wanted = 2 * max(1, device.multiprocessors), blocks
    cdef int each = AXPY_NBYTES // dtype_itemsize(product.type_a), most
    form.type_x, form.type_y = product.type_a, product.type_d
    form.tokens = 1 if p.m == 1 else 4 if p.m <= 4 else 8
    form.lanes = 32
    while True:
        blocks = ceil_divide(p.n, form.lanes * each)
        most = AXPY_MOST_PARTS if form.lanes == 8 else AXPY_MOST_PARTS // 2
        form.splits = 1
        while (device.can_cluster and form.splits < most and blocks * form.splits < wanted
                and p.k >= 2 * AXPY_LEAST_TERMS * form.splits):
            form.splits *= 2
        if blocks * form.splits >= wanted or form.lanes == 8:
            return blocks * form.splits
        form.lanes //= 2


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
    # Measured on an H200 at 300 random sizes, which also gave the limits
    # (`benchmarks/product_sweep.py --few-rows --seed 7`): 90 are taken, 1.57 times as fast as by
    # the better library in the geometric mean, .94 for 4 x 800 x 7092 in TF32, no other one below
    # 1. Without limits .45 to 4.4, 1.29 in the mean: with more rows, TF32 and 16-bit floats have
    # tensor cores there.
    cdef AxpyParameters p
    cdef int64_t nbytes
    axpy_fill(product, &p)
    nbytes = p.n * p.k * dtype_itemsize(product.type_a)
    if p.n < 64 or nbytes < AXPY_LEAST_NBYTES:
        return False
    if product.type_a != DT_FLOAT32:
        return p.m == 1 and p.n >= 128
    if p.m == 1:
        return nbytes <= AXPY_MOST_OF_ONE
    return p.m <= 4 or product.compute == COMPUTE_32F and nbytes >= AXPY_LEAST_OF_MANY


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
    tokens : {1, 4, 8}
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
