"""Attention in one kernel (attention.cuh), where tensor cores take the element type.

Few rows and many keys, as in decoding, leave most of a GPU idle. In that case the keys are cut
among blocks, by kernels of their own for up to 16 rows (few.pxi), and a second launch joins the
parts in a fixed order.
"""

cdef enum:
    MOST_SPLITS = 64
    BLOCKS = 264                # two for each multiprocessor of an H200
    LEAST_KEYS = 128            # of a split
    HOPPER = 90
    HOPPER_SHARED = 225 << 10   # of a block with heads of 128
    HOPPER_KEYS_32 = 1024       # the fewest for heads of 32 in many blocks
    # Bytes of keys and values that stay in the cache while the tiles of all heads take turns.
    HOPPER_CACHED = 16 << 20

cdef extern from "gputensor/blas/kernels/attention/attention.h" namespace "gputensor" nogil:
    cdef struct AttentionOperand:
        uint64_t ptr
        int64_t batch
        int64_t head
        int64_t row

    cdef struct AttentionParameters:
        AttentionOperand query
        AttentionOperand key
        AttentionOperand value
        AttentionOperand out
        uint64_t mask
        int64_t mask_batch
        int64_t mask_head
        int64_t mask_row
        int64_t mask_column
        uint64_t length
        int64_t length_batch
        uint64_t partial
        int32_t queries
        int32_t keys
        int32_t kept
        int32_t shared
        int32_t tiles
        int32_t splits
        int32_t size
        int32_t window
        int32_t is_causal
        int32_t is_long
        int32_t units
        float scale
        float cap

    cdef struct TiledAttentionParameters:       # an AttentionParameters, and:
        int32_t run
        int32_t paired
        int32_t rest
        int32_t begun
        int32_t earlier
        int32_t head
        Axis by_queries

    cdef struct TensorMap:
        uint64_t[16] words

    cdef struct MappedAttentionParameters:
        TensorMap key
        TensorMap value
        AttentionParameters common

    cdef struct JoinParameters:
        uint64_t partial
        AttentionOperand out
        int32_t queries
        int32_t kept
        int32_t shared
        int32_t splits
        int32_t size
        int32_t rows

cdef struct Form:               # a variant of the two kernels
    int dtype
    int head
    int warps
    int columns
    int mask                    # 0 none, 1 of bool, 2 of mask_type
    int mask_type
    int is_split
    int eights                  # of few rows: eights of rows, and steps under way
    int stages
    int cluster                 # blocks that join their parts themselves
    int blocks                  # of a multiprocessor that take units in turn, or 0

cdef KernelTable fused_kernels
cdef KernelTable hopper_kernels
cdef KernelTable join_kernels


cdef bint is_dense(const Operand* one) noexcept nogil:
    """Whether rows start at multiples of 16 bytes and their elements are neighbours."""
    cdef int axis
    if one.ptr % 16 or (one.strides[3] != 1 and one.shape[3] != 1):
        return False
    for axis in range(3):
        if one.shape[axis] > 1 and one.strides[axis] % 8:
            return False
    return True


cdef bint fused_fits(const Attention* given, int capability) noexcept nogil:
    cdef int64_t size = given.query.shape[3]
    if capability < 80 or not dtype_is_half(given.query.dtype) or size % 8 or size > 256:
        return False
    if given.value.shape[3] != size or given.window > 0x7fffffff:
        return False
    if (given.query.shape[1] * given.query.shape[2] > 0x7fffffff
            or given.key.shape[2] > 0x7ffffff0):
        return False
    if given.mask != NULL and given.mask.dtype != DT_BOOL and (
            dtype_kind(given.mask.dtype) != KIND_FLOAT):
        return False
    if given.length != NULL and given.length.dtype != DT_INT32 and given.length.dtype != DT_INT64:
        return False
    return (is_dense(given.query) and is_dense(given.key) and is_dense(given.value)
            and is_dense(given.out))


cdef void place(const Operand* given, AttentionOperand* out) noexcept nogil:
    out.ptr, out.batch = given.ptr, given.strides[0]
    out.head, out.row = given.strides[1], given.strides[2]


cdef int splits_of(int64_t units, int64_t keys) noexcept nogil:
    """Among how many blocks the keys of each tile are cut."""
    cdef int64_t splits = BLOCKS // units
    if splits > keys // LEAST_KEYS:
        splits = keys // LEAST_KEYS
    if splits > MOST_SPLITS:
        splits = MOST_SPLITS
    return <int>splits if splits > 1 else 1


cdef void choose_form(Form* form, const Attention* given, int64_t rows) noexcept nogil:
    """Rows of a block by warps of 16; tiles of keys that leave room for large heads."""
    form.dtype = given.query.dtype
    form.head = <int>((given.query.shape[3] + 15) // 16 * 16)
    form.columns = 32 if form.head > 128 else 64
    form.warps = 4 if form.head > 128 or rows <= 64 else 8
    if rows <= 16:
        form.warps = 1 if form.head <= 64 else 2
    form.mask = form.mask_type = form.is_split = 0
    if given.mask != NULL:
        form.mask = 1 if given.mask.dtype == DT_BOOL else 2
        form.mask_type = given.mask.dtype if form.mask == 2 else 0


# Few blocks, each alone on a multiprocessor, have fewer warps, and all keys in one step if these
# are few: 12 heads of 32, 128 queries and keys 4.35 -> 3.04 us, of 64 and 197 9.8 -> 8.1 (H200).
cdef void choose_alone(Form* form, int multiprocessors, int64_t heads, int64_t rows,
                       int64_t keys) noexcept nogil:
    if rows <= FEW_ROWS or form.head > 64 or keys >= 2 * LEAST_KEYS:
        return
    if heads * ((rows + 63) // 64) > multiprocessors:
        return
    form.warps = 4
    if LEAST_KEYS // 2 < keys <= LEAST_KEYS:
        form.columns = LEAST_KEYS


cdef void fill_parameters(AttentionParameters* p, const Attention* given) noexcept nogil:
    memset(p, 0, sizeof(p[0]))
    place(given.query, &p.query)
    place(given.key, &p.key)
    place(given.value, &p.value)
    place(given.out, &p.out)
    if given.mask != NULL:
        p.mask, p.mask_batch = given.mask.ptr, given.mask.strides[0]
        p.mask_head, p.mask_row = given.mask.strides[1], given.mask.strides[2]
        p.mask_column = given.mask.strides[3]
    if given.length != NULL:
        p.length, p.length_batch = given.length.ptr, given.length.strides[0]
        p.is_long = given.length.dtype == DT_INT64
    p.queries, p.keys = <int>given.query.shape[2], <int>given.key.shape[2]
    p.kept = <int>given.key.shape[1]
    p.shared = <int>(given.query.shape[1] // p.kept)
    p.size = <int>given.query.shape[3]
    if given.window < p.keys:           # otherwise it leaves out no key
        p.window = <int>given.window
    p.is_causal = given.is_causal
    p.scale, p.cap = <float>given.scale, <float>given.soft_cap


# For heads of 32, 64 and 128: the fewest keys of few rows or blocks; the microseconds of a block of
# 64 rows alone, and of each of its keys; those of attention.cuh with cut keys, of a thousand rows,
# and of a million scores. From 119 attentions of 4 to 96 heads and 24 to 1,000 rows on an H200, as
# graphs: of 12 heads of 128 and 512 queries and keys, 49 us by attention.cuh, 10.5 by wgmma.
cdef int* ALONE_KEYS = [256, 256, 96]
cdef double* ALONE_TIMES = [3.9, 4.0, 5.0]
cdef double* ALONE_KEY_TIMES = [0.0077, 0.0086, 0.0107]
cdef double* CUT_TIMES = [6.5, 7.0, 12.0]
cdef double* CUT_SCORE_TIMES = [1.2, 2.0, 3.2]
cdef double CUT_ROW_TIME = 1.0


# Whether wgmma is faster for these rows of each head than attention.cuh, whose smaller tiles and
# cut keys fill the device.
cdef bint hopper_wins(int size, int64_t heads, int64_t rows, int64_t keys,
                      int count) noexcept nogil:
    cdef int kind = 0 if size == 32 else 1 if size == 64 else 2
    cdef int64_t blocks = heads * ((rows + 63) // 64)
    cdef double cut
    if keys < ALONE_KEYS[kind]:
        return size > 32 and rows >= 128 and 2 * heads * ((rows + 127) // 128) >= count
    if blocks >= count:
        return size > 32 or keys >= HOPPER_KEYS_32 or blocks < 4 * count
    cut = CUT_TIMES[kind] + 1e-3 * heads * rows * (
        CUT_ROW_TIME + 1e-3 * keys * CUT_SCORE_TIMES[kind])
    return ALONE_TIMES[kind] + ALONE_KEY_TIMES[kind] * keys < cut


# The microseconds of an attention by warpgroups of a block, 1 to 4: once, for each tile of a
# multiprocessor, and for each key of such a tile. Those of heads of 64 are from 12 attentions of
# 256 to 1,024 keys with up to three rounds of tiles on an H200, but keys of three and four groups
# cost 10 % more and 7 % less than there: under full load four groups are the best of many rounds.
# Those of heads of 128 are from the rates of many rounds.
cdef double* START_TIMES_64 = [3.65, 3.6, 4.0, 5.6]
cdef double* TILE_TIMES_64 = [0.6, 1.55, 1.9, 2.15]
cdef double* KEY_TIMES_64 = [0.00575, 0.0087, 0.0125, 0.0161]
cdef double* START_TIMES_128 = [4.0, 5.0]
cdef double* TILE_TIMES_128 = [1.25, 2.0]
cdef double* KEY_TIMES_128 = [0.0078, 0.0125]


cdef inline int hopper_columns(int groups) noexcept nogil:
    """Keys of a step: few where a thread has few registers."""
    return 64 if groups == 1 or groups == 4 else 128


cdef inline int hopper_blocks(int size, int groups) noexcept nogil:
    """Blocks of a multiprocessor, as in programs.attention_wgmma."""
    return 1 if groups > 1 else 4 if size == 32 else 2


cdef double hopper_time(const Attention* given, int64_t rows, int groups, int count) noexcept nogil:
    """The time of this attention on `count` multiprocessors by blocks of `groups` warpgroups."""
    cdef bint is_64 = given.query.shape[3] == 64
    cdef int64_t keys = given.key.shape[2], queries = min(given.query.shape[2], keys)
    cdef int64_t tiles = given.query.shape[0] * given.key.shape[1] * (
        (rows + 64 * groups - 1) // (64 * groups))
    cdef double each = (tiles + count - 1) // count, all_keys = each * keys, longest
    # Tiles of equal length take whole rounds. With a causal mask, long and short ones fill up a
    # round, but no multiprocessor has less than the longest, and each of its blocks may have one.
    if given.is_causal:
        longest = min(each, <double>hopper_blocks(<int>given.query.shape[3], groups)) * keys
        each = max(1.0, <double>tiles / count)
        all_keys = max(longest, each * (keys - max(queries - 64 * groups, <int64_t>0) / 2.0))
    return ((START_TIMES_64 if is_64 else START_TIMES_128)[groups - 1]
            + (TILE_TIMES_64 if is_64 else TILE_TIMES_128)[groups - 1] * each
            + (KEY_TIMES_64 if is_64 else KEY_TIMES_128)[groups - 1] * all_keys)


cdef int hopper_groups(int device, const Attention* given, int64_t rows) except -1:
    """Warpgroups of a block, of 64 rows each, where wgmma takes this attention; otherwise 0."""
    cdef int64_t heads, size = given.query.shape[3]
    cdef int groups, best = 1, count = device_facts(device).multiprocessors
    cdef double time, least
    if device_facts(device).capability != HOPPER or given.mask != NULL or given.scale <= 0:
        return 0
    if device_facts(device).shared_nbytes <= HOPPER_SHARED or size not in (32, 64, 128):
        return 0
    heads = given.query.shape[0] * given.key.shape[1]
    if rows <= FEW_ROWS or not hopper_wins(<int>size, heads, rows, given.key.shape[2], count):
        return 0
    if size == 32:
        return 1
    least = hopper_time(given, rows, 1, count)
    for groups in range(2, 5 if size == 64 else 3):
        time = hopper_time(given, rows, groups, count)
        if time < least:
            best, least = groups, time
    return best


cdef inline int hopper_places(const Form* form) noexcept nogil:
    """Places of keys and of values together, as in programs.attention_wgmma."""
    return 5 if form.head == 128 else 8


cdef object hopper_program(const void* variant):
    cdef const Form* form = <const Form*>variant
    return programs.attention_wgmma(DTYPES[form.dtype].name, form.head, form.warps // 4,
                                    form.columns)


cdef void order_tiles(TiledAttentionParameters* to, const AttentionParameters* p, int64_t rows,
                      int64_t blocks, int size) noexcept nogil:
    """Set the order of the tiles of `rows` rows among the blocks (`number_of` in the kernel)."""
    cdef Layout divisors
    cdef int64_t heads, first, half = 1, whole = 1
    memcpy(to, p, sizeof(p[0]))
    to.run = 0
    if p.is_causal and not p.window:
        to.run = p.tiles // p.shared if p.shared > 1 and p.queries % rows == 0 else p.tiles
        if to.run == 1:
            to.run = 0
    to.paired = to.rest = to.begun = to.earlier = to.head = 0
    if to.run:
        half, heads = (to.run + 1) // 2, p.units // to.run
        # With many more keys than queries all tiles have about as many steps.
        if 4 * (p.units // p.tiles) * <int64_t>p.keys * size > HOPPER_CACHED and (
                p.keys <= 2 * <int64_t>p.queries):
            to.paired = <int>max(<int64_t>0, 2 * (heads * half // blocks - 1))
        first = to.paired // 2 * blocks
        to.rest, to.head, to.begun = <int>(heads * half - first), <int>(first // half), (
            <int>(first % half))
        whole = heads - 1 - to.head
        to.earlier = <int>(to.begun * whole)
    memset(&divisors, 0, sizeof(divisors))
    divisors.ndim = 6
    divisors.shape[0], divisors.shape[1], divisors.shape[2] = p.queries, p.tiles, p.kept
    divisors.shape[3], divisors.shape[4], divisors.shape[5] = half, max(whole, 1), whole + 1
    layout_axes(&divisors, &to.by_queries)


cdef int hopper_launch(int device, uint64_t stream, AttentionParameters* p, const Form* form,
                       int64_t batch) except -1:
    cdef Launch launch
    cdef TiledAttentionParameters tiled
    cdef int64_t blocks, rows = 16 * form.warps
    cdef uint64_t key = (form.head << 8 | form.columns) << 5 | form.warps
    p.tiles = <int>((<int64_t>p.queries * p.shared + rows - 1) // rows)
    p.splits = 1
    p.units = <int32_t>(batch * p.kept * p.tiles)
    # Every block stays on its multiprocessor and takes one tile after the other.
    blocks = device_facts(device).multiprocessors * hopper_blocks(form.head, form.warps // 4)
    blocks = min(blocks, p.units)
    order_tiles(&tiled, p, rows, blocks, form.head)
    launch_init(&launch, device, stream, <uint32_t>blocks, 32 * form.warps + 128, &tiled,
                sizeof(tiled))
    launch.shared_nbytes = launch.most_shared_nbytes = (
        2 * rows + hopper_places(form) * form.columns) * form.head * 2
    return launch_kernel(
        kernel_of(&hopper_kernels, key << 5 | form.dtype, hopper_program, form), &launch)


cdef int fused_launch(int device, uint64_t stream, const Attention* given) except -1:
    cdef AttentionParameters p
    cdef Temporaries temporaries
    cdef Form form
    cdef int groups
    cdef int64_t rows, units, batch = given.query.shape[0]
    cdef uint64_t partial = 0
    fill_parameters(&p, given)
    rows = <int64_t>p.queries * p.shared
    choose_form(&form, given, rows)
    groups = hopper_groups(device, given, rows)
    if groups:
        form.warps, form.columns = 4 * groups, hopper_columns(groups)
        return hopper_launch(device, stream, &p, &form, batch)
    if rows <= FEW_ROWS and form.head <= FEW_HEAD and p.keys >= FEW_LEAST:
        return few_launch(device, stream, &p, &form, given)
    choose_alone(&form, device_facts(device).multiprocessors, batch * p.kept, rows, p.keys)
    p.tiles = <int>((rows + 16 * form.warps - 1) // (16 * form.warps))
    units = batch * p.kept * p.tiles
    p.splits = splits_of(units, p.keys)
    temporaries_init(&temporaries, device, stream)
    try:
        if p.splits > 1 and not take_memory_if_any(
                &temporaries, units * p.splits * 16 * form.warps * (form.head + 2) * 4,
                &partial):
            p.splits = 1
        p.partial = partial
        form.is_split = p.splits > 1
        launch_tiles(device, stream, &p, &form, units)
        if form.is_split:
            launch_join(device, stream, &p, &form, batch, 16 * form.warps)
    finally:
        temporaries_release(&temporaries)
    return 0


cdef object tiles_program(const void* variant):
    cdef const Form* form = <const Form*>variant
    return programs.attention(
        DTYPES[form.dtype].name, form.head, form.warps, form.columns,
        None if form.mask == 0 else DTYPES[form.mask_type].name, bool(form.is_split))


cdef object join_program(const void* variant):
    cdef const Form* form = <const Form*>variant
    return programs.join(DTYPES[form.dtype].name, form.head, form.columns, form.stages)


cdef int launch_tiles(int device, uint64_t stream, const AttentionParameters* p,
                      const Form* form, int64_t units) except -1:
    cdef Launch launch
    cdef uint64_t key = form.head << 8 | form.columns
    key = (key << 5 | form.warps) << 2 | form.mask
    key = ((key << 5 | form.mask_type) << 5 | form.dtype) << 1 | form.is_split
    launch_init(&launch, device, stream, <uint32_t>(units * p.splits),
                32 * form.warps, p, sizeof(p[0]))
    launch.shared_nbytes = form.columns * (form.head + 8) * 8
    if form.is_split:
        launch.shared_nbytes += 32 * form.warps * (form.head + 8)
    launch.most_shared_nbytes = launch.shared_nbytes
    return launch_kernel(kernel_of(&fused_kernels, key, tiles_program, form), &launch)


cdef int launch_join(int device, uint64_t stream, const AttentionParameters* p, Form* form,
                     int64_t batch, int rows) except -1:
    """Join the parts of tiles of `rows` rows."""
    cdef JoinParameters join
    cdef Launch launch
    cdef int together, width, most = 512 // max(form.head, 32)
    cdef uint64_t key
    # A thread takes four splits, or more if the block has no room for more threads; the threads of
    # a row are whole warps, as in programs.join_rows.
    form.columns, form.stages = rows, 1
    while form.stages < most and 4 * form.stages < p.splits:
        form.stages *= 2
    form.stages = min(form.stages, most)
    width = (form.head // 2 * form.stages + 31) // 32 * 32
    together = max(1, 256 // width)
    key = ((<uint64_t>form.head << 8 | rows) << 5 | form.stages) << 5 | form.dtype
    memset(&join, 0, sizeof(join))
    join.partial, join.out = p.partial, p.out
    join.queries, join.kept, join.shared = p.queries, p.kept, p.shared
    join.splits, join.size, join.rows = p.splits, p.size, p.tiles * rows
    launch_init(&launch, device, stream, <uint32_t>(
        batch * p.kept * ((p.queries * p.shared + together - 1) // together)), together * width,
        &join, sizeof(join))
    return launch_kernel(kernel_of(&join_kernels, key, join_program, form), &launch)
