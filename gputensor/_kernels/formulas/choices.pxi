"""Which variant of a row formula's kernel suits a layout.

Rows whose columns are neighbours in memory are read in vectors by lanes along the columns; rows
whose elements of one column are neighbours are read by lanes across the rows. A row stays in the
registers of one block up to 32,768 elements, then in the registers of a cluster; longer rows, and
those that a cache holds between phases, are read again in each phase.
"""

# Chooses how each operand is read, and how many elements at once.
cdef void choose_modes(RowVariant* variant, int loads,
                       const RowParameters* parameters) noexcept nogil:
    cdef int k, d, nbytes, largest = 1, vector = 8
    cdef bint is_constant
    cdef int64_t together = parameters.columns
    for k in range(variant.count):
        is_constant = True
        for d in range(variant.column_axes):
            if parameters.axes[d].strides[k] != 0 and parameters.axes[d].size > 1:
                is_constant = False
        if is_constant and (k < loads or parameters.columns > 1):
            variant.modes[k] = CONSTANT
        elif variant.column_axes == 1 and parameters.axes[0].strides[k] == 1:
            variant.modes[k] = UNIT
            largest = max(largest, dtype_itemsize(variant.dtypes[k]))
        else:
            variant.modes[k] = STRIDED
    vector = min(vector, 16 // largest)
    if variant.across:
        vector = 1
    for k in range(variant.count):
        if variant.modes[k] != UNIT:
            continue
        nbytes = dtype_itemsize(variant.dtypes[k])
        while vector > 1 and parameters.operands[k] % <uint64_t>(vector * nbytes) != 0:
            vector //= 2
        for d in range(variant.column_axes, variant.column_axes + variant.kept_axes):
            together |= parameters.axes[d].strides[k]
    while vector > 1 and together % vector != 0:
        vector //= 2
    variant.vector = vector


# Operands by the memory that they take from rows of a device.
cdef struct Loads:
    int weights                 # equal for all rows, and only the last phase needs them
    int large                   # others that are not constant
    int last                    # the last large one


cdef void count_loads(RowFormula formula, const RowVariant* variant,
                      const RowParameters* parameters, Loads* loads) noexcept nogil:
    cdef int k
    loads.weights = loads.large = loads.last = 0
    for k in range(formula.loads):
        if not formula.folded >> k & 1 and is_fixed(variant, k, parameters):
            loads.weights += 1
        elif variant.modes[k] != CONSTANT:
            loads.large += 1
            loads.last = k


# The lanes of a row where there are many rows, if its vectors fill them. Rows below 8 KiB have two
# vectors for each lane, or three where two would leave too many lanes without a second one: with
# 16-bit floats and two weights, which are bound by instructions, one lane in five, otherwise two in
# seven. A row of 16 KiB or more has 512 lanes (layer_norm of 4,096 and 8,192 float32 .977 and .973
# of the copy rate with 128 and 256, .985 and .993 with 512), but if it is bound by instructions it
# keeps its lanes (layer_norm of 8,192 bfloat16 .974 with 256, .908 with 512).
cdef int64_t lanes_of_many(const RowVariant* variant, int64_t pieces, int64_t lanes,
                           const Loads* loads) noexcept nogil:
    cdef bint is_bound = variant.vector == 8 and loads.weights > 1
    cdef int64_t goal = lanes
    if 16 <= pieces < NARROW_PIECES:
        lanes = power_above(ceil_divide(pieces, 2))
        while lanes > (16 if pieces >= 32 else 4) and (6 if is_bound else 7) * pieces < (
                5 * lanes * ceil_divide(pieces, lanes)):
            lanes //= 2
        return lanes
    if pieces < 16:
        goal = power_above(ceil_divide(pieces, 1 + is_bound))
    elif pieces >= WIDE_PIECES and not is_bound:
        goal = WIDE_LANES
    while lanes < goal and pieces % (2 * lanes) == 0:
        lanes *= 2
    return lanes


# The rows of a block where there are many narrow rows: 3.5 to 7 KiB, about what a block of a copy
# has, so that two vectors for each of 128 to 256 threads are in flight. Share of the copy rate with
# 8, 4 and 2 KiB: rms_norm of 512 and 1,024 float32 1.00, 1.02, .81 and 1.00, 1.01, -, of 1,024
# bfloat16 .98, 1.01, .79; softmax of 1,024 float32 1.01, 1.03, -. With 2 to 3 KiB, tensors that the
# second cache holds are slower, too (20 MiB, rows of 2.5 KiB: 1.18 -> .90).
cdef int64_t rows_of_many(int64_t pieces) noexcept nogil:
    cdef int64_t rows = 1
    while rows * pieces < LEAST_PIECES:
        rows *= 2
    return rows


# Lanes along the columns; a row is held by one block or by a cluster of blocks, or is read again. A
# thread has 32 elements: on an H200 half as many gave .61 of the copy rate for rows of 16,384
# bfloat16, 32 gave .98 (layer_norm), since more blocks then overlap their loads with others' folds.
cdef void choose_along(RowVariant* variant, const RowParameters* parameters, int folds,
                       const Loads* loads, const DeviceFacts* facts) noexcept nogil:
    cdef int64_t pieces = ceil_divide(parameters.columns, variant.vector)
    cdef int64_t most = max(1, (HELD >> variant.is_double) // variant.vector)
    cdef int64_t lanes = min(power_above(ceil_divide(pieces, most)), MOST_LANES)
    cdef int64_t whole = MOST_LANES * most, largest = MOST_CLUSTER
    cdef int64_t halves = ceil_divide(2 * pieces, whole)
    cdef bint can_cluster = facts.can_cluster and folds <= CLUSTER_FOLDS and pieces > whole
    cdef bint by_halves = can_cluster and has_half_blocks(
        variant, parameters.rows, halves, loads.weights, facts)
    cdef bint is_many = variant.vector >= 4 and parameters.rows * min(lanes, 32) >= BUSY
    if is_many:
        lanes = lanes_of_many(variant, pieces, lanes, loads)
    variant.cluster, variant.loop = 1, 0
    if can_cluster and variant.vector == 8:
        lanes, most = MOST_LANES // 2, 2 * most
    elif can_cluster and by_halves:
        lanes, largest = MOST_LANES // 2, max(largest, power_above(halves))
    # A row's second warp waits for the first (layer_norm of bfloat16, 4,096 x 384: 3.02 us with 64
    # lanes, 2.43 with 32; 1,500 x 768 2.63, 2.18; but 128 x 384 1.43, 1.63).
    while lanes < MOST_LANES and ceil_divide(pieces, lanes) > 1 and (
            parameters.rows * lanes < BUSY and not can_cluster
            and (lanes != 32 or parameters.rows < WARP_ROWS)):
        lanes *= 2
    # A block of a cluster is alone on a multiprocessor, so few rows get more blocks only while the
    # clusters of all rows run at once (softmax of 64 rows of 65,536 bfloat16: 6.3 us by clusters of
    # two, 8.6 by clusters of eight).
    while can_cluster and variant.cluster < largest and (
            ceil_divide(pieces, lanes * variant.cluster) > most
            or 2 * parameters.rows * variant.cluster <= BUSY_BLOCKS):
        variant.cluster *= 2
    variant.lanes = <int>lanes
    variant.units = <int>ceil_divide(pieces, lanes * variant.cluster)
    variant.rows = <int>max(1, BLOCK_THREADS // lanes)
    if is_many and 8 <= pieces < NARROW_PIECES:
        variant.rows = <int>rows_of_many(pieces)
    # A warp that has a row alone holds twice as many 16-bit floats.
    if variant.units > (most if lanes > 32 else max(most, WARP_PIECES // 32)):
        variant.loop, variant.cluster, variant.lanes = 1, 1, MOST_LANES
        variant.units = max(1, (HELD >> variant.is_double) // variant.vector)


# Reads the row of one large operand in each phase, instead of holding it, where that is faster:
# the first cache of an H200 (256 KiB, of which shared memory takes little here) still has the row,
# if the blocks of a multiprocessor read 64 to 128 KiB of rows at once. With half as much in flight
# memory waits (.45 to .8 of the copy rate), with 256 KiB or more the row has left the cache (.5 to
# .9). So the registers of a thread decide, which weights take too: rows of 8 and 16 KiB have 8 to
# 10 and four or five blocks, with fewer lanes beside two weights; those of 32 KiB three or four of
# 512 threads, those of 64 KiB two of 1,024, with half as many units beside a weight, and those of
# 128 KiB one, which pays only for one fold, since no other block works at a barrier. Share of the
# copy rate, before and after: softmax, rms_norm and layer_norm of 2,048 float32 .98 1.00 .99 ->
# 1.03 1.04 1.02, of 4,096 bfloat16 .98 .98 1.01 -> 1.02 1.02 1.04, of 4,096 float32 .99 .98 1.00 ->
# 1.02 1.01 1.02, of 8,192 bfloat16 .98 .98 1.00 -> 1.01 1.02 1.02; softmax and rms_norm of 8,192
# float32 .97 .97 -> 1.01 1.01, of 16,384 bfloat16 .96 .99 -> 1.02 1.02, of 32,768 bfloat16 .92 .93
# -> 1.02 1.02; rms_norm of 32,768 float32 .94 -> 1.01, of 65,536 bfloat16 .90 -> .98. Held rows
# were better at 64 KiB of float32 (.98, .97 for rms_norm), for layer_norm of 32 KiB (.99, .94), and
# for rms_norm of 256 KiB (.90, .87).
cdef bint choose_cached(RowFormula formula, RowVariant* variant, const RowParameters* parameters,
                        const Loads* loads, const DeviceFacts* facts) noexcept nogil:
    cdef int64_t nbytes, pieces = parameters.columns // variant.vector
    cdef int weights = loads.weights, units = 4, lanes = WIDE_LANES
    if (not facts.can_cluster or facts.shared_nbytes < CACHING_NBYTES
            or parameters.rows < MANY_ROWS or formula.levels > 2 or weights > 2
            or loads.large != 1 or not formula.folded >> loads.last & 1
            or variant.modes[loads.last] != UNIT or not has_one_result(formula, variant)):
        return False
    if variant.vector * dtype_itemsize(variant.dtypes[loads.last]) != 16:
        return False
    nbytes = 16 * pieces
    if 16 * nbytes == CACHED_NBYTES and parameters.rows >= 2 * MANY_ROWS:
        variant.cached = 8 if weights < 2 else 10
        lanes = 128 if weights < 2 else 64
        units = 2 if weights == 1 else 4
    elif 8 * nbytes == CACHED_NBYTES:
        variant.cached = 4 if weights == 1 else 5
        lanes = 256 if weights < 2 else 128
    elif 4 * nbytes == CACHED_NBYTES and formula.levels + weights <= 2:
        variant.cached = 4 if variant.vector == 8 and weights == 0 else 3
    elif 2 * nbytes == CACHED_NBYTES and variant.vector == 8:
        variant.cached = 2 if weights < 2 else 1
        lanes = MOST_LANES if weights < 2 else WIDE_LANES
        units = 2 if weights == 1 else 4
    elif nbytes == CACHED_NBYTES and formula.levels == 1 and weights < 2:
        variant.cached, lanes, units = 1, MOST_LANES, HELD // variant.vector
    else:
        return False
    variant.lanes, variant.units, variant.rows, variant.cluster = lanes, units, 1, 1
    variant.loop, variant.full = 1, 1
    return True


# Whether a formula has one result with columns, in vectors.
cdef bint has_one_result(RowFormula formula, const RowVariant* variant) noexcept nogil:
    cdef int k, count = 0
    for k in range(formula.results):
        if not formula.row_results >> k & 1:
            count += 1 if variant.modes[formula.loads + k] == UNIT else 2
    return count == 1


# Whether many rows of float32 get blocks of 512 threads, `halves` for each row, which have room
# for two weights beside the next row. Measured on an H200, 1,024 and 512 threads: softmax of
# 65,536 and 131,072 columns .94 .92 and .96 .96 of the copy rate; rms_norm .90 .86 and .91 .89;
# layer_norm of 131,072 and 262,144 columns .88 .76 and .94 .92. Without two weights, 512 threads
# are slower at 262,144 columns, where they need clusters of 16 (softmax .86 for .93). 16-bit floats
# always have blocks of 512 threads in clusters, but of twice as many registers: softmax of 65,536,
# 131,072 and 262,144 columns .90 .94 .95 for .89 .93 .94; two blocks of a multiprocessor are no
# better.
cdef bint has_half_blocks(const RowVariant* variant, int64_t rows, int64_t halves, int weights,
                          const DeviceFacts* facts) noexcept nogil:
    cdef bint is_wide = weights > 1 and facts.multiprocessors >= WIDE_DEVICE
    return (variant.vector == 4 and rows * halves >= BUSY_BLOCKS
            and halves <= (WIDE_CLUSTER if is_wide else MOST_CLUSTER))


# The bytes of the next row that a block fetches while it folds one. Used in clusters, whose blocks
# wait for each other in each fold, and in the largest blocks of 16-bit floats (float32 gains
# nothing). A cluster keeps as many units as fit of the operands that are equal for all rows, since
# reading a weight and a bias again for each row takes two thirds of the cache's rate.
cdef void choose_ahead(RowVariant* variant, int loads, uint32_t folded,
                       const RowParameters* parameters) noexcept nogil:
    cdef int k, nbytes = 0, fixed = 0, piece
    if variant.loop or variant.across or (
            variant.cluster == 1 and (variant.lanes < MOST_LANES or variant.vector < 8)):
        return
    for k in range(loads):
        piece = variant.vector * dtype_itemsize(variant.dtypes[k])
        if folded >> k & 1 and variant.modes[k] != CONSTANT:
            if variant.modes[k] != UNIT or piece < 4 or piece > 16:
                return
            nbytes += piece * variant.units * variant.lanes
        elif is_fixed(variant, k, parameters):
            fixed += piece * variant.lanes
    if nbytes == 0 or nbytes > AHEAD_NBYTES:
        return
    variant.ahead = nbytes
    if fixed == 0 or fixed > AHEAD_NBYTES - nbytes or variant.cluster == 1:
        return
    variant.fixed = min(variant.units, (AHEAD_NBYTES - nbytes) // fixed)
    variant.ahead += variant.fixed * fixed
    for k in range(loads):
        if not folded >> k & 1 and is_fixed(variant, k, parameters):
            variant.modes[k] = FIXED


cdef bint is_fixed(const RowVariant* variant, int k,
                   const RowParameters* parameters) noexcept nogil:
    """Whether units of an operand can be copied, and are equal for all rows."""
    cdef int d, piece = variant.vector * dtype_itemsize(variant.dtypes[k])
    if variant.modes[k] != UNIT or piece < 4 or piece > 16:
        return False
    for d in range(variant.column_axes, variant.column_axes + variant.kept_axes):
        if parameters.axes[d].strides[k] != 0:
            return False
    return True


# The number of clusters that run at once; clusters of more than two leave multiprocessors idle.
cdef int64_t clusters_at_once(const RowVariant* variant, int multiprocessors) noexcept nogil:
    cdef int64_t blocks = max(1, multiprocessors)
    if variant.cluster > MOST_CLUSTER:
        blocks = blocks * 6 // 7
    elif variant.cluster > 2:
        blocks = blocks * 10 // 11
    return max(<int64_t>1, blocks // variant.cluster)


# Lanes across rows: the threads of a warp have neighbouring rows. Each fold has memory for all
# threads.
cdef void choose_across(RowVariant* variant, const RowParameters* parameters,
                        int folds) noexcept nogil:
    cdef int64_t threads = 1024 if folds <= 4 and not variant.is_double else 256
    cdef int64_t rows = min(32, power_above(parameters.axes[variant.column_axes].size))
    cdef int64_t lanes
    while folds * threads * (8 if variant.is_double else 4) > SHARED_NBYTES:
        threads //= 2
    lanes = min(threads // rows, power_above(ceil_divide(parameters.columns, 8)))
    variant.cluster, variant.loop = 1, 0
    while lanes < threads // rows and parameters.rows * lanes < BUSY:
        lanes *= 2
    variant.rows, variant.lanes = <int>rows, <int>lanes
    variant.units = <int>ceil_divide(parameters.columns, lanes)
    if variant.units > 16:
        variant.loop, variant.units = 1, 4


# Without folds all axes are equivalent: the innermost axis of the result has the columns, cut into
# parts in which every thread has a few loads in flight.
cdef void choose_map(RowFormula formula, const Operand* operands, RowVariant* variant,
                     RowParameters* parameters) noexcept nogil:
    cdef int64_t pieces, lanes, units
    cdef int k, axes = merge_axes(variant.count, operands, 0, operands[0].ndim, formula.loads,
                                  parameters.axes)
    variant.column_axes, variant.kept_axes, variant.cluster = 1, max(0, axes - 1), 1
    parameters.columns = product(parameters.axes, min(axes, 1))
    parameters.rows = product(parameters.axes + 1, variant.kept_axes)
    if axes == 0:
        parameters.axes[0].size = 1
        for k in range(variant.count):
            parameters.axes[0].strides[k] = 1
    choose_modes(variant, formula.loads, parameters)
    pieces = ceil_divide(parameters.columns, variant.vector)
    lanes = min(power_above(pieces), BLOCK_THREADS)
    # With wide loads of single runs, one for each thread keeps the memory busiest.
    units = 1 if variant.vector > 1 and variant.kept_axes == 0 else MAP_UNITS
    while units > 1 and (ceil_divide(pieces, lanes) < units or (
            parameters.rows * ceil_divide(pieces, lanes * units) * lanes < BUSY)):
        units //= 2
    variant.lanes, variant.units, variant.is_map = <int>lanes, <int>units, 1
    variant.rows = <int>(BLOCK_THREADS // lanes)
    parameters.period = ceil_divide(pieces, lanes * units)
    variant.full = parameters.columns == parameters.period * units * lanes * variant.vector


# Chooses the axes of the operands and the variant for them.
cdef void choose_variant(RowFormula formula, const Operand* operands, int row_ndim,
                         const DeviceFacts* facts, RowVariant* variant,
                         RowParameters* parameters) noexcept nogil:
    cdef int k, count = variant.count, kept_ndim = operands[0].ndim - row_ndim
    cdef int by = 0
    cdef Loads loads
    if formula.is_map:
        choose_map(formula, operands, variant, parameters)
        return
    variant.column_axes = merge_axes(count, operands, kept_ndim, operands[0].ndim, by,
                                     parameters.axes)
    parameters.columns = product(parameters.axes, variant.column_axes)
    if variant.column_axes == 0:
        variant.column_axes = 1
        parameters.axes[0].size = 1
        for k in range(count):
            parameters.axes[0].strides[k] = 1
    parameters.period = operands[0].shape[kept_ndim - 1] if kept_ndim else 1
    variant.kept_axes = merge_axes(count, operands, 0, kept_ndim, -1 if formula.has_row else by,
                                   parameters.axes + variant.column_axes)
    parameters.rows = product(parameters.axes + variant.column_axes, variant.kept_axes)
    variant.across = (
        variant.kept_axes > 0 and parameters.columns > 1
        and parameters.axes[variant.column_axes].strides[by] == 1
        and parameters.axes[0].strides[by] != 1)
    choose_modes(variant, formula.loads, parameters)
    if variant.across:
        choose_across(variant, parameters, formula.folds)
    else:
        count_loads(formula, variant, parameters, &loads)
        if choose_cached(formula, variant, parameters, &loads, facts):
            return
        choose_along(variant, parameters, formula.folds, &loads, facts)
    if facts.can_cluster:
        choose_ahead(variant, formula.loads, formula.folded, parameters)
    variant.full = not variant.loop and parameters.columns == (
        <int64_t>variant.units * variant.lanes * variant.cluster * variant.vector)
    variant.together = not variant.across and variant.full and loads_together(variant, &loads)


# Whether the last phase loads what only it needs, such as weights, for all of a row's units before
# it stores any. The loads of many units take registers that let more blocks overlap, so they come
# one by one where several warps share a row and a thread has 32 elements (layer_norm of 2,048
# float32 and of 16,384 bfloat16 .984 and .976 of the copy rate, together .978 and .957); but
# together in rows of one warp (rms_norm of 1,024 float32 .981, together .986), and where a block
# fills a multiprocessor (rms_norm of 32,768 float32 .939, together .987). Clusters have weights in
# shared memory.
cdef bint loads_together(const RowVariant* variant, const Loads* loads) noexcept nogil:
    if variant.ahead or variant.cluster > 1:
        return False
    if 2 * variant.units * variant.vector <= HELD >> variant.is_double:
        return True
    return loads.large == 1 and (
        variant.lanes <= 32 or (variant.lanes == MOST_LANES and variant.vector < 8))
