"""Panel products of many rows whose weights are held: which they take, the block, and the launch.

A block holds all terms of its columns of the weights, and rows of x pass. So the terms are few; the
columns of a block are as many as fit beside a ring of useful length.
"""

cdef enum:
    # As in held.cuh:
    HELD_COPYING = 128
    HELD_THREADS = HELD_COPYING + 256
    HELD_ROWS = 64
    HELD_CHUNK = 64             # terms
    HELD_STAGE_NBYTES = HELD_ROWS * 128
    HELD_STAGED_NBYTES = 8 * 16 * 128
    HELD_MOST_STAGES = 6
    HELD_LEAST_STAGES = 2
    HELD_LEAST_ROWS = 1024      # fewer were not measured
    HELD_CACHED_NBYTES = 128 << 20      # of operands; without a bias, a library has larger products
    # Terms without a bias, at most. 33 random products: .94 of the library above, 1.06 below.
    HELD_PLAIN_TERMS = 384

# The model of time, in nanoseconds, bytes, multiply-adds and elements per nanosecond: fitted to 105
# blocks for 15 products on an H200, where its choice is 1.5 % slower than the fastest block on
# average. `benchmarks/panels.py --long --sweep 1` measures them.
cdef double HELD_START = 630            # the launch, and the first bytes
cdef double HELD_MULTIPLY_RATE = 6460   # one multiprocessor
cdef double HELD_ROW_RATE = 5380        # bytes of x of all blocks
cdef double HELD_PANEL_RATE = 16500     # bytes of weights of all blocks
cdef double HELD_WRITE_RATE = 6.1       # results of a warpgroup
cdef double HELD_LATE_RATE = 8.3        # activations that libraries do not apply, of a warpgroup
cdef double HELD_OVERLAP = 1.82         # the norm that joins what happens at the same time
# Of a library's modelled time; eager products wait for their weights too (4096 x 1152 x 384: 12.1
# us, the library 9.5; 65536 x 256 x 64: 13.7 and 20.8).
cdef double HELD_MARGIN = 0.92
cdef double HELD_EAGER_MARGIN = 0.68
# Without a bias a library has kernels that come near the memory's rate (bytes), and ours come no
# nearer: 200704 x 256 x 512 in 119 us, the library 93; 100352 x 24 x 144 in 9.2 and 8.2.
cdef double HELD_PLAIN = 1200
cdef double HELD_PLAIN_RATE = 3400
cdef double HELD_PLAIN_MARGIN = 0.88

cdef extern from "gputensor/blas/kernels/held/held.h" namespace "gputensor" nogil:
    cdef struct HeldParameters:
        uint64_t x
        uint64_t w
        uint64_t bias
        uint64_t addend
        uint64_t y
        int64_t x_pitch
        int64_t w_pitch
        int64_t y_pitch
        int64_t addend_pitch
        int m
        int n
        int k
        int chunks
        int columns
        int groups

cdef struct HeldVariant:        # what a kernel is compiled for
    int columns
    int stages
    int type
    int along_terms
    int gate
    int is_steady

# Columns of a block. wgmma reads 64 at once where weights are along them.
# 256 were never the fastest.
cdef int[4] HELD_COLUMNS
HELD_COLUMNS[:] = [192, 128, 96, 64]
cdef KernelTable held_kernels


cdef bint held_layout(const PanelProduct* product, int room, HeldShape* shape) noexcept nogil:
    """Place the panel and the rings in shared memory; return False if they do not fit."""
    cdef int64_t chunks = ceil_divide(product.k, HELD_CHUNK)
    cdef int64_t fixed = chunks * shape.columns * 128 + HELD_STAGED_NBYTES + shape.columns * 4
    cdef int64_t stages = (room - fixed) // (2 * (HELD_STAGE_NBYTES + 16))
    shape.chunks, shape.stages = <int>chunks, <int>min(stages, HELD_MOST_STAGES)
    shape.shared_nbytes = <int>(fixed + shape.stages * 2 * (HELD_STAGE_NBYTES + 16))
    return shape.stages >= HELD_LEAST_STAGES


cdef double held_cost(const PanelProduct* product, const DeviceFacts* device,
                      HeldShape* shape) noexcept nogil:
    cdef int64_t tiles = ceil_divide(product.m, HELD_ROWS)
    cdef int64_t panels = ceil_divide(product.n, shape.columns)
    cdef int64_t groups = max(1, min(device.multiprocessors // panels, tiles))
    cdef double waves = ceil(<double>panels * groups / device.multiprocessors)
    cdef double blocks = min(panels * groups, device.multiprocessors)
    cdef double own = ceil(<double>tiles / groups)          # tiles of a block
    cdef double terms = shape.chunks * <double>HELD_CHUNK
    cdef double results = HELD_ROWS * <double>shape.columns
    # Of a tile, and of the panel:
    cdef double multiplying = results * terms / HELD_MULTIPLY_RATE
    cdef double copying = HELD_ROWS * terms * 2 * blocks / HELD_ROW_RATE
    cdef double writing = results / HELD_WRITE_RATE
    cdef double first = HELD_START + shape.columns * terms * 2 * blocks / HELD_PANEL_RATE
    if product.gate >= ACT_GELU:
        writing += results / HELD_LATE_RATE
    shape.panels, shape.groups = <int>panels, <int>groups
    own = (own - 1) * pow(pow(multiplying, HELD_OVERLAP) + pow(copying, HELD_OVERLAP)
                          + pow((multiplying + writing) / 2, HELD_OVERLAP), 1 / HELD_OVERLAP)
    return waves * (first + multiplying + writing + own)


cdef bint held_choose(const PanelProduct* product, const DeviceFacts* device,
                      HeldShape* best) noexcept nogil:
    """Find the shape of least modelled time; return False where none fits."""
    cdef HeldShape shape
    cdef int number
    memset(&shape, 0, sizeof(shape))
    best.cost = 0
    for number in range(4):
        shape.columns = HELD_COLUMNS[number]
        if held_forced.columns and shape.columns != held_forced.columns:
            continue
        if not product.along_terms and shape.columns % HELD_CHUNK:
            continue
        if not held_layout(product, device.shared_nbytes - PANEL_RESERVED_NBYTES, &shape):
            continue
        shape.cost = held_cost(product, device, &shape)
        if best.cost == 0 or shape.cost < best.cost:
            best[0] = shape
    return best.cost > 0


cdef bint held_fits(const PanelProduct* product, const DeviceFacts* device,
                    HeldShape* shape) noexcept nogil:
    """Choose the shape; return False if no kernel of this form can compute the product."""
    if not panel_operands_fit(product) or device.capability != 90 or product.gain:
        return False
    if product.m < HELD_LEAST_ROWS and held_forced.columns <= 0:
        return False
    if (product.x_pitch | product.w_pitch | product.y_pitch | product.addend_pitch) % 8:
        return False
    return product.normed == 0 and held_choose(product, device, shape)


cdef object held_program(const void* variant):
    cdef const HeldVariant* given = <const HeldVariant*>variant
    return programs.held(
        DTYPES[given.type].name, given.columns, given.stages,
        along_terms=bool(given.along_terms), gate=given.gate, steady=bool(given.is_steady))


cdef void* held_kernel(const PanelProduct* product, const HeldShape* shape) except NULL nogil:
    cdef HeldVariant made
    cdef uint64_t key
    made.columns, made.stages, made.type = shape.columns, shape.stages, product.type
    made.along_terms, made.gate = product.along_terms, product.gate
    made.is_steady = product.is_steady
    key = (<uint64_t>made.columns << 4 | <uint64_t>made.stages) << 5 | <uint64_t>made.type
    key = (key << 3 | <uint64_t>made.gate) << 2
    key |= <uint64_t>(made.along_terms << 1 | made.is_steady)
    return kernel_of(&held_kernels, key, held_program, &made)


cdef int most_shared(int device) noexcept nogil:
    """The limit of a kernel, whose blocks take more for more terms."""
    return <int>known_facts(device).shared_nbytes - PANEL_RESERVED_NBYTES


cdef bint held_run(const PanelProduct* product, const HeldShape* shape,
                   uint64_t stream) except -1 nogil:
    cdef HeldParameters p
    cdef Launch launch
    memset(&p, 0, sizeof(p))
    p.x, p.w, p.y, p.bias, p.addend = product.x, product.w, product.y, product.bias, product.addend
    p.x_pitch, p.w_pitch = product.x_pitch, product.w_pitch
    p.y_pitch, p.addend_pitch = product.y_pitch, product.addend_pitch
    p.m, p.n, p.k = <int>product.m, <int>product.n, <int>product.k
    p.chunks, p.columns, p.groups = shape.chunks, shape.panels, shape.groups
    launch_init(&launch, product.device, stream, <uint32_t>(shape.panels * shape.groups),
                HELD_THREADS, &p, sizeof(p))
    launch.shared_nbytes = shape.shared_nbytes
    launch.most_shared_nbytes = most_shared(product.device)
    launch_kernel(held_kernel(product, shape), &launch)
    return True


# ---- products that nothing is known of but their operands

cdef void held_from_product(const Product* product, PanelProduct* held) noexcept nogil:
    """Convert: the libraries compute our result transposed, so their A is w and their B is x."""
    memset(held, 0, sizeof(PanelProduct))
    held.device, held.type = product.device, product.type_a
    held.along_terms = product.op_a != OP_N
    held.m, held.n, held.k = product.n, product.m, product.k
    held.x, held.w, held.y = product.b, product.a, product.d
    held.x_pitch, held.w_pitch, held.y_pitch = product.ldb, product.lda, product.ldd
    held.bias, held.gate = product.bias, product.activation
    if product.beta != 0:
        held.addend, held.addend_pitch = product.c, product.ldc


cdef bint held_can(const Product* product) except -1 nogil:
    cdef PanelProduct held
    cdef HeldShape shape
    cdef const DeviceFacts* device = known_facts(product.device)
    if product.batch != 1 or product.outer_ndim or product.scale_a or product.scale_b:
        return False
    if product.type_a != product.type_b or product.type_a != product.type_d:
        return False
    if not dtype_is_half(product.type_a) or product.compute != COMPUTE_32F or product.op_b != OP_N:
        return False
    if product.alpha != 1 or product.alpha_imag != 0 or product.beta_imag != 0:
        return False
    if product.beta != 0 and product.beta != 1:
        return False
    held_from_product(product, &held)
    return device.capability == 90 and held_fits(&held, device, &shape)


cdef bint held_wins_plain(const PanelProduct* held, double cost) noexcept nogil:
    cdef double nbytes = 2.0 * (held.m * <double>(held.n + held.k) + held.n * <double>held.k)
    return nbytes < HELD_CACHED_NBYTES and held.k <= HELD_PLAIN_TERMS and (
        cost < HELD_PLAIN_MARGIN * (HELD_PLAIN + nbytes / HELD_PLAIN_RATE))


cdef bint held_wins(const Product* product) except -1 nogil:
    cdef PanelProduct held
    cdef HeldShape shape
    cdef double library
    held_from_product(product, &held)
    library = library_cost(&held)
    if not held_fits(&held, known_facts(product.device), &shape):
        return False
    if held_forced.columns > 0:
        return True
    if held.bias == 0 and held.addend == 0 and held.gate == ACT_NONE and (
            not held_wins_plain(&held, shape.cost)):
        return False
    return shape.cost < HELD_EAGER_MARGIN * library


cdef int held_build(const Product* product, const Choice* choice, Plan* plan) except -1 nogil:
    cdef PanelProduct held
    cdef HeldShape shape
    held_from_product(product, &held)
    if not held_fits(&held, known_facts(product.device), &shape):
        return BLAS_NOT_SUPPORTED
    plan.handle = held_kernel(&held, &shape)
    return compiled(plan.handle, product.device, most_shared(product.device))


cdef int held_launch(const Work* work) except -1 nogil:
    cdef PanelProduct held
    cdef HeldShape shape
    held_from_product(work.products, &held)
    if not held_fits(&held, known_facts(held.device), &shape):
        return BLAS_NOT_SUPPORTED
    held_run(&held, &shape, work.stream)
    return BLAS_OK
