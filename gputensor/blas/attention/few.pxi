"""Attention of few rows: attention_few.cuh, or few_mapped.cuh for very many keys on Hopper."""

cdef enum:
    FEW_ROWS = 16               # of attention_few.cuh
    FEW_HEAD = 128
    FEW_WARPS = 4
    FEW_KEYS = 16 * FEW_WARPS   # of a block's step, and the fewest of a split
    FEW_LEAST = 256             # keys from which few rows have their own kernel
    # few_mapped.cuh: keys of all heads from which it is used, steps under way of a block that has a
    # multiprocessor to itself or shares it, and the most splits that a cluster joins.
    MAPPED_LEAST = 1 << 15
    MAPPED_ALONE = 4
    MAPPED_SHARED = 3
    MAPPED_CLUSTER = 4
    MAPPED_ROOM = 200 << 10     # of shared memory, for two blocks
    MAPPED_BLOCKS = 2           # of a multiprocessor that stay and take units in turn

cdef KernelTable few_kernels
cdef KernelTable mapped_kernels


cdef int64_t few_nbytes(const Form* form) noexcept nogil:
    """Shared memory of a block of attention_few.cuh."""
    return FEW_KEYS * form.stages * 2 * (2 * form.head + 16)


cdef int64_t mapped_step_nbytes(const Form* form) noexcept nogil:
    """Shared memory of a step of few_mapped.cuh: its keys and values, and two barriers."""
    return FEW_KEYS * form.head * 4 + 16


cdef int64_t mapped_lines_nbytes(const Form* form) noexcept nogil:
    """Shared memory for the sums of the warps, where the next keys have the place of the last."""
    return 8 * form.eights * FEW_WARPS * (form.head + 4) * 4 if form.blocks else 0


cdef int few_splits(Form* form, const DeviceFacts* facts, int64_t units,
                    int64_t keys) noexcept nogil:
    """Choose the stages, and return among how many blocks the keys of each unit are cut."""
    cdef int64_t blocks, splits, steps
    form.stages = 3 if facts.shared_nbytes > 128 << 10 else 2
    blocks = facts.shared_nbytes // (few_nbytes(form) + 1024)
    splits = (2 if blocks > 1 else 1) * facts.multiprocessors // units
    splits = max(1, min(splits, min(MOST_SPLITS, keys // FEW_KEYS)))
    # As many as have equally many steps.
    steps = (keys + FEW_KEYS - 1) // FEW_KEYS
    return <int>((steps + (steps + splits - 1) // splits - 1) // ((steps + splits - 1) // splits))


cdef bint mapped_splits(Form* form, const DeviceFacts* facts, int64_t units, int64_t keys,
                        int32_t* splits) noexcept nogil:
    """Choose the form of few_mapped.cuh and among how many blocks the keys are cut.

    Returns False where attention_few.cuh takes less time. A block with a multiprocessor to itself
    begins and ends less often; where that leaves many of them idle, two share one. Not all clusters
    of more than two blocks find multiprocessors of their own, so these blocks can share one too.
    With more units than two blocks of each multiprocessor, these blocks stay and take them in turn.
    """
    cdef int64_t count = facts.multiprocessors
    if facts.capability != HOPPER or facts.is_phantom or facts.shared_nbytes < MAPPED_ROOM:
        return False
    if form.head not in (64, 128) or units * keys < MAPPED_LEAST or not has_tensor_maps():
        return False
    form.stages, form.blocks = MAPPED_ALONE, 0
    if count // units * units * 10 < 9 * count:
        form.stages = MAPPED_SHARED
        count *= 2
    splits[0] = <int32_t>max(1, min(count // units, min(MOST_SPLITS, keys // FEW_KEYS)))
    form.cluster = splits[0] if splits[0] <= MAPPED_CLUSTER else 1
    if form.cluster > 2:
        form.stages = MAPPED_SHARED
    if units > MAPPED_BLOCKS * facts.multiprocessors:
        form.blocks = MAPPED_BLOCKS
        form.stages = <int>((facts.shared_nbytes // MAPPED_BLOCKS - 1024
                             - mapped_lines_nbytes(form)) // mapped_step_nbytes(form))
    return True


cdef bint map_operand(uint64_t* words, const Operand* given) noexcept nogil:
    """Encode the map of keys or values, whose boxes are a step of a head of a sequence."""
    cdef MappedTensor tensor
    cdef int axis, place
    memset(&tensor, 0, sizeof(tensor))
    tensor.ptr, tensor.is_bfloat, tensor.axes = given.ptr, given.dtype == DT_BFLOAT16, 4
    tensor.is_read_once = True
    for axis in range(4):
        place = 3 - axis        # batch, heads, keys, elements in reverse
        tensor.extents[axis] = given.shape[place]
        tensor.strides[axis] = given.strides[place]
        tensor.box[axis] = 1
    tensor.box[0], tensor.box[1] = 64, FEW_KEYS
    return map_tiles(words, &tensor)


cdef int few_launch(int device, uint64_t stream, AttentionParameters* p, Form* form,
                    const Attention* given) except -1:
    """Attention of few rows."""
    cdef MappedAttentionParameters mapped
    cdef Temporaries temporaries
    cdef int64_t batch = given.query.shape[0], units = batch * p.kept
    cdef uint64_t partial = 0
    cdef bint is_mapped
    memset(&mapped, 0, sizeof(mapped))
    form.eights = 1 if p.queries * p.shared <= 8 else 2
    is_mapped = (
        mapped_splits(form, device_facts(device), units, p.keys, &p.splits)
        and map_operand(<uint64_t*>mapped.key.words, given.key)
        and map_operand(<uint64_t*>mapped.value.words, given.value))
    p.tiles, p.units = 1, <int32_t>units
    if not is_mapped:
        form.cluster, form.blocks = 1, 0
        p.splits = few_splits(form, device_facts(device), units, p.keys)
    temporaries_init(&temporaries, device, stream)
    try:
        if form.cluster == 1 and p.splits > 1 and not take_memory_if_any(
                &temporaries, units * p.splits * 8 * form.eights * (form.head + 2) * 4, &partial):
            p.splits = 1
        p.partial = partial
        if is_mapped:
            mapped.common = p[0]
            launch_mapped(device, stream, &mapped, form, units)
        else:
            launch_few(device, stream, p, form, units)
        if form.cluster == 1 and p.splits > 1:
            launch_join(device, stream, p, form, batch, 8 * form.eights)
    finally:
        temporaries_release(&temporaries)
    return 0


cdef inline uint64_t few_key(const Form* form) noexcept nogil:
    cdef uint64_t key = (<uint64_t>form.head << 2 | form.eights) << 4 | form.stages
    key = (key << 4 | form.cluster) << 2 | form.blocks
    return ((key << 2 | form.mask) << 5 | form.mask_type) << 5 | form.dtype


cdef int launch_few(int device, uint64_t stream, const AttentionParameters* p, const Form* form,
                    int64_t units) except -1:
    cdef Launch launch
    launch_init(&launch, device, stream, <uint32_t>(units * p.splits), 32 * FEW_WARPS, p,
                sizeof(p[0]))
    launch.shared_nbytes = launch.most_shared_nbytes = <uint32_t>few_nbytes(form)
    return launch_kernel(kernel_of(&few_kernels, few_key(form), few_program, form), &launch)


cdef int launch_mapped(int device, uint64_t stream, const MappedAttentionParameters* p,
                       const Form* form, int64_t units) except -1:
    cdef Launch launch
    cdef int64_t blocks = units * p.common.splits
    if form.blocks:
        blocks = form.blocks * device_facts(device).multiprocessors
    launch_init(&launch, device, stream, <uint32_t>blocks, 32 * FEW_WARPS + 32, p, sizeof(p[0]))
    launch.shared_nbytes = <uint32_t>(
        form.stages * mapped_step_nbytes(form) + mapped_lines_nbytes(form))
    launch.most_shared_nbytes = launch.shared_nbytes
    return launch_kernel(kernel_of(&mapped_kernels, few_key(form), mapped_program, form), &launch)


cdef object mapped_program(const void* variant):
    cdef const Form* form = <const Form*>variant
    return programs.attention_few_mapped(
        DTYPES[form.dtype].name, form.head, form.eights,
        None if form.mask == 0 else DTYPES[form.mask_type].name, form.stages, form.cluster,
        bool(form.blocks))


cdef object few_program(const void* variant):
    cdef const Form* form = <const Form*>variant
    return programs.attention_few(
        DTYPES[form.dtype].name, form.head, form.eights,
        None if form.mask == 0 else DTYPES[form.mask_type].name, FEW_WARPS, form.stages)
