"""Products of few rows: two kernels that read the weights once, however these lie in memory.

Weights whose rows lie along the outputs, as in `x @ w` for w of shape (k, n), go to axpy.cuh, up to
8 rows of x; weights that lie along the terms go to dots.cuh, up to 16 rows. The libraries read the
former at half of the memory's rate and less, and both slowly where an operand is not aligned to 16
bytes or x is transposed. A block has outputs and a part of K; a model of the time of its waves
chooses how many of each.
"""

cdef enum:
    # As in the texts: most TOKENS, THREADS, PIECE_NBYTES, and shared memory of a block.
    AXPY_MAX_ROWS = 8
    DOTS_MAX_ROWS = 16
    FEW_THREADS = 256
    FEW_WARPS = 8
    MOST_PIECE_NBYTES = 16
    FEW_SHARED_NBYTES = 32768
    FEW_LEAST_TERMS = 128       # of a part of K
    FEW_MOST_PARTS = 8          # blocks of a cluster
    FEW_SLICE = 64              # terms: parts of K begin at multiples
    SECTOR_NBYTES = 32
    # Limits of the rule. Bytes of weights, at most:
    FEW_MOST_OF_ONE = 16000000      # for one row, and where the libraries have much to win
    FEW_MOST_OF_VECTOR = 10000000   # for one row by aligned weights along the terms
    FEW_MOST_OF_PIECES = 8000000    # for one row by weights along the outputs, read by 2 bytes
    FEW_MOST_OF_HALF = 10000000     # for 5 to 8 rows by unaligned weights of 16 bits
    FEW_MOST_OF_EIGHT = 25000000    # for 5 to 8 unaligned rows by aligned weights of 16 bits
    FEW_MOST_OF_ALIGNED = 7000000   # for 2 to 4 rows of 16 bits, where all is aligned
    # Outputs, at most:
    FEW_MOST_ALIGNED = 1500         # for the same
    # Terms:
    FEW_LEAST_OF_EIGHT = 500        # for 5 to 8 unaligned rows by aligned weights of 16 bits
    FEW_LEAST_HALF_TERMS = 256      # for up to 4 rows by aligned weights of 16 bits
    FEW_LEAST_OF_SIXTEEN = 256      # for 9 to 16 rows
    # For one row by weights along the outputs, read by 2 bytes, in lines whose bytes are between
    # the last two: 8 blocks wait for many batches, one after the other (9 outputs of 10,780 terms:
    # .77 of the libraries; 615 products of a row by up to 512 outputs: 1.52, geometric mean).
    FEW_MOST_NARROW = 8000
    FEW_NARROW = 36
    FEW_LEAST_NARROW = 12
    FEW_MOST_UNCUT = 4096           # where K cannot be cut and outputs are fewer than the next
    FEW_LEAST_UNCUT = 512
    # The libraries are faster for more outputs than FEW_MOST_SHORT where lines have fewer bytes
    # than FEW_LEAST_LINE, and where there are 9 to 16 rows.
    FEW_LEAST_LINE = 192
    FEW_MOST_SHORT = 4096
    # One row by aligned lines: 6656 x 1 x 144 in bfloat16 3.0 us, the library 2.6.
    FEW_LEAST_LINE_OF_ONE = 312
    FEW_MOST_SHORT_OF_ONE = 6000
    # 5 to 8 rows in TF32: 12736 x 8 x 11384 186 us, the library 149.
    FEW_MOST_OF_TF32 = 100000000

# The model of time, in nanoseconds and bytes per nanosecond, of an H200.
cdef double FEW_RATE = 2700         # of the device
cdef double AHEAD_RATE = 3500       # of the device, with the next batch in flight
cdef double FEW_SM_RATE = 45        # of a multiprocessor
cdef double FEW_LATENCY = 740       # of a batch of loads
cdef double FEW_WAVE = 1000         # to begin and end a block
cdef double AHEAD_WAVE = 2300
cdef double FEW_PART = 100          # for each part of K
cdef double FEW_MEETING = 300       # of the blocks of clusters, where each multiprocessor has one
cdef double FEW_TERM = 0.15         # for each term of a row of x
cdef double FEW_ISSUED = 1.2        # for an instruction of a block that has a multiprocessor

cdef extern from "gputensor/blas/kernels/few_rows/few_rows.h" namespace "gputensor" nogil:
    cdef struct FewRowsParameters:
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

cdef struct FewRowsForm:
    int type_x
    int type_y
    int nbytes                  # of a piece
    int tokens
    int splits
    int lanes                   # axpy; 0 for dots
    int features                # dots
    int k_warps
    int is_ahead
    double issuing              # nanoseconds of a batch of a block, for its instructions
    int resident                # blocks of a multiprocessor
    int columns                 # outputs of a block
    int batch                   # terms that a block loads at a time

cdef KernelTable few_rows_kernels


# ---- the product in the kernels' terms

cdef inline bint weights_are_b(const Product* product) noexcept nogil:
    """Return whether x is A; x is the operand with fewer rows."""
    return product.m <= product.n


cdef bint few_rows_fill(const Product* product, FewRowsParameters* p) noexcept nogil:
    """Fill in operands and extents, in elements; return whether weights lie along the terms."""
    cdef int itemsize = dtype_itemsize(product.type_a)
    cdef bint is_along_terms
    memset(p, 0, sizeof(p[0]))
    p.k, p.y, p.bias, p.addend = product.k, product.d, product.bias, product.c
    p.alpha, p.beta = <float>product.alpha, <float>product.beta
    if weights_are_b(product):
        p.x, p.w, p.m, p.n = product.a, product.b, <int>product.m, product.n
        p.w_pitch = product.ldb * itemsize
        p.x_row, p.x_term = 1, product.lda
        if product.op_a != OP_N:
            p.x_row, p.x_term = product.lda, 1
        p.y_row, p.y_column = 1, product.ldd
        p.addend_row, p.addend_column = 1, product.ldc
        p.bias_row = 1
        is_along_terms = product.op_b == OP_N
    else:
        p.x, p.w, p.m, p.n = product.b, product.a, <int>product.n, product.m
        p.w_pitch = product.lda * itemsize
        p.x_row, p.x_term = product.ldb, 1
        if product.op_b != OP_N:
            p.x_row, p.x_term = 1, product.ldb
        p.y_row, p.y_column = product.ldd, 1
        p.addend_row, p.addend_column = product.ldc, 1
        p.bias_column = 1
        is_along_terms = product.op_a != OP_N
    return is_along_terms or (p.n == 1 and p.w_pitch == itemsize)


cdef int piece_nbytes(const FewRowsParameters* p, int itemsize, bint is_along_terms) noexcept nogil:
    """Return the bytes of the largest pieces of which all rows of weights consist."""
    cdef int64_t terms = p.k if is_along_terms else p.n
    cdef int64_t lines = p.n if is_along_terms else p.k
    cdef uint64_t places = MOST_PIECE_NBYTES | p.w | <uint64_t>(terms * itemsize)
    if lines > 1:
        places |= <uint64_t>p.w_pitch
    return <int>(places & (~places + 1))


# ---- the shape of blocks

cdef double few_rows_cost(const FewRowsForm* form, int64_t blocks, int64_t k,
                          int multiprocessors) noexcept nogil:
    """Return the nanoseconds that a shape of blocks takes: those of its waves, one by one."""
    cdef int itemsize = dtype_itemsize(form.type_x)
    cdef int64_t room = form.resident * multiprocessors, rest
    cdef int64_t terms = ceil_divide(k, form.splits)
    cdef int64_t batches = ceil_divide(terms, form.batch)
    cdef double nbytes = <double>terms * form.columns * itemsize
    cdef double rate = AHEAD_RATE if form.is_ahead else FEW_RATE
    cdef double fixed = AHEAD_WAVE if form.is_ahead else FEW_WAVE
    # Of one of the blocks that share a multiprocessor.
    cdef double each = max(nbytes / FEW_SM_RATE, batches * form.issuing), cost
    # Rows of x are filled up with zeros to whole batches: 1 x 225 x 4736 in float16 with batches of
    # 16384 terms takes 9 us.
    fixed += FEW_TERM * (batches * form.batch) * form.tokens
    if form.splits > 2:
        room = max(1, room * 10 // 11)      # clusters leave some multiprocessors idle
    rest = blocks % room
    cost = blocks // room * (
        max(batches * FEW_LATENCY, max(nbytes * room / rate, each * form.resident)) + fixed)
    if rest:
        cost += fixed + max(batches * FEW_LATENCY,
                            max(nbytes * rest / rate, each * ceil_divide(rest, multiprocessors)))
    if form.splits > 1:
        cost += FEW_MEETING * min(1.0, <double>blocks / multiprocessors)
    return cost + FEW_PART * form.splits


cdef void try_splits(FewRowsForm* form, const FewRowsParameters* p, const DeviceFacts* device,
                     double* best, FewRowsForm* out) noexcept nogil:
    """Try one shape with each number of splits; store the best so far."""
    cdef int multiprocessors = max(1, device.multiprocessors)
    cdef int64_t tiles = ceil_divide(p.n, form.columns)
    cdef double cost
    form.splits = 1
    while form.splits <= FEW_MOST_PARTS:
        if form.splits > 1 and (not device.can_cluster or p.k < form.splits * FEW_LEAST_TERMS):
            break
        cost = few_rows_cost(form, tiles * form.splits, p.k, multiprocessors)
        if cost < best[0] or best[0] == 0:
            best[0], out[0] = cost, form[0]
        form.splits *= 2


cdef void try_dots(FewRowsForm* tried, const FewRowsParameters* p, const DeviceFacts* device,
                   double* best, FewRowsForm* out) noexcept nogil:
    """Try the shapes of dots.cuh.

    Its macros have the same conditions; if they differed, choices would shift, not results.
    """
    cdef int itemsize = dtype_itemsize(tried.type_x)
    cdef int each = tried.nbytes // itemsize, loads, values, steps
    cdef bint is_whole = tried.nbytes == MOST_PIECE_NBYTES, is_deep
    tried.features = 4 if tried.tokens <= 8 else 2
    while tried.features:
        values = tried.features * tried.tokens
        is_deep = tried.is_ahead and is_whole and values * each <= 16
        tried.resident = 3
        if (values > 16 or values * each > 64 or is_deep
                or (tried.is_ahead and is_whole and tried.features == 4)):
            tried.resident = 2
        loads = 8 if tried.nbytes > 4 and not is_deep else 16
        tried.k_warps = 1
        # A step of all warps has to fit the shared memory.
        while (tried.k_warps <= FEW_WARPS and 32 * tried.k_warps * tried.nbytes * tried.tokens
                <= FEW_SHARED_NBYTES):
            tried.columns = tried.features * (FEW_WARPS // tried.k_warps)
            tried.batch = min(32 * tried.k_warps * each * (loads // tried.features),
                              FEW_SHARED_NBYTES // itemsize // tried.tokens)
            steps = tried.batch // (32 * tried.k_warps * each)
            tried.issuing = FEW_ISSUED * steps * (
                tried.features * (each + 4) + tried.tokens * (1 + each + each * tried.features))
            try_splits(tried, p, device, best, out)
            tried.k_warps *= 2
        tried.features //= 2


cdef void try_axpy(FewRowsForm* tried, const FewRowsParameters* p, const DeviceFacts* device,
                   double* best, FewRowsForm* out) noexcept nogil:
    """Try the shapes of axpy.cuh, whose macros have the same conditions, too."""
    cdef int itemsize = dtype_itemsize(tried.type_x)
    cdef int each = tried.nbytes // itemsize, rows = 16
    cdef int sums = tried.tokens * each
    cdef bint is_deep = tried.is_ahead and tried.nbytes == MOST_PIECE_NBYTES and sums <= 8
    if sums > 32:
        rows = 2 if tried.is_ahead else 4
    elif not is_deep and (tried.nbytes > 4 or tried.tokens > 4):
        rows = 8
    tried.resident = 2 if sums >= 32 or is_deep else 3
    tried.issuing = FEW_ISSUED * rows * (4 + tried.tokens + each + sums)
    tried.lanes = 32
    while tried.lanes:
        tried.columns = tried.lanes * each
        tried.batch = FEW_THREADS // tried.lanes * rows
        # A batch has to fit the shared memory, and lanes should read whole sectors.
        if (tried.batch * tried.tokens * 4 > FEW_SHARED_NBYTES
                or tried.lanes * tried.nbytes < min(SECTOR_NBYTES, p.n * itemsize)):
            break
        try_splits(tried, p, device, best, out)
        tried.lanes //= 2


cdef void few_rows_choose(const Product* product, FewRowsForm* form) noexcept nogil:
    """Choose the shape of blocks."""
    cdef FewRowsParameters p
    cdef bint is_along_terms = few_rows_fill(product, &p)
    cdef const DeviceFacts* device = known_facts(product.device)
    cdef int itemsize = dtype_itemsize(product.type_a), is_ahead
    cdef double best = 0
    cdef FewRowsForm tried
    memset(&tried, 0, sizeof(tried))
    tried.type_x, tried.type_y = product.type_a, product.type_d
    tried.nbytes = piece_nbytes(&p, itemsize, is_along_terms)
    tried.tokens = 1
    while tried.tokens < p.m:
        tried.tokens *= 2
    for is_ahead in range(2):
        tried.is_ahead = is_ahead
        if is_along_terms:
            try_dots(&tried, &p, device, &best, form)
        else:
            try_axpy(&tried, &p, device, &best, form)


# ---- the backend

cdef object few_rows_program_of(const void* variant):
    cdef const FewRowsForm* form = <const FewRowsForm*>variant
    if form.lanes:
        return axpy_program(DTYPES[form.type_x].name, DTYPES[form.type_y].name, form.nbytes,
                            form.tokens, form.lanes, form.splits, bool(form.is_ahead))
    return dots_program(DTYPES[form.type_x].name, DTYPES[form.type_y].name, form.nbytes,
                        form.tokens, (form.features, form.k_warps), form.splits,
                        bool(form.is_ahead))


cdef void* few_rows_kernel(const FewRowsForm* form) except NULL nogil:
    cdef uint64_t key = form.type_x << 5 | form.type_y
    key = ((key << 5 | form.nbytes) << 5 | form.tokens) << 4 | form.splits
    key = ((key << 6 | form.lanes) << 3 | form.features) << 4 | form.k_warps
    key = key << 1 | form.is_ahead
    return kernel_of(&few_rows_kernels, key, few_rows_program_of, form)


cdef bint has_own_form(const Product* product) except -1 nogil:
    """Return whether FewRowsParameters describe the product: one of floats, without activation."""
    if product.batch != 1 or product.outer_ndim or product.scale_a or product.k < 1:
        return False
    if not is_float(product.type_a) or product.type_b != product.type_a:
        return False
    if product.type_d != product.type_a and product.type_d != DT_FLOAT32:
        return False
    if product.activation != ACT_NONE or product.alpha_imag != 0 or product.beta_imag != 0:
        return False
    return product.compute in (COMPUTE_32F, COMPUTE_32F_FAST_TF32, COMPUTE_32F_FAST_16BF)


cdef bint few_rows_can(const Product* product) except -1 nogil:
    cdef FewRowsParameters p
    cdef bint is_along_terms
    if not has_own_form(product):
        return False
    if min(product.m, product.n) > DOTS_MAX_ROWS:
        return False
    is_along_terms = few_rows_fill(product, &p)
    return (p.n <= SKINNY_MAX_SIZE and p.k <= SKINNY_MAX_SIZE
            and (is_along_terms or p.m <= AXPY_MAX_ROWS))


cdef inline bint x_is_aligned(const FewRowsParameters* p, int itemsize) noexcept nogil:
    """Return whether the libraries can read x by 16 bytes."""
    cdef int64_t pitch = p.x_row if p.x_term == 1 else p.x_term
    return (p.x | <uint64_t>(pitch * itemsize)) % MOST_PIECE_NBYTES == 0


cdef bint few_rows_wins(const Product* product) except -1 nogil:
    # Measured on an H200 at 575 random sizes that no other kernel of ours takes, which also gave
    # the limits: 1.39 times as fast as the better library in the geometric mean (1.01 before), and
    # 1.65 for the 367 that this takes. Beyond the limits the libraries win with tensor cores, or
    # read large weights for a single row faster.
    cdef FewRowsParameters p
    cdef bint is_along_terms = few_rows_fill(product, &p)
    cdef int itemsize = dtype_itemsize(product.type_a)
    cdef int piece = piece_nbytes(&p, itemsize, is_along_terms)
    cdef bint is_whole = piece == MOST_PIECE_NBYTES
    cdef int64_t nbytes = p.n * p.k * itemsize
    if (not known_facts(product.device).can_cluster and p.k > FEW_MOST_UNCUT
            and p.n < FEW_LEAST_UNCUT):
        return False        # too few blocks, where K cannot be cut
    if is_along_terms and p.k * itemsize < FEW_LEAST_LINE and p.n > FEW_MOST_SHORT:
        return False
    if p.m == 1:
        if (is_along_terms and is_whole and p.k * itemsize < FEW_LEAST_LINE_OF_ONE
                and p.n > FEW_MOST_SHORT_OF_ONE):
            return False
        if is_along_terms:
            return nbytes <= (FEW_MOST_OF_VECTOR if is_whole else FEW_MOST_OF_ONE)
        if (piece == 2 and p.k > FEW_MOST_NARROW
                and FEW_LEAST_NARROW < p.n * itemsize < FEW_NARROW):
            return False
        return nbytes <= (FEW_MOST_OF_PIECES if piece == 2 else FEW_MOST_OF_ONE)
    if itemsize == 2:
        if p.m <= 4 and is_along_terms:
            # The libraries read large aligned weights at 3.5 TB/s if x lies along the terms, too.
            if not is_whole or p.x_term != 1:
                return True
            # If lines of the results are aligned, too: 1.26 times as fast as the better library at
            # 10 random sizes within these limits, .83 at 19 beyond (5376 of 680 terms: 6.6 us, the
            # library 4.4). If not: 1.76 times at 37 sizes.
            if p.y_column == 1 and p.y_row % (MOST_PIECE_NBYTES // itemsize) == 0:
                return p.n <= FEW_MOST_ALIGNED and nbytes <= FEW_MOST_OF_ALIGNED
            return nbytes <= FEW_MOST_OF_ONE
        if p.m <= 4:
            return not is_whole or p.k >= FEW_LEAST_HALF_TERMS
        if p.m > 8:
            return False
        if not is_whole:
            return nbytes <= FEW_MOST_OF_HALF
        return (not x_is_aligned(&p, itemsize) and p.k >= FEW_LEAST_OF_EIGHT
                and nbytes <= FEW_MOST_OF_EIGHT)
    if p.m <= 8:
        return p.m <= 4 or product.compute == COMPUTE_32F or nbytes <= FEW_MOST_OF_TF32
    # 4613 outputs of 632 terms: 21.4 us, the library 12.3; 3520 of 576: 11.4 and 13.0.
    return (product.compute == COMPUTE_32F and nbytes <= FEW_MOST_OF_ONE
            and p.k >= FEW_LEAST_OF_SIXTEEN and p.n <= FEW_MOST_SHORT)


cdef int few_rows_build(const Product* product, const Choice* choice, Plan* plan) except -1 nogil:
    cdef FewRowsForm form
    few_rows_choose(product, &form)
    plan.handle = few_rows_kernel(&form)
    plan.shape[0], plan.shape[1] = form.columns, form.splits
    return compiled(plan.handle, product.device, 0)


cdef int few_rows_launch(const Work* work) except -1 nogil:
    cdef FewRowsParameters p
    cdef Launch launch
    cdef int columns = work.plan.shape[0], splits = work.plan.shape[1]
    few_rows_fill(work.products, &p)
    p.slice = round_up(ceil_divide(p.k, splits), FEW_SLICE)
    launch_init(&launch, work.products.device, work.stream,
                <uint32_t>(ceil_divide(p.n, columns) * splits), FEW_THREADS, &p, sizeof(p))
    launch.shared_nbytes = FEW_SHARED_NBYTES        # each kernel may have as much
    return launch_kernel(work.plan.handle, &launch)


def axpy_program(x_name, y_name, nbytes, tokens, lanes, splits, ahead=False):
    """Return the program of products of few rows in the axpy form.

    Parameters
    ----------
    x_name, y_name : {"float16", "bfloat16", "float32"}
        Element types of the operands and of the result.
    nbytes : {2, 4, 8, 16}
        Bytes of a row of weights for each thread, at least an element.
    tokens : {1, 2, 4, 8}
        Rows of x at most.
    lanes : {1, 2, 4, 8, 16, 32}
        Threads of a block with different outputs.
    splits : {1, 2, 4, 8}
        Blocks of a cluster among which K is cut. More than 1 needs sm_90.
    ahead : bool
        Whether a thread loads the next batch while it uses one.

    Examples
    --------
    >>> ("LANES", 32) in axpy_program("float32", "float32", 16, 4, 32, 1).defines
    True
    """
    defines = {"X_KIND": programs.KINDS[x_name], "Y_KIND": programs.KINDS[y_name]}
    defines |= {"PIECE_NBYTES": nbytes, "TOKENS": tokens, "LANES": lanes, "SPLITS": splits}
    return programs.program_of("few_rows/axpy.cuh", defines | {"AHEAD": int(ahead)},
                               minimum=90 if splits > 1 else 75)


def dots_program(x_name, y_name, nbytes, tokens, shares, splits, ahead=False):
    """Return the program of products of few rows by weights that lie along the terms.

    Parameters
    ----------
    x_name, y_name : {"float16", "bfloat16", "float32"}
        Element types of the operands and of the result.
    nbytes : {2, 4, 8, 16}
        Bytes of each load of weights, at least an element.
    tokens : {1, 2, 4, 8, 16}
        Rows of x at most.
    shares : (int, int)
        Outputs of a warp, 1, 2 or 4; and warps that share outputs, each with a part of the terms:
        1, 2, 4 or 8.
    splits : {1, 2, 4, 8}
        Blocks of a cluster among which K is cut. More than 1 needs sm_90.
    ahead : bool
        Whether a thread loads the next batch while it uses one.

    Examples
    --------
    >>> ("FEATURES", 4) in dots_program("float32", "float32", 16, 4, (4, 1), 1).defines
    True
    """
    defines = {"X_KIND": programs.KINDS[x_name], "Y_KIND": programs.KINDS[y_name]}
    defines |= {"PIECE_NBYTES": nbytes, "TOKENS": tokens, "FEATURES": shares[0]}
    defines |= {"K_WARPS": shares[1], "SPLITS": splits, "AHEAD": int(ahead)}
    return programs.program_of("few_rows/dots.cuh", defines,
                               minimum=90 if splits > 1 else 75)
