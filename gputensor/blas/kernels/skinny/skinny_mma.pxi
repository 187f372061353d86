"""Skinny products on tensor cores: the shape of a block, and its launch.

A block has a multiprocessor for itself: up to 16 warps, about 64 KiB of copies in flight, and the
x of its part of K in the rest of the shared memory. Blocks may have any number of warps along the
features; the shape with the shortest modelled time is taken. The model was fitted to 3,018 times of
55 random products; blas/DESIGN.md has its error.
"""

cdef enum:
    COLUMN = 64                 # k
    TILE_ROWS = 16              # features
    MAX_WARPS = 16
    IN_FLIGHT_NBYTES = 69632    # of a block
    STEADY_NBYTES = 139264      # the same with plain weights that are read before x
    SKINNY_MMA_MAX_STAGES = 12
    X_NBYTES = 128              # of a token in a column of x in shared memory
    WIDE_X_NBYTES = 144
    KNOWN = 256                 # places of products whose shape is remembered, a power of two
    SUM_PAD = 8                 # floats between the sums of two tokens
    FEW_TOKENS = 8              # of which all sums are sent: IS_ADDED_FIRST in sums.cuh
    SKINNY_MMA_RESERVED_NBYTES = 1024      # of shared memory, for each block
    NORM_NBYTES = 2 * MAX_WARPS * 4        # sums that the warps of a block exchange
    MOST_NORM_CHUNKS = 4                   # chunks of 8 elements of x that a thread holds

# The model of time, in nanoseconds and bytes per nanosecond; measured on an H200, and only
# compared.
cdef double MEMORY_RATE = 4890      # of the device
cdef double BLOCK_RATE = 100        # of a block that has the memory to itself
cdef double* COLUMN_TIMES = [111, 183, 145]     # of a column in a block of 8 warps, by Form
cdef double* TILE_FACTORS = [0, 1, 1.66, 2.23, 2.75]    # by tiles, for which x is read once
cdef double WARP_FACTOR = 0.83      # a column of each of 16 warps takes so much longer
cdef double UNEVEN_FACTOR = 1.08    # of warps that are no multiple of 4
cdef double BLOCK_TIME = 781        # its beginning and end
cdef double PART_TIME = 34          # of each of its parts of K
cdef double SUM_TIME = 101          # of each sum that a thread adds up
cdef double MEETING = 419           # synchronizing a cluster
cdef double X_TIME = 106            # of a copy of x by each lane of a warp
cdef double STEADY_X_TIME = 621     # of four loads of x by each thread
cdef double SPAN_TIME = 2000        # of a further load of x

cdef extern from "gputensor/blas/kernels/skinny/skinny_mma.h" namespace "gputensor" nogil:
    cdef struct SkinnyMmaParameters:
        pass

    cdef struct SkinnyFusedParameters:      # begins with SkinnyMmaParameters
        uint64_t x
        uint64_t w
        uint64_t scales
        uint64_t bias
        uint64_t addend
        uint64_t y
        int64_t n
        int64_t k
        int64_t x_pitch
        int64_t w_pitch
        int64_t y_pitch
        int64_t addend_pitch
        int m
        int span
        int x_offset
        int sums_offset
        float alpha
        float beta
        uint64_t gain
        uint64_t second_w
        uint64_t second_scales
        uint64_t second_bias
        uint64_t cosines
        uint64_t sines
        uint64_t places
        uint64_t keys
        uint64_t values
        int64_t key_head
        int64_t key_row
        int64_t value_head
        int64_t value_row
        int64_t length
        int64_t scales_pitch
        uint64_t shift
        float epsilon
        int norm_offset
        int last
        int group_tiles
        int heads
        int kept
        int long_places

cdef struct Known:              # the shape and kernel found for a product
    int device
    int form
    int type_x
    int type_y
    int group
    int fused                   # fused_key
    int is_steady
    int epoch
    int64_t m
    int64_t n
    int64_t k
    void* kernel                # a Kernel; NULL: an empty place
    SkinnyMmaBlockShape shape

# Each thread has its own places, so they need no lock.
cdef extern from *:
    """
    #include <vector>
    static inline char* gt_skinny_places(size_t nbytes) {
        static thread_local std::vector<char> places;
        if (places.empty()) places.resize(nbytes);
        return places.data();
    }
    """
    char* gt_skinny_places(size_t nbytes) noexcept nogil

cdef int known_epoch = 1        # places of another epoch belong to other forced shapes
cdef KernelTable skinny_mma_kernels


# ---- the shape of a block

cdef inline int64_t skinny_mma_columns_of(const SkinnyProduct* product) noexcept nogil:
    return ceil_divide(product.k, COLUMN)


cdef inline int64_t features_of(const SkinnyProduct* product) noexcept nogil:
    """Return the features of all tiles; pairs have separate tiles for first and second features."""
    if product.fused.pairs:
        return 2 * TILE_ROWS * ceil_divide(product.fused.pair_count, TILE_ROWS)
    return product.n


cdef inline int64_t part_columns(const SkinnyProduct* product,
                                 const SkinnyMmaBlockShape* shape) noexcept nogil:
    """Return the columns of the longest part of K."""
    cdef int64_t steps = ceil_divide(skinny_mma_columns_of(product), shape.step)
    return ceil_divide(steps, shape.splits * shape.k_warps) * shape.step


cdef int skinny_mma_stage_nbytes(const SkinnyProduct* product,
                                 const SkinnyMmaBlockShape* shape) noexcept nogil:
    cdef int copies = 1
    cdef int nbytes
    if product.form == FORM_INT8:
        copies = 2
    elif product.form == FORM_PLAIN:
        copies = 4
    nbytes = shape.step * shape.tiles * copies * 512
    if product.group:
        nbytes += shape.step * COLUMN // product.group * shape.tiles * 128
    return nbytes


cdef bint fill_memory(const SkinnyProduct* product, const SkinnyDevice* device,
                      SkinnyMmaBlockShape* shape) noexcept nogil:
    """Choose stages and the part of x in shared memory at a time; False if there is no room."""
    cdef int warps = shape.row_warps * shape.k_warps
    cdef int stage = skinny_mma_stage_nbytes(product, shape) * warps
    cdef int m = <int>product.m
    cdef int rows = TILE_ROWS * shape.tiles * shape.row_warps
    # Sums of few tokens are sent to the block of the cluster that owns the features, which may
    # still read its stages; others are first added up in the place of the stages.
    cdef bint is_overlaid = shape.splits == 1 or m > FEW_TOKENS
    cdef int overlaid = shape.k_warps * m * (rows + SUM_PAD) * 4 if is_overlaid else 0
    cdef int sent = m * (rows // shape.splits + SUM_PAD) * 4
    cdef bint is_wide = product.form == FORM_INT8 and product.group != 32
    cdef bint is_deep
    # Bytes of a column of x, in all parts.
    cdef int column = shape.k_warps * m * (WIDE_X_NBYTES if is_wide else X_NBYTES)
    cdef int room = device.shared_nbytes - SKINNY_MMA_RESERVED_NBYTES
    cdef int64_t wanted = part_columns(product, shape)
    cdef int64_t span, steps
    if product.fused.gain:
        room -= NORM_NBYTES
    sent *= 0 if shape.splits == 1 else shape.splits * (1 if is_overlaid else shape.k_warps)
    room -= sent
    shape.stages = skinny_mma_forced.stages
    if not shape.stages:
        is_deep = product.is_steady and product.form == FORM_PLAIN
        shape.stages = <int>ceil_divide(STEADY_NBYTES if is_deep else IN_FLIGHT_NBYTES, stage) + 1
        if shape.stages > SKINNY_MMA_MAX_STAGES:
            shape.stages = SKINNY_MMA_MAX_STAGES
        # Loading all of x at once has priority over a deeper queue; each further load is a pause.
        while shape.stages > 2 and shape.stages * stage + wanted * column > room:
            shape.stages -= 1
    shape.x_offset = shape.stages * stage
    if shape.x_offset < overlaid:
        shape.x_offset = overlaid
    span = (room - shape.x_offset) // column // shape.step * shape.step
    if span > wanted:
        span = wanted
    shape.span = <int>span
    shape.norm_offset = shape.x_offset + shape.span * column + sent
    shape.sums_offset = shape.norm_offset - sent if sent else 0
    shape.shared_nbytes = shape.norm_offset + (NORM_NBYTES if product.fused.gain else 0)
    # The rest has no room for a second block.
    if shape.shared_nbytes < device.shared_nbytes // 2:
        shape.shared_nbytes = device.shared_nbytes // 2
    if not product.fused.gain:
        return shape.span > 0
    steps = ceil_divide(skinny_mma_columns_of(product), shape.step)
    shape.norm = <int>ceil_divide(steps * shape.step * 8, 32 * warps)
    return shape.span == wanted and shape.norm <= MOST_NORM_CHUNKS


cdef double x_time(const SkinnyProduct* product, const SkinnyMmaBlockShape* shape,
                   int64_t columns) noexcept nogil:
    """Return the time until x is in shared memory; `columns` are those of a part of K."""
    cdef int64_t warps = shape.row_warps * shape.k_warps
    cdef int64_t chunks
    if product.fused.gain:              # every block normalizes whole rows
        chunks = product.m * 8 * skinny_mma_columns_of(product)
    elif product.is_steady:
        chunks = product.m * 8 * columns * shape.k_warps
    else:
        return (X_TIME * ceil_divide(shape.k_warps * product.m, warps)
                * ceil_divide(8 * columns, 32))
    return STEADY_X_TIME * ceil_divide(chunks, 4 * 32 * warps)


cdef double cost_of(const SkinnyProduct* product, const SkinnyDevice* device,
                    const SkinnyMmaBlockShape* shape) noexcept nogil:
    """Return the modelled time, but for what is the same for all shapes."""
    cdef int rows = TILE_ROWS * shape.tiles * shape.row_warps
    cdef int warps = shape.row_warps * shape.k_warps
    cdef int64_t blocks = ceil_divide(features_of(product), rows) * shape.splits
    cdef int64_t waves = ceil_divide(blocks, device.multiprocessors)
    cdef int64_t columns = part_columns(product, shape)
    # As if all parts were as long as the longest.
    cdef double nbytes = rows * min(columns * COLUMN * shape.k_warps, product.k)
    cdef double multiplying = COLUMN_TIMES[<int>product.form] * columns * TILE_FACTORS[shape.tiles]
    cdef double ends = BLOCK_TIME + PART_TIME * shape.k_warps + x_time(product, shape, columns)
    cdef double alone, full, last
    if product.form == FORM_PLAIN:
        nbytes *= 2
    elif product.form == FORM_INT4:
        nbytes *= 0.5
    if product.group:
        nbytes += nbytes * (4 if product.form == FORM_INT4 else 2) / product.group
    multiplying *= 1 + WARP_FACTOR * (warps - 8) / 8
    if warps % 4:
        multiplying *= UNEVEN_FACTOR
    ends += SUM_TIME * shape.k_warps * product.m * rows / (32.0 * warps)
    ends += SPAN_TIME * (ceil_divide(columns, shape.span) - 1)
    if shape.splits > 1:
        ends += MEETING
    full = nbytes * device.multiprocessors / MEMORY_RATE
    last = nbytes * (blocks - (waves - 1) * device.multiprocessors) / MEMORY_RATE
    alone = multiplying * multiplying + (nbytes / BLOCK_RATE) ** 2
    return (waves - 1) * sqrt(alone + full * full) + waves * ends + sqrt(alone + last * last)


cdef bint skinny_mma_choose_shape(const SkinnyProduct* product, const SkinnyDevice* device,
                                  bint is_any_enough, SkinnyMmaBlockShape* best) noexcept nogil:
    """Find the shape of least modelled time, or any; False when none fits the shared memory."""
    cdef SkinnyMmaBlockShape shape
    cdef int tiles, row_warps, splits, divisor, widest
    cdef int64_t steps
    memset(&shape, 0, sizeof(shape))
    best.span = 0
    shape.tokens = 8 if product.m <= 8 else 16
    shape.step = 1 if product.form == FORM_PLAIN else 2
    steps = ceil_divide(skinny_mma_columns_of(product), shape.step)
    # Wider tiles, which read x less often, come first, because the first of equals is taken.
    widest = 4 if skinny_mma_forced.tiles else 2 if product.form == FORM_INT4 else 1
    for tiles in range(widest, 0, -1):
        for row_warps in range(1, MAX_WARPS + 1):
            for splits in range(1, 3 if device.can_cluster else 2):
                if ((skinny_mma_forced.tiles and tiles != skinny_mma_forced.tiles)
                        or (skinny_mma_forced.warps and row_warps != skinny_mma_forced.warps)
                        or (skinny_mma_forced.splits and splits != skinny_mma_forced.splits)):
                    continue
                if product.fused.pairs and tiles * row_warps % 2:
                    continue            # the two tiles of pairs belong to one block
                shape.tiles, shape.row_warps, shape.splits = tiles, row_warps, splits
                for divisor in range(1, 3):     # blocks of 16 warps, and of 8
                    shape.k_warps = skinny_mma_forced.k_warps
                    if not shape.k_warps:
                        shape.k_warps = MAX_WARPS // divisor // row_warps
                        while shape.k_warps > 1 and shape.k_warps * splits > steps:
                            shape.k_warps -= 1
                    if not shape.k_warps or not fill_memory(product, device, &shape):
                        continue
                    if is_any_enough:
                        return True
                    shape.cost = cost_of(product, device, &shape)
                    if best.span == 0 or shape.cost < best.cost:
                        best[0] = shape
    return best.span > 0


# ---- launch

cdef inline int most_nbytes(const SkinnyDevice* device) noexcept nogil:
    """Return the most shared memory that any span of a shape needs."""
    return device.shared_nbytes - SKINNY_MMA_RESERVED_NBYTES


cdef inline int fused_key(const SkinnyProduct* product) noexcept nogil:
    cdef const SkinnyFusion* fused = &product.fused
    cdef int key = (fused.pairs << 4 | fused.gate << 1) | (fused.gain != 0)
    return fused.is_centered << 6 | key


cdef uint64_t variant_key(const Known* known) noexcept nogil:
    cdef const SkinnyMmaBlockShape* shape = &known.shape
    cdef uint64_t key = known.form << 10 | known.type_x << 5 | known.type_y
    key = (key << 5 | <uint64_t>shape.tokens) << 5 | <uint64_t>shape.tiles
    key = (key << 5 | <uint64_t>shape.row_warps) << 5 | <uint64_t>shape.k_warps
    key = (key << 5 | <uint64_t>shape.stages) << 5 | <uint64_t>shape.splits
    key = key << 8 | <uint64_t>known.group
    key = (key << 7 | <uint64_t>known.fused) << 3 | <uint64_t>shape.norm
    return key << 1 | <uint64_t>known.is_steady


cdef object skinny_mma_program(const void* variant):
    cdef const Known* known = <const Known*>variant
    cdef const SkinnyMmaBlockShape* shape = &known.shape
    return programs.skinny_mma(
        known.form, DTYPES[known.type_x].name, DTYPES[known.type_y].name, shape.tokens,
        tiles=shape.tiles, step=shape.step, row_warps=shape.row_warps, k_warps=shape.k_warps,
        stages=shape.stages, splits=shape.splits, group=known.group, norm=shape.norm,
        centered=bool(known.fused >> 6), pairs=known.fused >> 4 & 3, gate=known.fused >> 1 & 7,
        steady=bool(known.is_steady))


cdef const Known* skinny_mma_known(const SkinnyProduct* product,
                                   const SkinnyDevice* device) except NULL nogil:
    """Return the shape of blocks and the kernel, found once while the product keeps its place."""
    cdef uint64_t mixed = (product.n * 31 + product.k) * 31 + product.m
    cdef Known* found
    cdef Known made
    mixed = ((mixed * 31 + product.group) * 31 + product.form) * 31
    mixed += product.type_x + product.device + 7 * fused_key(product) + 3 * product.is_steady
    found = <Known*>gt_skinny_places(KNOWN * sizeof(Known)) + ((mixed ^ mixed >> 9) & (KNOWN - 1))
    if (found.kernel and found.n == product.n and found.k == product.k and found.m == product.m
            and found.group == product.group and found.form == product.form
            and found.type_x == product.type_x and found.type_y == product.type_y
            and found.fused == fused_key(product) and found.is_steady == product.is_steady
            and found.device == product.device
            and found.epoch == known_epoch):
        return found
    skinny_mma_shape(product, device, &made.shape)
    made.n, made.k, made.m, made.group = product.n, product.k, product.m, product.group
    made.form, made.device, made.epoch = product.form, product.device, known_epoch
    made.type_x, made.type_y, made.fused = product.type_x, product.type_y, fused_key(product)
    made.is_steady = product.is_steady
    made.kernel = kernel_of(&skinny_mma_kernels, variant_key(&made), skinny_mma_program, &made)
    # Written at once, because a finalizer that ran meanwhile may have used the place.
    found[0] = made
    return found


cdef int skinny_mma_shape(const SkinnyProduct* product, const SkinnyDevice* device,
                          SkinnyMmaBlockShape* shape) except -1 nogil:
    if not skinny_mma_choose_shape(product, device, False, shape):
        with gil:
            raise ValueError(f"shared_nbytes: got {device.shared_nbytes}; expected enough for a "
                             "block of a skinny product")
    return 0


# Compiles the kernel for a product; BLAS_NOT_SUPPORTED where kernels cannot be compiled.
cdef int mma_prepare(const SkinnyProduct* product, const SkinnyDevice* device) except -1 nogil:
    return compiled(skinny_mma_known(product, device).kernel, product.device, most_nbytes(device))


cdef bint skinny_fusion_fits(const SkinnyProduct* product) noexcept nogil:
    cdef const SkinnyFusion* fused = &product.fused
    cdef SkinnyMmaBlockShape shape
    if product.type_x == DT_FLOAT32 or not skinny_product_fits(product):
        return False
    if (fused.gain | fused.second_w | fused.second_scales) % SKINNY_ALIGNMENT:
        return False
    if fused.pairs == PAIRS_GATED and fused.pair_count % (
            TILE_ROWS if product.form == FORM_INT4 else TILE_ROWS // 2):
        return False
    if fused.pairs == PAIRS_ROTATED and fused.half % TILE_ROWS:
        return False
    return skinny_mma_choose_shape(product, known_facts(product.device), True, &shape)


cdef void fill_fusion(const SkinnyProduct* product, const SkinnyMmaBlockShape* shape,
                      SkinnyFusedParameters* p) noexcept nogil:
    cdef const SkinnyFusion* fused = &product.fused
    p.gain, p.epsilon, p.norm_offset = fused.gain, fused.epsilon, shape.norm_offset
    p.shift = fused.shift
    if not fused.pairs:
        return
    p.n, p.last, p.scales_pitch = fused.pair_count, <int>fused.last, fused.scales_pitch
    p.second_w, p.second_scales = fused.second_w, fused.second_scales
    p.second_bias = fused.second_bias
    p.group_tiles = <int>(fused.half // TILE_ROWS if fused.half else 1 << 30)
    p.cosines, p.sines, p.places = fused.cosines, fused.sines, fused.places
    p.keys, p.values, p.length = fused.keys, fused.values, fused.length
    p.key_head, p.key_row = fused.key_head, fused.key_row
    p.value_head, p.value_row = fused.value_head, fused.value_row
    p.heads, p.kept, p.long_places = fused.heads, fused.kept, fused.long_places


# Queues a product that satisfies skinny_product_fits, and skinny_fusion_fits if it has a fusion.
cdef int mma_run(const SkinnyProduct* product, const SkinnyDevice* device,
                 uint64_t stream) except -1 nogil:
    cdef SkinnyFusedParameters p
    cdef const Known* found = skinny_mma_known(product, device)
    cdef const SkinnyMmaBlockShape* shape = &found.shape
    cdef size_t nbytes = sizeof(SkinnyMmaParameters)
    cdef int64_t rows
    cdef Launch launch
    memset(&p, 0, sizeof(p))
    p.x, p.w, p.y = product.x, product.w, product.y
    p.scales, p.bias, p.addend = product.scales, product.bias, product.addend
    p.m, p.n, p.k = <int>product.m, product.n, product.k
    p.x_pitch = product.x_pitch * dtype_itemsize(product.type_x)
    p.w_pitch = product.w_pitch
    if product.form == FORM_PLAIN:
        p.w_pitch *= dtype_itemsize(product.type_x)
    elif product.form == FORM_INT4:
        p.w_pitch *= TILE_ROWS * COLUMN // 2
    p.y_pitch, p.addend_pitch = product.y_pitch, product.addend_pitch
    p.span, p.x_offset, p.sums_offset = shape.span, shape.x_offset, shape.sums_offset
    p.alpha, p.beta = product.alpha, product.beta
    rows = TILE_ROWS * shape.tiles * shape.row_warps
    if found.fused:
        fill_fusion(product, shape, &p)
        nbytes = sizeof(p)
    launch_init(&launch, product.device, stream,
                <uint32_t>(ceil_divide(features_of(product), rows) * shape.splits),
                32 * shape.row_warps * shape.k_warps, &p, nbytes)
    launch.shared_nbytes, launch.most_shared_nbytes = shape.shared_nbytes, most_nbytes(device)
    return launch_kernel(found.kernel, &launch)


cdef void skinny_mma_force(const SkinnyForced* forced) noexcept:
    global skinny_mma_forced, known_epoch
    skinny_mma_forced = forced[0]
    known_epoch += 1
