"""Products with quantized weights: one task for every way to compute them.

On a host device, one NumPy call. On a GPU, a kernel expands the weights in registers: for up to 16
rows of x skinny_mma.cuh, for more of them tiles (tile.pxi). Products that the tiles do not take go
to the former in parts of 16 rows, the weights staying in the cache meanwhile, or from 33 rows on a
kernel dequantizes the weights into temporary memory, and an ordinary task multiplies with them.
"""

cdef enum:
    QUANTIZED_HOST = 0
    QUANTIZED_SKINNY = 1
    QUANTIZED_PLAIN = 2
    QUANTIZED_TILE = 3
    # On an H200 16 rows take 16 us at 8192 x 8192 (int8: 25); dequantizing and multiplying take 74
    # (82) for the transfer of the bytes alone.
    MOST_PARTED_ROWS = 32


# Fills `small` with the first rows of the product, and tells whether our kernels take them.
cdef bint is_own_product(const QuantizedProduct* given, int device,
                         SkinnyProduct* small) noexcept nogil:
    cdef const Operand* x = given.x
    cdef const Operand* weight = given.weight
    cdef int64_t groups = given.scales.shape[0]
    cdef int64_t parts = (x.shape[0] + SKINNY_MAX_ROWS - 1) // SKINNY_MAX_ROWS
    memset(small, 0, sizeof(SkinnyProduct))
    small.device = device
    small.type_x, small.type_y = x.dtype, given.out.dtype
    small.m = (x.shape[0] + parts - 1) // max(<int64_t>1, parts)
    small.n, small.k = given.out.shape[1], x.shape[1]
    small.group = <int>(small.k // groups) if groups > 1 else 0
    small.x, small.w, small.y = x.ptr, weight.ptr, given.out.ptr
    small.scales = given.scales.ptr
    small.bias = given.bias.ptr if given.bias is not NULL else 0
    small.x_pitch, small.y_pitch = x.strides[0], given.out.strides[0]
    if weight.dtype == DT_UINT8:
        small.form, small.w_pitch = FORM_INT4, weight.shape[1]
    else:
        small.form, small.w_pitch = FORM_INT8, weight.strides[0]
    small.alpha = 1
    return skinny_product_fits(small)


cdef bint is_tiled(QuantizedTask* task) except -1 nogil:
    """Choose blocks for tile.cuh, and take their memory; False if they cannot or should not run."""
    cdef SkinnyProduct* small = &task.small
    cdef int64_t rows = task.given.x.shape[0]
    if (small.type_x == DT_FLOAT32 or rows < least_tile_rows or rows > most_tile_rows
            or known_facts(small.device).capability < 80):
        return False
    small.m = rows
    return tile_choose(small, False, &task.shape) and take_tile_memory(task)


cdef bint take_tile_memory(QuantizedTask* task) except -1 nogil:
    cdef SkinnyProduct* small = &task.small
    cdef size_t sums, ordered
    task.sums = task.ordered = 0
    sums = tile_sums_nbytes(small, &task.shape)
    ordered = tile_order_nbytes(small, &task.shape)
    if sums and not take_memory_if_any(&task.temporaries, sums, &task.sums):
        return False
    return ordered == 0 or take_memory_if_any(&task.temporaries, ordered, &task.ordered)


cdef int quantized_prepare(QuantizedTask* task, int device, uint64_t stream,
                           const QuantizedProduct* given) except -1 nogil:
    cdef Operand like
    cdef int64_t part
    task.given = given
    task.ending = NULL
    memset(task.others, 0, sizeof(task.others))
    task.task.device, task.task.stream = device, stream
    task.task.plan = NULL
    temporaries_init(&task.task.temporaries, device, stream)
    temporaries_init(&task.temporaries, device, stream)
    task.kind = QUANTIZED_HOST
    if device_kind(device) == DEVICE_HOST:
        return 0
    if is_own_product(given, device, &task.small):
        part = task.small.m
        task.kind = QUANTIZED_TILE
        if is_tiled(task):
            return 0
        task.small.m = part
        task.kind = QUANTIZED_SKINNY
        if given.x.shape[0] <= MOST_PARTED_ROWS:
            return 0
    task.kind = QUANTIZED_PLAIN
    like.ndim = 2
    like.shape[0], like.shape[1] = given.out.shape[1], given.x.shape[1]
    take_operand(&task.temporaries, &like, given.scales.dtype, &task.plain)
    task.right = task.plain
    task.right.shape[0], task.right.shape[1] = task.plain.shape[1], task.plain.shape[0]
    task.right.strides[0], task.right.strides[1] = task.plain.strides[1], task.plain.strides[0]
    task.out = given.out[0]
    options_init(&task.options, given.precision)
    task.options.bias = given.bias
    return task_prepare(&task.task, device, stream, given.x, &task.right, &task.out,
                        &task.options)


cdef int queue_parts(const SkinnyProduct* first, uint64_t stream, int64_t rows) except -1 nogil:
    """Queue the products of parts of x, each with the rows of the first, one after the other."""
    cdef SkinnyProduct part = first[0]
    while rows > 0:
        part.m = min(rows, first.m)
        skinny_product_run(&part, stream)
        part.x += <uint64_t>(part.m * part.x_pitch * dtype_itemsize(part.type_x))
        part.y += <uint64_t>(part.m * part.y_pitch * dtype_itemsize(part.type_y))
        rows -= part.m
    return 0


cdef int quantized_launch(QuantizedTask* task) except -1 nogil:
    cdef const QuantizedProduct* given = task.given
    cdef int device = task.task.device
    cdef uint64_t stream = task.task.stream
    if task.kind == QUANTIZED_SKINNY:
        return queue_parts(&task.small, stream, given.x.shape[0])
    if task.kind == QUANTIZED_TILE:
        return tile_run(task, stream)
    if task.kind == QUANTIZED_PLAIN:
        dequantize_run(device, stream, given.weight, given.scales, &task.plain)
        return task_launch(&task.task)
    return quantized_launch_host(task)


cdef int quantized_launch_host(QuantizedTask* task) except -1 with gil:
    cdef const QuantizedProduct* given = task.given
    cdef int device = task.task.device
    return host_call(device, task.task.stream, QUANTIZED_CALL, (
        given.precision, call_argument(device, given.out), call_argument(device, given.x),
        call_argument(device, given.weight), call_argument(device, given.scales),
        call_argument(device, given.bias)))


cdef void quantized_release(QuantizedTask* task) noexcept nogil:
    task_release(&task.task)
    temporaries_release(&task.temporaries)
