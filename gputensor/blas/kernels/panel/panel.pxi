"""Panel products: which products of 16-bit floats they take, the shape of a block, and the launch.

The panels of a block, all of its rows of x and of the weights, are in shared memory at the same
time, so only products with few terms, or with few terms for each block of a cluster, have a shape
that fits. The shape with the shortest modelled time is taken.
"""

cdef enum:
    PANEL_WARPS = 8
    PANEL_WARP_SIDE = 32        # rows and columns of the tile of a warp, at most
    PANEL_STEP = 16             # k of one instruction
    PANEL_PAD = 16              # bytes between rows in shared memory, against bank conflicts
    PANEL_ALIGNMENT = 16        # bytes
    PANEL_RESERVED_NBYTES = 1024
    MOST_PANEL_SPLITS = 4
    MOST_PANEL_SIZE = 32768     # m and n
    MOST_PANEL_TERMS = 8192

# The model of time, in nanoseconds, bytes and multiply-adds per nanosecond; measured on an H200.
cdef double PANEL_BEGIN = 1500      # the launch, the first bytes, the last stores
cdef double PANEL_RATE = 5500       # all blocks from the L2 cache
cdef double PANEL_BLOCK_RATE = 70   # one multiprocessor from there
cdef double PANEL_MULTIPLY_RATE = 2000      # one multiprocessor
cdef double PANEL_SHARED_RATE = 150         # one multiprocessor, to and from shared memory
cdef double PANEL_MEETING = 700     # synchronizing a cluster
# What a library takes for products as small as these, and for its rate beyond that.
cdef double PANEL_LIBRARY_BEGIN = 3300
cdef double PANEL_LIBRARY_RATE = 300000
cdef double PANEL_FURTHER_KERNEL = 2000     # a norm before it, or an activation after it

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
        int received_offset
        float epsilon

cdef struct PanelVariant:       # what a kernel is compiled for
    int rows
    int columns
    int splits
    int type
    int along_terms
    int norm
    int gate
    int is_steady

cdef int[5][2] PANEL_TILES
PANEL_TILES[0][:] = [64, 64]
PANEL_TILES[1][:] = [64, 32]
PANEL_TILES[2][:] = [32, 64]
PANEL_TILES[3][:] = [32, 32]
PANEL_TILES[4][:] = [16, 32]
cdef KernelTable panel_kernels


# ---- the shape of a block

cdef inline int panel_row(int64_t elements) noexcept nogil:
    return <int>(2 * elements + PANEL_PAD)


cdef bint panel_layout(const PanelProduct* product, int room, PanelShape* shape) noexcept nogil:
    """Place the panels in shared memory; return False if they do not fit."""
    cdef int unit = PANEL_STEP * shape.k_warps
    cdef int sums = shape.k_warps * shape.rows * (shape.columns + 4) * 4
    cdef int64_t slice = round_up(ceil_divide(product.k, shape.splits), unit)
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
    if end < sums:
        end = sums
    shape.received_offset = <int>end
    if shape.splits > 1:
        end += shape.rows * shape.columns * 4
    shape.shared_nbytes = <int>end
    return end <= room


cdef double panel_cost(const PanelProduct* product, const DeviceFacts* device,
                       const PanelShape* shape) noexcept nogil:
    cdef double blocks = (<double>ceil_divide(product.m, shape.rows)
                          * ceil_divide(product.n, shape.columns) * shape.splits)
    cdef int resident = device.shared_nbytes // (shape.shared_nbytes + PANEL_RESERVED_NBYTES)
    cdef double each = ceil(blocks / device.multiprocessors)        # of a multiprocessor
    cdef double waves = ceil(each / (resident if resident > 0 else 1))
    cdef double nbytes = (shape.rows + shape.columns) * 2.0 * shape.slice
    cdef double sums = 8.0 * shape.k_warps * shape.rows * shape.columns
    cdef double load = each * nbytes / PANEL_BLOCK_RATE
    cdef double time
    if blocks * nbytes / PANEL_RATE > load:
        load = blocks * nbytes / PANEL_RATE
    time = waves * PANEL_BEGIN + load
    time += each * shape.rows * shape.columns * shape.slice / PANEL_MULTIPLY_RATE
    time += each * sums / PANEL_SHARED_RATE
    if product.gain:
        time += each * 6.0 * shape.rows * shape.slice / PANEL_SHARED_RATE
    return time + (PANEL_MEETING if shape.splits > 1 else 0)


cdef bint panel_choose(const PanelProduct* product, const DeviceFacts* device,
                       PanelShape* best) noexcept nogil:
    """Find the shape of least modelled time; return False where none fits."""
    cdef PanelShape shape
    cdef int number, splits = 1
    cdef int most = MOST_PANEL_SPLITS if device.can_cluster and not product.gain else 1
    memset(&shape, 0, sizeof(shape))
    best.cost = 0
    for number in range(5):
        shape.rows, shape.columns = PANEL_TILES[number][0], PANEL_TILES[number][1]
        if panel_forced.rows and (
                shape.rows != panel_forced.rows or shape.columns != panel_forced.columns):
            continue
        shape.row_warps = shape.rows // PANEL_WARP_SIDE if shape.rows > PANEL_WARP_SIDE else 1
        shape.column_warps = shape.columns // PANEL_WARP_SIDE
        shape.k_warps = PANEL_WARPS // (shape.row_warps * shape.column_warps)
        splits = 1
        while splits <= most:
            shape.splits = splits
            splits *= 2
            if panel_forced.splits and shape.splits != panel_forced.splits:
                continue
            if not panel_layout(product, device.shared_nbytes - PANEL_RESERVED_NBYTES, &shape):
                continue
            shape.cost = panel_cost(product, device, &shape)
            if best.cost == 0 or shape.cost < best.cost:
                best[0] = shape
    return best.cost > 0


cdef bint panel_fits(const PanelProduct* product, const DeviceFacts* device) noexcept nogil:
    """Return whether a kernel can compute the product: sizes, alignments, shared memory."""
    cdef uint64_t addresses = product.x | product.w | product.gain | product.shift | product.bias
    cdef int64_t pitches = product.x_pitch | product.w_pitch | product.y_pitch | product.k
    cdef PanelShape shape
    addresses |= product.addend | product.y | product.normed
    if product.addend:
        pitches |= product.addend_pitch
    if addresses % PANEL_ALIGNMENT or pitches % 8 or product.n % 8 or device.capability < 80:
        return False
    if not (0 < product.m <= MOST_PANEL_SIZE and 0 < product.n <= MOST_PANEL_SIZE):
        return False
    return 0 < product.k <= MOST_PANEL_TERMS and panel_choose(product, device, &shape)


def panel_wins(int64_t m, int64_t n, int64_t k, *, bint is_normed=False, bint is_late=False):
    """Return whether ours is faster for m rows by weights of n features, both in 16-bit floats.

    The answer is that for an H200, and the same on every device. `is_normed`: our kernel also
    normalizes the rows of x. `is_late`: it applies an activation that libraries do not apply.
    """
    cdef PanelProduct product
    cdef DeviceFacts device
    cdef PanelShape shape
    cdef double library = PANEL_LIBRARY_BEGIN + m * n * k / PANEL_LIBRARY_RATE
    memset(&product, 0, sizeof(product))
    memset(&device, 0, sizeof(device))
    product.m, product.n, product.k, product.along_terms = m, n, k, True
    product.x_pitch = product.w_pitch = k
    product.y_pitch = n
    product.gain = PANEL_ALIGNMENT if is_normed else 0
    device.multiprocessors, device.shared_nbytes, device.can_cluster = 132, 233472, True
    device.capability = 90
    if m < 2 or not panel_fits(&product, &device) or not panel_choose(&product, &device, &shape):
        return False
    return shape.cost < library + PANEL_FURTHER_KERNEL * (is_normed + is_late)


# ---- launch

cdef object panel_program(const void* variant):
    cdef const PanelVariant* given = <const PanelVariant*>variant
    return panel_programs.panel(
        DTYPES[given.type].name, given.rows, given.columns, splits=given.splits,
        along_terms=bool(given.along_terms), norm=given.norm, gate=given.gate,
        steady=bool(given.is_steady))


cdef void* panel_kernel(const PanelProduct* product, const PanelShape* shape) except NULL nogil:
    cdef PanelVariant made
    cdef uint64_t key
    made.rows, made.columns, made.splits = shape.rows, shape.columns, shape.splits
    made.type, made.along_terms = product.type, product.along_terms
    made.norm = 0 if not product.gain else 2 if product.is_centered else 1
    made.gate, made.is_steady = product.gate, product.is_steady
    key = (<uint64_t>made.rows << 8 | <uint64_t>made.columns) << 4 | <uint64_t>made.splits
    key = (key << 5 | <uint64_t>made.type) << 2 | <uint64_t>made.norm
    key = key << 3 | <uint64_t>made.gate
    key = key << 2 | <uint64_t>(made.along_terms << 1 | made.is_steady)
    return kernel_of(&panel_kernels, key, panel_program, &made)


# Queues a product that satisfies panel_fits.
cdef int panel_run(const PanelProduct* product, uint64_t stream) except -1 nogil:
    cdef const DeviceFacts* device = known_facts(product.device)
    cdef PanelShape shape
    cdef PanelParameters p
    cdef Launch launch
    cdef int64_t tiles
    panel_choose(product, device, &shape)
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
    p.received_offset = shape.received_offset
    tiles = ceil_divide(product.m, shape.rows) * p.columns
    launch_init(&launch, product.device, stream, <uint32_t>(tiles * shape.splits),
                32 * PANEL_WARPS, &p, sizeof(p))
    launch.shared_nbytes = shape.shared_nbytes
    launch.most_shared_nbytes = device.shared_nbytes - PANEL_RESERVED_NBYTES
    return launch_kernel(panel_kernel(product, &shape), &launch)
