"""Row formulas on a device: merge the axes, choose a variant (choices.pxi), launch (row.cuh)."""

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
    MANY_ROWS = 132 * 16        # of 16 KiB or more, which the second cache does not hold
    WARP_PIECES = 256           # vectors of a row that one warp holds, 8 for each lane
    NARROW_PIECES = 512         # of a row above those that have two vectors for each lane
    LEAST_PIECES = 224          # of a block that has several of them
    WIDE_PIECES = 1024          # of a row that gets WIDE_LANES
    WIDE_LANES = 512
    CACHED_NBYTES = 128 << 10   # of the rows that multiprocessors read twice
    CACHING_NBYTES = 200 << 10  # shared memory where 256 KiB are shared memory and first cache

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
    int cached                  # loop: blocks of a multiprocessor whose rows stay in its cache
    int together                # operands that only the last phase needs are loaded together
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
        self.levels = len({self.formula.level[fold] for fold in self.formula.folds})
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


# How a row is read, as a number below 32.
cdef inline int form_of(const RowVariant* variant) noexcept nogil:
    if variant.is_map:
        return 10
    if variant.across:
        return 8 + variant.loop
    if variant.ahead:
        return 7
    return 11 + variant.cached if variant.loop else variant.together


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
    key = (key << 3 | log_of(variant.cluster)) << 5 | form_of(variant)
    key = (key << 1 | variant.full) << 5 | variant.fixed
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
        "loop": variant.loop, "cached": variant.cached, "together": variant.together,
        "map": variant.is_map, "full": variant.full,
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
