"""Products of some rows, or of few results, of any layout, without copies.

The libraries' tiles have 64 rows and more, so 5 to 64 rows leave most of a tile empty, and products
of few results leave most multiprocessors idle; where lines are not aligned, they also read them
word by word. Here a block has 16 to 64 rows, K is cut among warps and among the blocks of a
cluster, and all lines are copied asynchronously. A model of time chooses the shape of blocks; the
product goes here where that time is well below what the libraries take by another model.
"""

cdef enum:
    NARROW_STEP_NBYTES = 128    # of a line: a step of terms
    NARROW_MOST_STAGES = 4
    NARROW_LINE_GAP = 16        # bytes behind a line in shared memory
    NARROW_WIDE_GAP = 32        # the same of float32 along rows or features
    NARROW_SHARED_NBYTES = 232448
    NARROW_HALF_NBYTES = 115712     # two blocks share a multiprocessor
    NARROW_BLOCK_NBYTES = 1024  # that each block takes besides
    NARROW_MOST_WARPS = 8
    NARROW_MOST_SPLITS = 8
    NARROW_MOST_RESULTS = 4096  # of a block: 128 sums of a thread
    NARROW_CAPABILITY = 90      # measured there
    # Limits of the rule: the models were fitted between them.
    NARROW_LEAST_ROWS = 5
    NARROW_LEAST_TERMS = 16
    NARROW_MOST_ROWS = 64
    NARROW_MORE_ROWS = 160      # of few results
    NARROW_FEW_RESULTS = 270336

cdef struct NarrowForm:
    int type_x
    int type_y
    int rows
    int features
    int warps
    int splits
    int stages
    int w_along
    int x_along
    int w_piece
    int x_piece
    int is_plain                # float32 without TF32
    int shared_nbytes
    double cost                 # microseconds

cdef KernelTable narrow_kernels


cdef inline int narrow_piece(uint64_t address, int64_t pitch, int64_t lines) noexcept nogil:
    """Return the bytes, 16, 4 or 2, that divide the addresses of all lines."""
    cdef uint64_t places = address | <uint64_t>(pitch if lines > 1 else 0)
    return 16 if places % 16 == 0 else 4 if places % 4 == 0 else 2


cdef inline int narrow_side_nbytes(int extent, bint is_along, int itemsize) noexcept nogil:
    """Return the bytes of an operand's step in shared memory, as operand.cuh has them."""
    if is_along:
        return extent * (NARROW_STEP_NBYTES + NARROW_LINE_GAP)
    return NARROW_STEP_NBYTES // itemsize * (
        extent * itemsize + (NARROW_LINE_GAP if itemsize == 2 else NARROW_WIDE_GAP))


cdef bint narrow_fit(NarrowForm* form) noexcept nogil:
    """Choose the stages of a block; return whether its rings fit."""
    cdef int itemsize = dtype_itemsize(form.type_x)
    cdef int step = form.warps * (
        narrow_side_nbytes(form.features, form.w_along, itemsize)
        + narrow_side_nbytes(64 if form.rows == 48 and not form.x_along else form.rows,
                             form.x_along, itemsize))
    form.stages = min(NARROW_MOST_STAGES, NARROW_SHARED_NBYTES // step)
    if 3 * step <= NARROW_HALF_NBYTES:
        form.stages = min(form.stages, NARROW_HALF_NBYTES // step)
    form.shared_nbytes = form.stages * step
    return form.stages >= 2


# ---- the models of time, of an H200, in microseconds

# Fitted to 4,323 times of 580 random products in many shapes of blocks: rms error 26 %. All blocks
# read the same x at the same time, and few bytes lie in few slices of the second cache: its rate
# grows with their root (6024 x 16 x 512 float16: 189 blocks 9.5 us, 95 blocks 6.7).
cdef double NARROW_LATENCY = 0.96   # of a copy
cdef double NARROW_MEETING = 0.8    # of the blocks of clusters
cdef double NARROW_STEP = 0.17      # a step of a warp; and for each
cdef double NARROW_COPY = 0.0063    # asynchronous copy of the warp's lanes,
cdef double NARROW_MOVED = 0.016    # line that may start in the middle of a word,
cdef double NARROW_MMA = 0.0044     # product of fragments,
cdef double NARROW_FMA = 0.00067    # plain multiply-add of the warp's lanes
cdef double NARROW_SUM = 0.0013     # for each result of a block, in its warps,
cdef double NARROW_RESULT = 0.0012  # and for each that a warp writes
cdef double NARROW_ALONE = 1.15     # times as long where a block has one warp
cdef double NARROW_CACHE_RATE = 9.7e6   # bytes of weights per microsecond from the second cache,
cdef double NARROW_RATE = 7.4e6         # of both operands from memory,
cdef double NARROW_COMMON_RATE = 3.2e6  # and of 64 KiB of x that all blocks read
cdef double NARROW_MARGIN = 0.85    # of the libraries' time that is worth a change,
cdef double NARROW_PLAIN_MARGIN = 0.95      # and in exact float32


cdef double narrow_cost(const NarrowForm* form, const FewRowsParameters* p,
                        int multiprocessors) noexcept nogil:
    """Return the time of a shape of blocks."""
    cdef int itemsize = dtype_itemsize(form.type_x), results = form.rows * form.features
    cdef int64_t w_tiles = ceil_divide(p.n, form.features), x_tiles = ceil_divide(p.m, form.rows)
    cdef int64_t blocks = w_tiles * x_tiles * form.splits
    cdef int64_t steps = ceil_divide(ceil_divide(p.k, form.splits) * itemsize,
                                     NARROW_STEP_NBYTES)
    # Clusters of 4 and more leave some multiprocessors idle.
    cdef double room = multiprocessors * (10.0 / 11.0 if form.splits > 2 else 1.0)
    cdef double w_nbytes = <double>p.n * p.k * itemsize, x_nbytes = <double>p.m * p.k * itemsize
    cdef double issued = NARROW_STEP + NARROW_COPY * 4 * (
        form.features / (16.0 if form.w_piece == 16 else 4.0)
        + (min(form.rows, p.m) if form.x_along else form.rows)
        / (16.0 if form.x_piece == 16 else 4.0))
    cdef double waves, beside, step, time
    cdef int resident = max(1, min(
        NARROW_SHARED_NBYTES // (form.shared_nbytes + NARROW_BLOCK_NBYTES),
        65536 // (32 * form.warps * max(64, results // 32 + 60))))
    issued += NARROW_MOVED * (
        (form.features if form.w_piece == 2 else 0) + (form.rows if form.x_piece == 2 else 0))
    issued += NARROW_FMA * results if form.is_plain else NARROW_MMA * results / 32
    waves = ceil(blocks / (room * resident))
    beside = min(<double>resident, ceil(blocks / room))
    step = max(NARROW_LATENCY / (form.stages - 1), issued * max(1.0, form.warps * beside / 4))
    time = waves * (
        NARROW_LATENCY + ceil_divide(steps, form.warps) * step
        + results * (NARROW_SUM + NARROW_RESULT / (form.warps * form.splits)))
    if form.splits > 1:
        time += NARROW_MEETING
    time += max(w_nbytes * x_tiles / NARROW_CACHE_RATE, (w_nbytes + x_nbytes) / NARROW_RATE)
    time += w_tiles * sqrt(x_nbytes * 65536) / NARROW_COMMON_RATE
    return NARROW_ALONE * time if form.warps == 1 else time


cdef struct LibraryTimes:       # of 1,000 terms, 10^6 weights, 10^5 results, and how they grow
    double terms, terms_power
    double weights, rows_power
    double results, results_power

# Fitted to 1,561 random products that the libraries compute: rms error 19 to 29 %. For exact
# float32, TF32 and 16 bits: both operands aligned to 16 bytes, and others.
cdef LibraryTimes[3][2] LIBRARY_TIMES
LIBRARY_TIMES[0][0] = LibraryTimes(5.8, 0.32, 2.6, 0.9, 1.6, 0.34)
LIBRARY_TIMES[0][1] = LibraryTimes(6.1, 0.3, 2.9, 0.98, 0.55, 0.55)
LIBRARY_TIMES[1][0] = LibraryTimes(5.5, 0.21, 1.1, 0.39, 0.32, 0.96)
LIBRARY_TIMES[1][1] = LibraryTimes(7.0, 0.2, 1.7, 0.69, 0.3, 0.89)
LIBRARY_TIMES[2][0] = LibraryTimes(4.7, 0.26, 0.46, 0.13, 0.045, 1.6)
LIBRARY_TIMES[2][1] = LibraryTimes(6.3, 0.28, 0.92, 0.5, 0.82, 0.51)


cdef double libraries_time(const NarrowForm* form, const FewRowsParameters* p) noexcept nogil:
    """Return the time of the libraries for the same product."""
    cdef int kind = 2 if form.type_x != DT_FLOAT32 else 0 if form.is_plain else 1
    cdef bint is_odd = form.w_piece != 16 or form.x_piece != 16
    cdef const LibraryTimes* one = &LIBRARY_TIMES[kind][is_odd]
    return (one.terms * pow(p.k / 1e3, one.terms_power)
            + one.weights * (<double>p.n * p.k / 1e6) * (1 + pow(p.m / 32.0, one.rows_power)) / 2
            + one.results * pow(<double>p.m * p.n / 1e5, one.results_power))


cdef inline bint narrow_allows(int forced, int value) noexcept nogil:
    return forced == 0 or forced == value


cdef bint narrow_choose(const Product* product, NarrowForm* best) noexcept nogil:
    """Choose the shape of blocks with the shortest modelled time; return whether there is one."""
    cdef FewRowsParameters p
    cdef NarrowForm form
    cdef int itemsize = dtype_itemsize(product.type_a)
    cdef int multiprocessors = max(1, known_facts(product.device).multiprocessors)
    cdef int64_t steps
    memset(&form, 0, sizeof(form))
    form.type_x, form.type_y = product.type_a, product.type_d
    form.is_plain = product.type_a == DT_FLOAT32 and product.compute == COMPUTE_32F
    form.w_along = few_rows_fill(product, &p)
    form.x_along = p.x_term == 1
    form.w_piece = narrow_piece(p.w, p.w_pitch, p.n if form.w_along else p.k)
    form.x_piece = narrow_piece(
        p.x, (p.x_row if form.x_along else p.x_term) * itemsize, p.m if form.x_along else p.k)
    best.cost = 0
    form.rows = 16
    while form.rows <= 64:
        form.features = 32
        while form.features <= 128 and form.features * form.rows <= NARROW_MOST_RESULTS:
            form.splits = 1
            while form.splits <= NARROW_MOST_SPLITS:
                steps = ceil_divide(ceil_divide(p.k, form.splits) * itemsize, NARROW_STEP_NBYTES)
                form.warps = 1
                while form.warps <= NARROW_MOST_WARPS and (
                        form.warps <= steps or form.warps == 1 or narrow_forced.warps):
                    if (narrow_allows(narrow_forced.rows, form.rows)
                            and narrow_allows(narrow_forced.features, form.features)
                            and narrow_allows(narrow_forced.splits, form.splits)
                            and narrow_allows(narrow_forced.warps, form.warps)
                            and narrow_fit(&form)):
                        form.cost = narrow_cost(&form, &p, multiprocessors)
                        if best.cost == 0 or form.cost < best.cost:
                            best[0] = form
                    form.warps *= 2
                form.splits *= 2
            form.features *= 2
        form.rows += 16
    return best.cost > 0


# ---- the backend

cdef object narrow_program_of(const void* variant):
    cdef const NarrowForm* form = <const NarrowForm*>variant
    return narrow_program(
        DTYPES[form.type_x].name, DTYPES[form.type_y].name, (form.rows, form.features),
        (form.warps, form.splits, form.stages), (bool(form.w_along), bool(form.x_along)),
        (form.w_piece, form.x_piece), plain=bool(form.is_plain))


cdef void* narrow_kernel(const NarrowForm* form) except NULL nogil:
    cdef uint64_t key = form.type_x << 5 | form.type_y
    key = ((key << 7 | form.rows) << 8 | form.features) << 4 | form.warps
    key = ((key << 4 | form.splits) << 3 | form.stages) << 2 | form.w_along << 1 | form.x_along
    key = ((key << 5 | form.w_piece) << 5 | form.x_piece) << 1 | form.is_plain
    return kernel_of(&narrow_kernels, key, narrow_program_of, form)


cdef bint narrow_can(const Product* product) except -1 nogil:
    cdef FewRowsParameters p
    if not has_own_form(product):
        return False
    few_rows_fill(product, &p)
    return p.m <= MOST_GRID_Y and p.n <= SKINNY_MAX_SIZE and p.k <= SKINNY_MAX_SIZE


cdef bint narrow_wins(const Product* product) except -1 nogil:
    # Of the products that the model is fitted to, this takes 205: 1.51 times as fast as the better
    # library in the geometric mean, 3 of them below .9.
    cdef FewRowsParameters p
    cdef NarrowForm form
    if narrow_forced.rows:
        return narrow_forced.rows > 0
    few_rows_fill(product, &p)
    if (p.m < NARROW_LEAST_ROWS or p.k < NARROW_LEAST_TERMS
            or known_facts(product.device).capability != NARROW_CAPABILITY):
        return False
    if p.m > NARROW_MOST_ROWS and (
            p.m > NARROW_MORE_ROWS or p.m * p.n > NARROW_FEW_RESULTS):
        return False
    if not narrow_choose(product, &form):
        return False
    return form.cost < (NARROW_PLAIN_MARGIN if form.is_plain else NARROW_MARGIN) * libraries_time(
        &form, &p)


cdef int narrow_build(const Product* product, const Choice* choice, Plan* plan) except -1 nogil:
    cdef NarrowForm form
    if known_facts(product.device).capability != NARROW_CAPABILITY:
        return BLAS_NOT_SUPPORTED
    if not narrow_choose(product, &form):
        return BLAS_NOT_SUPPORTED
    plan.handle = narrow_kernel(&form)
    plan.shape[0] = (form.rows << 8 | form.features) << 8 | form.warps << 4 | form.splits
    plan.shape[1] = form.shared_nbytes
    return compiled(plan.handle, product.device, form.shared_nbytes)


cdef int narrow_launch(const Work* work) except -1 nogil:
    cdef FewRowsParameters p
    cdef Grid grid
    cdef int shape = work.plan.shape[0], splits = shape & 15
    cdef int step = NARROW_STEP_NBYTES // dtype_itemsize(work.products.type_a)
    few_rows_fill(work.products, &p)
    p.slice = round_up(ceil_divide(p.k, splits), step)
    grid.x = ceil_divide(p.n, shape >> 8 & 255) * splits
    grid.y, grid.z = ceil_divide(p.m, shape >> 16), 1
    grid.block, grid.shared_nbytes = 32 * (shape >> 4 & 15), work.plan.shape[1]
    return queue_kernel(work, work.plan.handle, &grid, &p, sizeof(p))


def narrow_program(x_name, y_name, tile, shares, along, pieces, *, plain=False):
    """Return the program of products of some rows, or of few results.

    Parameters
    ----------
    x_name, y_name : {"float16", "bfloat16", "float32"}
        Element types of the operands and of the result.
    tile : (int, int)
        Rows, 16, 32, 48 or 64, and features, 32, 64 or 128, of a block; 4,096 results at most.
    shares : (int, int, int)
        Warps of a block, 1 to 8; blocks of a cluster, among which K is cut, 1 to 8; steps of a warp
        that shared memory holds. More than one block and TF32 need sm_90, others sm_80.
    along : (bool, bool)
        Whether the lines of the weights and of x lie along the terms.
    pieces : (int, int)
        Bytes that divide the addresses of all lines of the weights and of x: 16, 4 or 2.
    plain : bool
        Whether float32 is multiplied as it is, rather than as TF32.

    Examples
    --------
    >>> shares, along = (4, 1, 4), (True, True)
    >>> program = narrow_program("float16", "float16", (16, 32), shares, along, (16, 16))
    >>> ("ROWS", 16) in program.defines
    True
    """
    defines = {"X_KIND": programs.KINDS[x_name], "Y_KIND": programs.KINDS[y_name]}
    defines |= {"ROWS": tile[0], "FEATURES": tile[1]}
    defines |= {"WARPS": shares[0], "SPLITS": shares[1], "STAGES": shares[2]}
    defines |= {"W_ALONG": int(along[0]), "X_ALONG": int(along[1])}
    defines |= {"W_PIECE": pieces[0], "X_PIECE": pieces[1]}
    minimum = 90 if shares[1] > 1 or (x_name == "float32" and not plain) else 80
    if not plain:
        kind, depth = programs.PTX[x_name], 8 if x_name == "float32" else 16
        defines["INSTRUCTION"] = f'"m16n8k{depth}.row.col.f32.{kind}.{kind}.f32"'
    return programs.program_of("narrow/narrow.cuh", defines, minimum=minimum)
