"""Panel products: which products of 16-bit floats they take, the shape of a block, and the launch.

The panels of a block, all of its rows of x and of the weights, are in shared memory at the same
time, so only products with few terms have a shape that fits. The shape with the shortest modelled
time is taken. Cutting K among the blocks of a cluster was slower for every shape measured.
"""

cdef enum:
    # As in panel_programs.py:
    PANEL_WARPS = 8
    PANEL_WARP_SIDE = 32        # rows and columns of the tile of a warp, at most
    PANEL_STEP = 16             # k of one instruction
    PANEL_PAD = 16              # bytes between rows in shared memory, against bank conflicts
    PANEL_ALIGNMENT = 16        # bytes
    PANEL_RESERVED_NBYTES = 1024
    MOST_NORMED_CHUNKS = 4      # pieces of 8 elements of a row for each lane that normalizes it
    MOST_PANEL_ROWS = 1 << 24
    MOST_PANEL_COLUMNS = 32768
    MOST_PANEL_TERMS = 8192

# The model of time, in nanoseconds, bytes, multiply-adds and elements per nanosecond: fitted to 230
# blocks for 65 products on an H200, where its choice is 0.9 % slower than the fastest block on
# average. `benchmarks/panels.py --sweep 40` measures them.
cdef double PANEL_WAVE = 1300           # the launch, the first bytes, the last stores
cdef double PANEL_RATE = 9900           # bytes of all blocks from the L2 cache
cdef double PANEL_MULTIPLY_RATE = 1110  # one multiprocessor
cdef double PANEL_SHARED_RATE = 190     # bytes of sums of one multiprocessor
cdef double PANEL_FINISH_RATE = 7       # results of one multiprocessor
cdef double PANEL_NORM_RATE = 9.7       # normalized elements of one multiprocessor
# The libraries' time in the same runs, and for 14 products of up to 100,000 rows: within 25 %, and
# on average 9 %. Multiplying and moving bytes overlap.
cdef double PANEL_LIBRARY = 2410
cdef double PANEL_LIBRARY_RATE = 400000     # multiply-adds
cdef double PANEL_LIBRARY_TERM = 1.29
cdef double PANEL_LIBRARY_ROW_RATE = 2000   # bytes of x
cdef double PANEL_LIBRARY_RESULT_RATE = 2840
# A norm before it, or an activation after it, and its bytes.
cdef double PANEL_FURTHER_KERNEL = 1800
cdef double PANEL_FURTHER_RATE = 4000
# A block that is this much slower than a library is left to it: where a program expected weights to
# be held, and its device cannot.
cdef double PANEL_MOST_COST = 2

cdef extern from "gputensor/blas/kernels/panel/panel.h" namespace "gputensor" nogil:
    cdef struct PanelParameters:
        uint64_t x
        uint64_t w
        uint64_t gain
        uint64_t shift
        uint64_t bias
        uint64_t addend
        uint64_t y
        uint64_t normed
        int64_t x_pitch
        int64_t w_pitch
        int64_t y_pitch
        int64_t addend_pitch
        int m
        int n
        int k
        int slice
        int columns
        int x_row
        int w_row
        int w_offset
        int vectors_offset
        float epsilon

cdef struct PanelVariant:       # what a kernel is compiled for
    int rows
    int columns
    int chunks
    int type
    int along_terms
    int norm
    int gate
    int is_steady

# Rows and columns of a block's tile; 64 x 32 was never the fastest.
cdef int[4][2] PANEL_TILES
PANEL_TILES[0][:] = [64, 64]
PANEL_TILES[1][:] = [32, 64]
PANEL_TILES[2][:] = [32, 32]
PANEL_TILES[3][:] = [16, 32]
cdef KernelTable panel_kernels


# ---- the shape of a block

cdef inline int panel_row(int64_t elements) noexcept nogil:
    return <int>(2 * elements + PANEL_PAD)


cdef inline int panel_chunks(const PanelProduct* product) noexcept nogil:
    """Return the pieces of a row for each lane that normalizes it, or 0 without a norm."""
    return <int>ceil_divide(product.k, 8 * 32) if product.gain else 0


cdef bint panel_layout(const PanelProduct* product, int room, PanelShape* shape) noexcept nogil:
    """Place the panels in shared memory; return False if they do not fit."""
    cdef int sums = shape.k_warps * shape.rows * (shape.columns + 8) * 4
    cdef int64_t slice = round_up(product.k, PANEL_STEP * shape.k_warps)
    cdef int64_t w_nbytes = shape.columns * <int64_t>panel_row(slice)
    cdef int64_t end
    shape.slice = <int>slice
    if not product.along_terms:
        w_nbytes = slice * panel_row(shape.columns)
    shape.w_offset = <int>(shape.rows * <int64_t>panel_row(slice))
    end = shape.w_offset + w_nbytes
    shape.vectors_offset = <int>end
    if product.gain:
        end += (2 if product.shift else 1) * 2 * slice
    shape.shared_nbytes = <int>(sums if end < sums else end)
    return end <= room and sums <= room


cdef double panel_cost(const PanelProduct* product, const DeviceFacts* device,
                       const PanelShape* shape) noexcept nogil:
    cdef double blocks = (<double>ceil_divide(product.m, shape.rows)
                          * ceil_divide(product.n, shape.columns))
    cdef int resident = device.shared_nbytes // (shape.shared_nbytes + PANEL_RESERVED_NBYTES)
    cdef double each = ceil(blocks / device.multiprocessors)        # of a multiprocessor
    cdef double waves = ceil(each / (resident if resident > 0 else 1))
    cdef double nbytes = (shape.rows + shape.columns) * 2.0 * shape.slice
    cdef double results = shape.rows * shape.columns
    cdef double block = results * shape.slice / PANEL_MULTIPLY_RATE + results / PANEL_FINISH_RATE
    block += 8.0 * shape.k_warps * results / PANEL_SHARED_RATE      # written and read
    if product.gain:
        block += shape.rows * shape.slice / PANEL_NORM_RATE
    return waves * PANEL_WAVE + blocks * nbytes / PANEL_RATE + each * block


cdef bint panel_choose(const PanelProduct* product, const DeviceFacts* device,
                       PanelShape* best) noexcept nogil:
    """Find the shape of least modelled time; return False where none fits."""
    cdef PanelShape shape
    cdef int number
    memset(&shape, 0, sizeof(shape))
    best.cost = 0
    if panel_chunks(product) > MOST_NORMED_CHUNKS:
        return False
    for number in range(4):
        shape.rows, shape.columns = PANEL_TILES[number][0], PANEL_TILES[number][1]
        if panel_forced.rows and (
                shape.rows != panel_forced.rows or shape.columns != panel_forced.columns):
            continue
        shape.row_warps = shape.rows // PANEL_WARP_SIDE if shape.rows > PANEL_WARP_SIDE else 1
        shape.column_warps = shape.columns // PANEL_WARP_SIDE
        shape.k_warps = PANEL_WARPS // (shape.row_warps * shape.column_warps)
        if not panel_layout(product, device.shared_nbytes - PANEL_RESERVED_NBYTES, &shape):
            continue
        shape.cost = panel_cost(product, device, &shape)
        if best.cost == 0 or shape.cost < best.cost:
            best[0] = shape
    return best.cost > 0


cdef bint panel_operands_fit(const PanelProduct* product) noexcept nogil:
    cdef uint64_t addresses = product.x | product.w | product.gain | product.shift | product.bias
    addresses |= product.addend | product.y | product.normed
    # Rows of all operands have k or n elements.
    if addresses % PANEL_ALIGNMENT or (product.k | product.n) % 8:
        return False
    if not (0 < product.m <= MOST_PANEL_ROWS and 0 < product.n <= MOST_PANEL_COLUMNS):
        return False
    return 0 < product.k <= MOST_PANEL_TERMS


cdef bint panel_fits(const PanelProduct* product, const DeviceFacts* device,
                     PanelShape* shape) noexcept nogil:
    """Choose the shape; return False if no kernel can compute the product."""
    if not panel_operands_fit(product) or device.capability < 80:
        return False
    return panel_choose(product, device, shape)


cdef double library_cost(const PanelProduct* product) noexcept nogil:
    cdef double results = <double>product.m * product.n
    cdef double multiplying = results * product.k / PANEL_LIBRARY_RATE
    cdef double moving = 2 * results / PANEL_LIBRARY_RESULT_RATE
    cdef double cost = PANEL_LIBRARY + product.k * PANEL_LIBRARY_TERM
    moving += 2.0 * product.m * product.k / PANEL_LIBRARY_ROW_RATE
    cost += sqrt(multiplying * multiplying + moving * moving)
    if product.gain:
        cost += PANEL_FURTHER_KERNEL + 4.0 * product.m * product.k / PANEL_FURTHER_RATE
    if product.gate >= ACT_GELU:
        cost += PANEL_FURTHER_KERNEL + 4.0 * results / PANEL_FURTHER_RATE
    return cost


def panel_wins(int64_t m, int64_t n, int64_t k, *, bint is_normed=False, bint is_late=False):
    """Return whether ours is faster for m rows by weights of n features, both in 16-bit floats.

    The answer is that for an H200, and the same on every device. `is_normed`: our kernel also
    normalizes the rows of x. `is_late`: it applies an activation that libraries do not apply.
    """
    cdef PanelProduct product
    cdef DeviceFacts device
    cdef PanelShape shape
    cdef HeldShape held
    cdef double library
    memset(&product, 0, sizeof(product))
    memset(&device, 0, sizeof(device))
    product.m, product.n, product.k, product.along_terms = m, n, k, True
    product.gain = PANEL_ALIGNMENT if is_normed else 0
    product.gate = ACT_GELU if is_late else ACT_NONE
    device.multiprocessors, device.shared_nbytes, device.capability = 132, 233472, 90
    library = library_cost(&product)
    if m < 2:
        return False
    if panel_fits(&product, &device, &shape) and shape.cost < library:
        return True
    return held_fits(&product, &device, &held) and held.cost < HELD_MARGIN * library


# ---- launch

cdef object panel_program(const void* variant):
    cdef const PanelVariant* given = <const PanelVariant*>variant
    return panel_programs.panel(
        DTYPES[given.type].name, given.rows, given.columns, along_terms=bool(given.along_terms),
        norm=given.norm, chunks=given.chunks, gate=given.gate, steady=bool(given.is_steady))


cdef void* panel_kernel(const PanelProduct* product, const PanelShape* shape) except NULL nogil:
    cdef PanelVariant made
    cdef uint64_t key
    made.rows, made.columns, made.chunks = shape.rows, shape.columns, panel_chunks(product)
    made.type, made.along_terms = product.type, product.along_terms
    made.norm = 0 if not product.gain else 2 if product.is_centered else 1
    made.gate, made.is_steady = product.gate, product.is_steady
    key = (<uint64_t>made.rows << 8 | <uint64_t>made.columns) << 4 | <uint64_t>made.chunks
    key = (key << 5 | <uint64_t>made.type) << 2 | <uint64_t>made.norm
    key = key << 3 | <uint64_t>made.gate
    key = key << 2 | <uint64_t>(made.along_terms << 1 | made.is_steady)
    return kernel_of(&panel_kernels, key, panel_program, &made)


cdef bint panel_run(const PanelProduct* product, uint64_t stream) except -1 nogil:
    cdef const DeviceFacts* device = known_facts(product.device)
    cdef PanelShape shape
    cdef HeldShape held
    cdef PanelParameters p
    cdef Launch launch
    cdef int64_t tiles
    cdef bint fits = panel_fits(product, device, &shape)
    if held_forced.columns >= 0 and not panel_forced.rows and held_fits(product, device, &held):
        if held_forced.columns or not fits or held.cost < shape.cost:
            return held_run(product, &held, stream)
    if not fits or (not panel_forced.rows
                    and shape.cost > PANEL_MOST_COST * library_cost(product)):
        return False
    memset(&p, 0, sizeof(p))
    p.x, p.w, p.y, p.normed = product.x, product.w, product.y, product.normed
    p.gain, p.shift, p.epsilon = product.gain, product.shift, product.epsilon
    p.bias, p.addend = product.bias, product.addend
    p.x_pitch, p.w_pitch = 2 * product.x_pitch, 2 * product.w_pitch
    p.y_pitch, p.addend_pitch = product.y_pitch, product.addend_pitch
    p.m, p.n, p.k = <int>product.m, <int>product.n, <int>product.k
    p.slice, p.columns = shape.slice, <int>ceil_divide(product.n, shape.columns)
    p.x_row = p.w_row = panel_row(shape.slice)
    if not product.along_terms:
        p.w_row = panel_row(shape.columns)
    p.w_offset, p.vectors_offset = shape.w_offset, shape.vectors_offset
    tiles = ceil_divide(product.m, shape.rows) * p.columns
    launch_init(&launch, product.device, stream, <uint32_t>tiles, 32 * PANEL_WARPS, &p,
                sizeof(p))
    launch.shared_nbytes = shape.shared_nbytes
    launch.most_shared_nbytes = device.shared_nbytes - PANEL_RESERVED_NBYTES
    launch_kernel(panel_kernel(product, &shape), &launch)
    return True
