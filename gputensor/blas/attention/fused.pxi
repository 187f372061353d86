"""Attention in one kernel (attention.cuh), where tensor cores take the element type.

Few rows and many keys, as in decoding, leave most of a GPU idle: then the keys are cut among blocks
and a second launch joins their parts in a fixed order.
"""

cdef enum:
    MOST_SPLITS = 64
    BLOCKS = 264                # two for each multiprocessor of an H200
    LEAST_KEYS = 256            # of a split

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
        float scale
        float cap

    cdef struct JoinParameters:
        uint64_t partial
        AttentionOperand out
        int32_t queries
        int32_t kept
        int32_t shared
        int32_t splits
        int32_t size
        int32_t rows

cdef KernelTable fused_kernels = KernelTable()


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


cdef int fused_launch(int device, uint64_t stream, const Attention* given) except -1:
    cdef AttentionParameters p
    cdef Temporaries temporaries
    cdef int64_t batch = given.query.shape[0], rows, units, size = given.query.shape[3]
    cdef int head = <int>((size + 15) // 16 * 16)
    cdef int warps = 4 if head > 128 else 8
    cdef int columns = 32 if head > 128 else 64
    cdef int mask = 0 if given.mask == NULL else 1 if given.mask.dtype == DT_BOOL else 2
    cdef int mask_type = given.mask.dtype if mask == 2 else 0
    memset(&p, 0, sizeof(p))
    place(given.query, &p.query)
    place(given.key, &p.key)
    place(given.value, &p.value)
    place(given.out, &p.out)
    if given.mask != NULL:
        p.mask, p.mask_batch, p.mask_head = (
            given.mask.ptr, given.mask.strides[0], given.mask.strides[1])
        p.mask_row, p.mask_column = given.mask.strides[2], given.mask.strides[3]
    if given.length != NULL:
        p.length, p.length_batch = given.length.ptr, given.length.strides[0]
        p.is_long = given.length.dtype == DT_INT64
    p.queries, p.keys = <int>given.query.shape[2], <int>given.key.shape[2]
    p.kept = <int>given.key.shape[1]
    p.shared = <int>(given.query.shape[1] // p.kept)
    rows = <int64_t>p.queries * p.shared
    if rows <= 64 and head <= 128:
        warps = 4
    if rows <= 16:
        warps = 1 if head <= 64 else 2
    p.tiles = <int>((rows + 16 * warps - 1) // (16 * warps))
    p.size, p.window, p.is_causal = <int>size, <int>given.window, given.is_causal
    p.scale, p.cap = <float>given.scale, <float>given.soft_cap
    units = batch * p.kept * p.tiles
    p.splits = splits_of(units, p.keys)
    temporaries_init(&temporaries, device, stream)
    try:
        if p.splits > 1 and not take_memory_if_any(
                &temporaries, units * p.splits * 16 * warps * (head + 2) * 4, &p.partial):
            p.splits = 1
        launch_tiles(device, stream, &p, given.query.dtype, (head, warps, columns, mask,
                                                             mask_type), units)
        if p.splits > 1:
            launch_join(device, stream, &p, given.query.dtype, (head, warps), batch)
    finally:
        temporaries_release(&temporaries)
    return 0


cdef int launch_tiles(int device, uint64_t stream, const AttentionParameters* p, int dtype,
                      tuple form, int64_t units) except -1:
    cdef int head, warps, columns, mask, mask_type
    head, warps, columns, mask, mask_type = form
    cdef int shared_nbytes = columns * (head + 8) * 8
    cdef uint64_t key = (((head << 5 | warps) << 8 | columns) << 2 | mask) << 5 | mask_type
    key = (key << 5 | dtype) << 1 | (p.splits > 1)
    cdef void* found = kernel_find(fused_kernels, key)
    if found == NULL:
        found = fused_kernels.add(key, programs.attention(
            DTYPES[dtype].name, head, warps, columns, mask,
            DTYPES[mask_type].name if mask == 2 else None, bool(p.splits > 1)))
    return launch_kernel(device, stream, kernel_function(<Kernel>found, device, shared_nbytes),
                         blocks_in_line(units * p.splits, 32 * warps, shared_nbytes), p,
                         sizeof(p[0]))


cdef int launch_join(int device, uint64_t stream, const AttentionParameters* p, int dtype,
                     tuple form, int64_t batch) except -1:
    cdef JoinParameters join
    cdef int head, warps
    head, warps = form
    cdef uint64_t key = 1ull << 60 | head << 16 | warps << 8 | dtype
    cdef void* found = kernel_find(fused_kernels, key)
    memset(&join, 0, sizeof(join))
    join.partial, join.out = p.partial, p.out
    join.queries, join.kept, join.shared = p.queries, p.kept, p.shared
    join.splits, join.size, join.rows = p.splits, p.size, p.tiles * 16 * warps
    if found == NULL:
        found = fused_kernels.add(key, programs.join(DTYPES[dtype].name, head, 16 * warps))
    return launch_kernel(device, stream, kernel_function(<Kernel>found, device),
                         blocks_in_line(batch * p.kept * join.rows, head // 2), &join,
                         sizeof(join))
