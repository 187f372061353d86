"""Tiles of products with weights of a form: the shape of a block, and the launches.

tile.cuh multiplies, from sm_80 on; on Hopper also wgmma.cuh, for which x is brought into another
order first.

A block has a multiprocessor for itself. The shape with the shortest modelled time is taken; the
model counts waves of blocks, the columns of k of a block, and the sums that blocks exchange where K
is cut. If it says more than for plain weights, tiles are not used. Plain weights, and a formula of
the sums, are used only where a caller asks for tiles (product/inside.pxi).
"""

cdef enum:
    TILE_COLUMN = 64            # k
    TILE_WARP_ROWS = 32         # features of a warp of tile.cuh
    TILE_HOPPER = 90
    TILE_MOST_SPLITS = 16
    TILE_MOST_STAGES = 4
    TILE_MOST_WGMMA_STAGES = 10
    TILE_MOST_PARTS = 2         # 4 were no faster at 28 products
    TILE_RESERVED_NBYTES = 1024     # of shared memory, for each block
    LEAST_TILE_ROWS = 17
    MOST_TILE_ROWS = 2048           # more have not been measured
    MOST_TILE_ROWS_OF_MMA = 128     # likewise, where there is no wgmma

# Nanoseconds of an H200: with mma fitted to 100 measured times, with wgmma to 28; most differ from
# the model by less than a twentieth. On other devices they are only compared. With parts, the block
# chosen for 28 products of 17 to 256 rows takes 2 % longer than the best on average, at most 12 %.
cdef double TILE_LAUNCH_MMA = 3500
cdef double TILE_LAUNCH_WGMMA = 3150
cdef double TILE_WAVE = 3500            # each but the first
cdef double TILE_JOIN = 1300
cdef double TILE_JOIN_BYTE = 1 / 3600.
cdef double TILE_ORDER_BYTE = 1 / 3700.
cdef double TILE_MEETING = 800              # of the parts of a cluster
cdef double TILE_MEETING_BYTE = 1 / 80.     # of a block's sums
# For a column of 64 k: in all, for a row of weights, and for a row times a token.
cdef double TILE_COLUMN_MMA = 74
cdef double TILE_COLUMN_WGMMA = 124
cdef double TILE_ROW_INT4 = 0.95
cdef double TILE_ROW_INT8 = 1.85
cdef double TILE_ROW_PLAIN = 3.7        # not measured: twice the bytes of int8
cdef double TILE_ROW_WGMMA = -0.85      # with wgmma, added to these
cdef double TILE_TOKEN_MMA = 0.0316
cdef double TILE_TOKEN_WGMMA = 0.0168
cdef int TILE_LEAST_WGMMA = 64          # fewer than 128 tokens count as this and half of them
# The other way: to dequantize a weight, then a byte and a multiply-add of the product.
cdef double TILE_PLAIN = 5500
cdef double TILE_PLAIN_WEIGHT = 1.1e-3
cdef double TILE_PLAIN_BYTE = 1 / 3500.
cdef double TILE_PLAIN_TERM = 1 / 395000.

cdef extern from "gputensor/blas/kernels/quantized/tile.h" namespace "gputensor" nogil:
    cdef struct QuantizedTileParameters:
        uint64_t x
        uint64_t w
        uint64_t scales
        uint64_t bias
        uint64_t y
        uint64_t sums
        uint64_t ordered
        int64_t n
        int64_t k
        int64_t x_pitch
        int64_t w_pitch
        int64_t y_pitch
        int64_t sums_pitch
        int m
        int splits
        int row_tiles
        int token_tiles
        int has_pairs
        int ordered_rows
        TileOperand[MOST_TILE_OPERANDS] others


@cython.final
cdef class TileEnding:
    """A formula of the sums of tiles: the definitions and the kernels of its programs."""
    cdef dict defines
    cdef KernelTable tiles
    cdef KernelTable joins

cdef struct TileVariant:
    int form
    int type_x
    int type_y
    int group
    TileShape shape
    void* ending                # a TileEnding, or NULL

cdef KernelTable tile_kernels
cdef KernelTable tile_joins
cdef KernelTable tile_orders
cdef int[2][2] TILE_FEW = [[256, 2], [128, 4]]      # rows, k_warps; up to 64 tokens
cdef int[2][2] TILE_MANY = [[256, 1], [128, 2]]
cdef TileShape tile_forced
cdef int64_t least_tile_rows = LEAST_TILE_ROWS
cdef int64_t most_tile_rows = MOST_TILE_ROWS


cdef inline int64_t tile_count(int64_t size, int64_t part) noexcept nogil:
    return (size + part - 1) // part


cdef int tile_weights_nbytes(const SkinnyProduct* product, int rows) noexcept nogil:
    """Return the bytes in shared memory of a column of 64 k, with scales."""
    cdef int nbytes = rows // 16 * (512 if product.form == FORM_INT4 else 1024)
    if product.form == FORM_PLAIN:
        nbytes *= 2
    if product.group:
        nbytes += rows // 16 * 128 * (2 if product.group == 32 else 1)
    return nbytes


cdef bint tile_fill(const SkinnyProduct* product, TileShape* shape) noexcept nogil:
    """Choose the stages for the shared memory; False if too few fit."""
    cdef int room = known_facts(product.device).shared_nbytes - TILE_RESERVED_NBYTES
    cdef int weights = tile_weights_nbytes(product, shape.rows)
    cdef int x = shape.tokens * 128
    cdef int sums
    if shape.has_wgmma:
        shape.stages = min(room // (weights + x + 16), TILE_MOST_WGMMA_STAGES)
        shape.shared_nbytes = shape.stages * (weights + x + 16)
        # Parts exchange their sums where the rings were.
        return shape.stages >= 3 and (
            shape.parts == 1
            or shape.rows * shape.tokens * 4 <= shape.stages * (weights + x))
    sums = (shape.k_warps - 1) * shape.rows * shape.tokens * 4
    x = shape.k_warps * (weights + x)
    shape.stages = min(room // x, TILE_MOST_STAGES)
    shape.shared_nbytes = max(sums, shape.stages * x)
    return shape.stages >= 2 and shape.shared_nbytes <= room


cdef double tile_cost(const SkinnyProduct* product, const TileShape* shape,
                      int multiprocessors) noexcept nogil:
    cdef int64_t steps = tile_count(product.k, TILE_COLUMN * shape.k_warps)
    cdef int64_t columns = tile_count(steps, shape.splits * shape.parts) * shape.k_warps
    cdef int64_t blocks = tile_count(product.n, shape.rows)
    cdef int64_t waves
    cdef double time = TILE_COLUMN_WGMMA if shape.has_wgmma else TILE_COLUMN_MMA
    time += shape.rows * (TILE_ROW_INT4 if product.form == FORM_INT4 else
                          TILE_ROW_INT8 if product.form == FORM_INT8 else TILE_ROW_PLAIN)
    if shape.has_wgmma:
        time += shape.rows * TILE_ROW_WGMMA
        time += (shape.rows * max(shape.tokens, TILE_LEAST_WGMMA + shape.tokens // 2)
                 * TILE_TOKEN_WGMMA)
        if shape.parts == 1:
            blocks += blocks % 2    # whole clusters
    else:
        time += shape.rows * shape.tokens * TILE_TOKEN_MMA
    blocks *= tile_count(product.m, shape.tokens) * shape.splits * shape.parts
    waves = tile_count(blocks, multiprocessors)
    time = waves * columns * time + (waves - 1) * TILE_WAVE
    if shape.has_wgmma:
        time += TILE_LAUNCH_WGMMA + 4.0 * product.m * product.k * TILE_ORDER_BYTE
    else:
        time += TILE_LAUNCH_MMA
    if shape.parts > 1:
        time += TILE_MEETING + 4.0 * shape.rows * shape.tokens * TILE_MEETING_BYTE
    if shape.splits > 1:
        time += TILE_JOIN + shape.splits * 8.0 * product.m * product.n * TILE_JOIN_BYTE
    return time


cdef double tile_plain_cost(const SkinnyProduct* product) noexcept nogil:
    """Return the modelled time of dequantizing the weights and multiplying with them."""
    cdef double weights = <double>product.n * product.k
    return (TILE_PLAIN + weights * TILE_PLAIN_WEIGHT
            + max(2 * weights * TILE_PLAIN_BYTE, weights * product.m * TILE_PLAIN_TERM))


cdef void tile_try(const SkinnyProduct* product, TileShape* shape, TileShape* best,
                   double* least) noexcept nogil:
    """Take this kind of block, with any number of splits, if it is faster than the best."""
    cdef int multiprocessors = max(1, known_facts(product.device).multiprocessors)
    cdef int64_t steps = tile_count(product.k, TILE_COLUMN * shape.k_warps)
    cdef int64_t blocks
    cdef int splits
    cdef double cost
    if ((tile_forced.has_wgmma and tile_forced.has_wgmma != shape.has_wgmma + 1)
            or (tile_forced.rows and tile_forced.rows != shape.rows)
            or (tile_forced.tokens and tile_forced.tokens != shape.tokens)
            or (tile_forced.parts and tile_forced.parts != shape.parts)
            or not tile_fill(product, shape)):
        return
    blocks = (tile_count(product.n, shape.rows) * tile_count(product.m, shape.tokens)
              * shape.parts)
    for splits in range(1, TILE_MOST_SPLITS + 1):
        if splits * shape.parts > 1 and 2 * splits * shape.parts > steps:
            break
        if not tile_forced.splits and blocks * (splits - 1) >= multiprocessors:
            break               # the blocks already have a multiprocessor each
        if tile_forced.splits and tile_forced.splits != splits:
            continue
        shape.splits = splits
        cost = tile_cost(product, shape, multiprocessors)
        if least[0] < 0 or cost < least[0]:
            best[0], least[0] = shape[0], cost


# Finds the block of least modelled time for a product that is as skinny ones, with more rows; False
# when none fits the shared memory, or unless asked for, when plain weights are faster. A block of
# pairs of features has both of each pair in the same threads, which takes two tiles.
cdef bint tile_choose(const SkinnyProduct* product, bint is_asked,
                      TileShape* best) noexcept nogil:
    cdef TileShape shape
    cdef double least = -1
    cdef int place
    memset(&shape, 0, sizeof(shape))
    shape.parts = 1
    shape.tokens = 32 if product.m <= 32 else 64 if product.m <= 64 else 128
    for place in range(2):
        shape.rows = TILE_FEW[place][0]
        shape.k_warps = TILE_FEW[place][1] if shape.tokens < 128 else TILE_MANY[place][1]
        tile_try(product, &shape, best, &least)
    if known_facts(product.device).capability == TILE_HOPPER:
        shape.has_wgmma, shape.k_warps = True, 1
        for place in range(2):
            shape.rows = TILE_FEW[place][0]
            if place and product.fused.pairs:
                break
            shape.parts = 1
            while shape.parts <= (tile_forced.parts or TILE_MOST_PARTS):
                tile_try(product, &shape, best, &least)
                shape.parts *= 2
            shape.parts = 1
            if place and shape.tokens == 128:
                shape.tokens = 256
                tile_try(product, &shape, best, &least)
    elif product.m > MOST_TILE_ROWS_OF_MMA and not is_asked:
        return False
    if is_asked or tile_forced.rows or product.m <= MOST_PARTED_ROWS:
        return least >= 0
    return 0 <= least < tile_plain_cost(product)


cdef dict tile_end(const TileVariant* given):
    if given.ending is NULL:
        return quantized_programs.NO_FORMULA
    return (<TileEnding>given.ending).defines


cdef object tile_program(const void* variant):
    cdef const TileVariant* given = <const TileVariant*>variant
    cdef const TileShape* shape = &given.shape
    cdef tuple types = (DTYPES[given.type_x].name, DTYPES[given.type_y].name)
    if shape.has_wgmma:
        return quantized_programs.wgmma(
            given.form, *types, shape.tokens, tiles=shape.rows // 128, stages=shape.stages,
            group=given.group, parts=shape.parts, end=tile_end(given))
    return quantized_programs.tile(
        given.form, *types, shape.tokens, row_warps=shape.rows // TILE_WARP_ROWS,
        k_warps=shape.k_warps, stages=shape.stages, group=given.group, end=tile_end(given))


cdef object tile_join_program(const void* variant):
    cdef const TileVariant* given = <const TileVariant*>variant
    return quantized_programs.join(DTYPES[given.type_x].name, DTYPES[given.type_y].name,
                                   given.form != FORM_PLAIN and given.group == 0, tile_end(given))


cdef object tile_order_program(const void* variant):
    return quantized_programs.order((<const TileVariant*>variant).form)


cdef uint64_t tile_key(const TileVariant* variant) noexcept nogil:
    cdef const TileShape* shape = &variant.shape
    cdef uint64_t key = variant.form << 10 | variant.type_x << 5 | variant.type_y
    key = (key << 8 | <uint64_t>variant.group) << 1 | <uint64_t>shape.has_wgmma
    key = (key << 9 | <uint64_t>shape.tokens) << 9 | <uint64_t>shape.rows
    key = key << 3 | <uint64_t>shape.parts
    return (key << 4 | <uint64_t>shape.k_warps) << 5 | <uint64_t>shape.stages


# Queues a product that tile_choose has a block for.
cdef int tile_run(const QuantizedTask* task, uint64_t stream) except -1 nogil:
    cdef const SkinnyProduct* product = &task.small
    cdef const TileShape* shape = &task.shape
    cdef QuantizedTileParameters p
    cdef TileVariant variant
    cdef Launch launch
    cdef int64_t itemsize = dtype_itemsize(product.type_y), threads
    cdef int64_t blocks = tile_count(product.n, shape.rows)
    cdef KernelTable* tiles = &tile_kernels
    cdef KernelTable* joins = &tile_joins
    if task.ending is not NULL:
        tiles, joins = &(<TileEnding>task.ending).tiles, &(<TileEnding>task.ending).joins
    memset(&p, 0, sizeof(p))
    memcpy(p.others, task.others, sizeof(p.others))
    variant.form, variant.group, variant.shape = product.form, product.group, shape[0]
    variant.ending = task.ending
    variant.type_x, variant.type_y = product.type_x, product.type_y
    p.x, p.w, p.y = product.x, product.w, product.y
    p.scales, p.bias, p.sums = product.scales, product.bias, task.sums
    p.m, p.n, p.k = <int>product.m, product.n, product.k
    p.x_pitch = product.x_pitch * dtype_itemsize(product.type_x)
    p.w_pitch = product.w_pitch * (512 if product.form == FORM_INT4 else
                                   1 if product.form == FORM_INT8 else 2)
    p.y_pitch = product.y_pitch
    p.splits, p.row_tiles = shape.splits, <int>tile_count(product.n, shape.rows)
    p.token_tiles = <int>tile_count(p.m, shape.tokens)
    p.sums_pitch = p.row_tiles * shape.rows
    p.has_pairs = (product.y_pitch % 2 == 0 and product.y % <uint64_t>(2 * itemsize) == 0)
    p.ordered, p.ordered_rows = task.ordered, p.token_tiles * shape.tokens
    if shape.has_wgmma:
        threads = p.ordered_rows * tile_count(p.k, TILE_COLUMN) * 8
        launch_init(&launch, product.device, stream, <uint32_t>tile_count(threads, 256), 256, &p,
                    sizeof(p))
        launch_kernel(kernel_of(&tile_orders, product.form, tile_order_program, &variant), &launch)
        blocks += blocks % 2 if shape.parts == 1 else 0     # whole clusters
    blocks *= p.token_tiles * p.splits * shape.parts
    launch_init(&launch, product.device, stream, <uint32_t>blocks,
                384 if shape.has_wgmma else shape.rows * shape.k_warps, &p, sizeof(p))
    launch.shared_nbytes = launch.most_shared_nbytes = shape.shared_nbytes
    launch_kernel(kernel_of(tiles, tile_key(&variant), tile_program, &variant), &launch)
    if p.splits == 1:
        return 0
    launch_init(&launch, product.device, stream,
                <uint32_t>tile_count(p.m * (p.sums_pitch // 4), 256), 256, &p, sizeof(p))
    return launch_kernel(
        kernel_of(joins, (product.type_x << 5 | product.type_y) << 3 | product.form << 1
                  | (product.group == 0), tile_join_program, &variant), &launch)


cdef size_t tile_sums_nbytes(const SkinnyProduct* product, const TileShape* shape) noexcept nogil:
    """Return the bytes of the sums that blocks exchange; 0 if there are none."""
    if shape.splits == 1:
        return 0
    return <size_t>(shape.splits * product.m * tile_count(product.n, shape.rows) * shape.rows * 4)


cdef size_t tile_order_nbytes(const SkinnyProduct* product, const TileShape* shape) noexcept nogil:
    """Return the bytes of x in another order; 0 if it is read as it is."""
    if not shape.has_wgmma:
        return 0
    return <size_t>(tile_count(product.m, shape.tokens) * shape.tokens
                    * tile_count(product.k, TILE_COLUMN) * 128)


cdef void tile_force(const TileShape* forced, int64_t least_rows, int64_t most_rows) noexcept:
    global tile_forced, least_tile_rows, most_tile_rows
    tile_forced = forced[0]
    least_tile_rows, most_tile_rows = least_rows, most_rows
