"""Row formulas on a device: merge the axes, choose lanes and units, launch (see row.cuh).

Rows whose columns are neighbours in memory are read in vectors by lanes along the columns; rows
whose elements of one column are neighbours are read by lanes across the rows. A row stays in the
registers of one block up to 32,768 elements of float32, then in the registers of a cluster; longer
rows are read again in each phase.
"""

cdef enum:
    UNIT = 0
    STRIDED = 1
    CONSTANT = 2
    FIXED = 3                   # UNIT, equal for all rows, and in shared memory
    ROW_OPERANDS = 12
    MOST_AXES = 16
    MOST_LANES = 1024
    BLOCK_THREADS = 256
    SHARED_NBYTES = 48 << 10    # of a block, without a request for more
    MOST_CLUSTER = 8
    WIDE_CLUSTER = 16           # more than every GPU of compute capability 9.0 can place
    WIDE_DEVICE = 132           # multiprocessors of those that can
    AHEAD_NBYTES = 208 << 10    # of a block, for rows that are fetched ahead
    CLUSTER_FOLDS = 4           # whose values, of each warp of a cluster, fit beside them
    MAP_UNITS = 4               # loads of a thread in flight, of each operand without folds
    HELD = 32                   # elements of a row in the registers of a thread
    BUSY_BLOCKS = 132           # of clusters, that keep a GPU of 132 multiprocessors busy
    BUSY = 132 * 1024           # threads of other rows, that do so
    WARP_ROWS = 132 * 8         # rows of a warp each that do so as well as rows of several warps

cdef extern from "gputensor/_kernels/cuda/row.h" namespace "gputensor" nogil:
    cdef struct RowAxis:
        int64_t size
        int64_t[12] strides

    cdef struct RowParameters:
        uint64_t[12] operands
        int64_t rows
        int64_t columns
        int64_t period
        RowAxis[16] axes

    unsigned row_nbytes(int axes)

cdef struct RowVariant:
    void* formula               # borrowed
    unsigned char[12] dtypes
    unsigned char[12] modes
    int count
    int vector
    int units
    int lanes
    int rows
    int across
    int cluster
    int loop
    int is_map
    int full
    int ahead                   # bytes of shared memory of a block; 0: rows are not fetched ahead
    int fixed                   # units of each FIXED operand in shared memory
    int column_axes
    int kept_axes
    int is_double

cdef object numbers = itertools.count(1)


cdef class RowFormula:
    """A formula with its kernels.

    >>> RowFormula([("fold", "sum", ("load", 0))]).loads
    1
    """

    def __init__(self, trees):
        self.formula = formula_module.formula(trees)
        self.loads = self.formula.loads
        row_results = self.formula.row_results()
        self.results = len(row_results)
        self.row_results = sum([1 << k for k in range(self.results) if row_results[k]])
        self.number = next(numbers)
        self.folds = len(self.formula.folds)
        self.folded = row_program.folded_loads(self.formula)
        self.has_row = self.formula.has_row
        self.is_map = self.formula.is_map


cdef inline int64_t magnitude(int64_t x) noexcept nogil:
    return -x if x < 0 else x


# The axes [first, last) of the operands: axes of one element are dropped, the others are sorted by
# the strides of operand `by`, the smallest first (`by` below 0: the last axis first), and
# neighbours that are one axis in every operand are merged.
cdef int merge_axes(int count, const Operand* operands, int first, int last, int by,
                    RowAxis* axes) noexcept nogil:
    cdef int n = 0, merged = 0, i, j, k
    cdef RowAxis moved
    cdef bint is_one
    memset(&moved, 0, sizeof(moved))    # launches are compared, byte by byte
    for i in range(first, last):
        if operands[0].shape[i] == 1:
            continue
        moved.size = operands[0].shape[i]
        for k in range(count):
            moved.strides[k] = operands[k].strides[i]
        j = n
        while j > 0 and (by < 0 or (
                magnitude(axes[j - 1].strides[by]) >= magnitude(moved.strides[by]))):
            axes[j] = axes[j - 1]
            j -= 1
        axes[j] = moved
        n += 1
    for i in range(n):
        is_one = merged > 0
        for k in range(count):
            if is_one and axes[i].strides[k] != axes[merged - 1].strides[k] * axes[merged - 1].size:
                is_one = False
        if is_one:
            axes[merged - 1].size *= axes[i].size
        else:
            axes[merged] = axes[i]
            merged += 1
    return merged


cdef inline int64_t product(const RowAxis* axes, int count) noexcept nogil:
    cdef int64_t result = 1
    cdef int i
    for i in range(count):
        result *= axes[i].size
    return result


cdef inline int64_t ceil_divide(int64_t a, int64_t b) noexcept nogil:
    return (a + b - 1) // b


cdef inline int64_t power_above(int64_t at_least) noexcept nogil:
    cdef int64_t x = 1
    while x < at_least:
        x *= 2
    return x


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


# Lanes along the columns; a row is held by one block or by a cluster of blocks, or is read again. A
# thread has 32 elements: on an H200 half as many gave .61 of the copy rate for rows of 16,384
# bfloat16, 32 gave .98 (layer_norm), since more blocks then overlap their loads with others' folds.
# `weights`: operands that choose_ahead can keep.
cdef void choose_along(RowVariant* variant, const RowParameters* parameters, int folds, int weights,
                       const DeviceFacts* facts) noexcept nogil:
    cdef int64_t pieces = ceil_divide(parameters.columns, variant.vector)
    cdef int64_t most = max(1, (HELD >> variant.is_double) // variant.vector)
    cdef int64_t lanes = min(power_above(ceil_divide(pieces, most)), MOST_LANES)
    cdef int64_t whole = MOST_LANES * most, largest = MOST_CLUSTER
    cdef int64_t halves = ceil_divide(2 * pieces, whole)
    cdef bint can_cluster = facts.can_cluster and folds <= CLUSTER_FOLDS and pieces >= whole
    cdef bint by_halves = can_cluster and has_half_blocks(
        variant, parameters.rows, halves, weights, facts)
    variant.cluster, variant.loop = 1, 0
    # Two weights do not fit beside a whole block's rows.
    can_cluster = can_cluster and (pieces > whole or (by_halves and weights > 1))
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
    if variant.units > most:
        variant.loop, variant.cluster, variant.lanes = 1, 1, MOST_LANES
        variant.units = max(1, (HELD >> variant.is_double) // variant.vector)


# Whether many rows of float32 get blocks of 512 threads, `halves` for each row, which have room
# for two weights beside the next row. Measured on an H200, 1,024 and 512 threads: softmax of
# 65,536 and 131,072 columns .94 .92 and .96 .96 of the copy rate; rms_norm .90 .86 and .91 .89;
# layer_norm of 32,768, 131,072 and 262,144 columns .88 .88 .76 and .91 .94 .92. Without two
# weights, 512 threads are slower at 32,768 (.91 for .99) and at 262,144 columns, where they need
# clusters of 16 (softmax .86 for .93). 16-bit floats always have blocks of 512 threads in
# clusters, but of twice as many registers: softmax of 65,536, 131,072 and 262,144 columns .90 .94
# .95 for .89 .93 .94; two blocks of a multiprocessor are no better.
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
    cdef int by = 0, weights = 0
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
        for k in range(formula.loads):
            weights += not formula.folded >> k & 1 and is_fixed(variant, k, parameters)
        choose_along(variant, parameters, formula.folds, weights, facts)
    if facts.can_cluster:
        choose_ahead(variant, formula.loads, formula.folded, parameters)
    variant.full = not variant.loop and parameters.columns == (
        <int64_t>variant.units * variant.lanes * variant.cluster * variant.vector)


cdef int run_formula(RowFormula formula, int device, uint64_t stream, Operand* operands,
                     int row_ndim) except -1 nogil:
    cdef RowParameters parameters
    cdef RowVariant variant
    cdef int k
    cdef int64_t blocks
    cdef Launch launch
    cdef RowPlan* plan
    cdef void* kernel
    if device_kind(device) == DEVICE_HOST:
        return formula_on_host(formula, device, stream, operands, row_ndim)
    plan = place_of_plan(formula, operands)
    if plan != NULL and has_plan(plan, formula, known_facts(device), operands, row_ndim):
        return launch_again(plan, device, stream, formula.loads + formula.results, operands)
    memset(&variant, 0, sizeof(variant))
    memset(&parameters, 0, sizeof(parameters))
    variant.formula, variant.count = <void*>formula, formula.loads + formula.results
    for k in range(variant.count):
        parameters.operands[k] = operands[k].ptr
        variant.dtypes[k] = operands[k].dtype
        variant.is_double |= operands[k].dtype == DT_FLOAT64
    choose_variant(formula, operands, row_ndim, known_facts(device), &variant, &parameters)
    blocks = parameters.rows * (parameters.period if variant.is_map else 1)
    blocks = ceil_divide(blocks, variant.rows)
    if variant.ahead:
        blocks = min(blocks, clusters_at_once(&variant, known_facts(device).multiprocessors))
    blocks *= variant.cluster
    if blocks > 0x7fffffff:
        raise_for_rows(parameters.rows)
    launch_init(&launch, device, stream, <uint32_t>blocks,
                variant.rows if variant.across else variant.lanes, &parameters,
                row_nbytes(variant.column_axes + variant.kept_axes))
    launch.block[1] = variant.lanes if variant.across else variant.rows
    launch.shared_nbytes = launch.most_shared_nbytes = variant.ahead
    kernel = variant_kernel(formula, &variant)
    if plan != NULL and variant.column_axes + variant.kept_axes <= PLAN_AXES:
        keep_plan(plan, formula, known_facts(device), operands, row_ndim)
        keep_launch(plan, kernel, &launch)
    return launch_kernel(kernel, &launch)


cdef int formula_on_host(RowFormula formula, int device, uint64_t stream, Operand* operands,
                         int row_ndim) except -1 with gil:
    cdef int k, count = formula.loads + formula.results
    return host_call(device, stream, FORMULA_CALL, (
        formula.formula.results, row_ndim,
        *[call_argument(device, &operands[k]) for k in range(formula.loads, count)],
        *[call_argument(device, &operands[k]) for k in range(formula.loads)]))


cdef int raise_for_rows(int64_t rows) except -1 with gil:
    raise argument_error(ValueError, "formula: rows", rows, "fewer than 2**31 blocks of them")


cdef inline int log_of(int power) noexcept nogil:
    cdef int bits = 0
    while power > 1 << bits:
        bits += 1
    return bits


# Two integers identify a variant of a formula: its dtypes, and everything else.
cdef void* variant_kernel(RowFormula formula, const RowVariant* variant) except NULL nogil:
    cdef uint64_t dtypes = 0, key = 0
    cdef int k
    cdef void* table
    for k in range(variant.count):
        dtypes = dtypes << 5 | variant.dtypes[k]
        key = key << 2 | variant.modes[k]
    key = (key << 6 | variant.units) << 2 | log_of(variant.vector)
    key = (key << 4 | log_of(variant.lanes)) << 4 | log_of(variant.rows)
    key = (key << 3 | log_of(variant.cluster)) << 1 | variant.across
    key = ((key << 1 | variant.loop) << 1 | variant.is_map) << 1 | variant.full
    key = (key << 1 | (variant.ahead > 0)) << 5 | variant.fixed
    key = (key << 5 | variant.column_axes) << 5 | variant.kept_axes
    table = formula.tables.find(dtypes)
    if table == NULL:
        table = add_table(formula, dtypes)
    return kernel_of(<KernelTable*>table, key, variant_program, variant)


cdef void* add_table(RowFormula formula, uint64_t dtypes) noexcept with gil:
    cdef void* found = formula.tables.find(dtypes)
    if found == NULL:           # otherwise another thread has added it
        found = new KernelTable()
        formula.tables.insert(dtypes, found)
    return found


cdef object variant_program(const void* variant):
    cdef RowFormula formula = <RowFormula>(<const RowVariant*>variant).formula
    return row_program.program(formula.formula, described(<const RowVariant*>variant))


cdef dict described(const RowVariant* variant):
    """A variant as row_program takes it."""
    return {
        "dtypes": tuple([variant.dtypes[k] for k in range(variant.count)]),
        "modes": tuple([variant.modes[k] for k in range(variant.count)]),
        "vector": variant.vector, "units": variant.units, "lanes": variant.lanes,
        "rows": variant.rows, "across": variant.across, "cluster": variant.cluster,
        "loop": variant.loop, "map": variant.is_map, "full": variant.full,
        "ahead": int(variant.ahead > 0), "fixed": variant.fixed,
        "column_axes": variant.column_axes,
        "kept_axes": variant.kept_axes, "is_double": bool(variant.is_double),
    }


cdef dict known = {}        # Formula -> RowFormula, for the door


def _door(int device, uint64_t stream, tuple arguments):
    cdef Operand[12] operands
    cdef int k
    formula = formula_module.formula(arguments[0])
    cdef RowFormula made = known.get(formula)
    if made is None:
        made = known.setdefault(formula, RowFormula(arguments[0]))
    for k in range(made.loads + made.results):
        operands[k] = (<CallOperand?>arguments[2 + (k + made.results) % (
            made.loads + made.results)]).c
    run_formula(made, device, stream, operands, arguments[1])


cdef object FORMULA_CALL = bind("formula", host_formula.run, _door)
