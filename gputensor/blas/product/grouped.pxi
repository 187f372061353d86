"""Many products of different shapes, queued together.

Plain matrices of float32, float16 and bfloat16 that are too small to keep a GPU busy go into one
call of cuBLAS's grouped product: the library reads the sizes from the host at the call, and the
addresses from a table that a kernel of ours writes (pointers.pxi). Every other product is a
separate task on the same stream: products that need a copy or have a batch, large ones, other
types, captured ones (the library does not promise to copy the sizes, which a replay needs), and all
products on a host device or with a library older than 12.5.
"""

cdef enum:
    # The fewest products for a grouped call: with 4 it is as fast as single calls on an H200, with
    # more it is faster.
    FEWEST = 4

# A product with more multiply-adds keeps the GPU busy alone.
cdef double BUSY_TERMS = 2e9

# The pairs (type, compute type) for which the library has refused a grouped call.
cdef set grouped_refused = set()


# ---- prepare

cdef int grouped_prepare(GroupedTask* task, int device, uint64_t stream, const Pairs* pairs,
                         const Options* options) except -1 nogil:
    cdef int64_t count = pairs.count
    cdef int64_t index
    cdef char* is_member
    memset(task, 0, sizeof(GroupedTask))
    task.device, task.stream, task.options = device, stream, options
    if count == 0:
        return 0
    is_member = <char*>calloc(count, 1)
    task.products = <Product*>calloc(count, sizeof(Product))
    if is_member is NULL or task.products is NULL:
        free(is_member)
        raise_for_count(count)
    try:
        if device_kind(device) != DEVICE_HOST and not stream_captures(device, stream):
            choose_members(task, pairs, is_member)
        task.singles = <Task*>calloc(count - task.product_count + 1, sizeof(Task))
        if task.singles is NULL:
            raise_for_count(count)
        for index in range(count):
            if not is_member[index]:
                # Counted first, so that a task that fails halfway is released too.
                task.single_count += 1
                task_prepare(&task.singles[task.single_count - 1], device, stream,
                             &pairs.a[index], &pairs.b[index], &pairs.out[index], options)
    finally:
        free(is_member)
    if task.product_count:
        load_for_planning(device)
        take_table(task)
    return 0


cdef int raise_for_count(int64_t count) except -1 with gil:
    raise MemoryError(f"grouped_matmul: no host memory for {count} products")


# ---- kinds of products that the library has refused

cdef bint is_refused_group(const Product* product) noexcept with gil:
    return (product.type_a, product.compute) in grouped_refused


cdef int note_refused_group(const Product* product) except -1 with gil:
    grouped_refused.add((product.type_a, product.compute))
    return 0


cdef int choose_members(GroupedTask* task, const Pairs* pairs, char* is_member) except -1 nogil:
    """Fill in the products of the grouped call, which share one type and precision."""
    cdef int64_t index
    cdef Product* product
    for index in range(pairs.count):
        product = &task.products[task.product_count]
        if not fits(task, &pairs.a[index], &pairs.b[index], &pairs.out[index], product):
            continue
        if product.type_a != task.products[0].type_a:
            continue
        is_member[index] = 1
        task.product_count += 1
    if task.product_count < FEWEST or is_refused_group(task.products):
        memset(is_member, 0, pairs.count)
        task.product_count = 0
    return 0


cdef bint fits(const GroupedTask* task, const Operand* a, const Operand* b, const Operand* out,
               Product* product) noexcept nogil:
    cdef const Options* options = task.options
    cdef int align_a, align_b, align_c, align_d
    if a.ndim != 2 or b.ndim != 2 or a.dtype != b.dtype or out.dtype != a.dtype:
        return False
    if not dtype_is_half(a.dtype) and a.dtype != DT_FLOAT32:
        return False
    if a.shape[0] == 0 or a.shape[1] == 0 or b.shape[1] == 0:
        return False
    if 1.0 * a.shape[0] * a.shape[1] * b.shape[1] > BUSY_TERMS:
        return False
    if prepare(a, b, NULL, out, product):
        return False
    # The grouped call has no sums in float16.
    product_fill(product, task.device, options.precision & ~<uint32_t>FP16_ACCUMULATION)
    product_alignments(product, &align_a, &align_b, &align_c, &align_d)
    return pointers_are_aligned(product, align_a, align_b, align_d)


cdef int take_table(GroupedTask* task) except -1 nogil:
    cdef status_t status = STATUS_OK
    cdef size_t nbytes = grouped_table_nbytes(task.product_count)
    task.block = allocator_malloc(task.device, nbytes, task.stream, &status)
    if task.block is NULL:
        raise_for_malloc(task.device, nbytes, task.stream, status)
    task.table = task.block.ptr
    return 0


# ---- launch

cdef int ask_for_workspace(GroupedTask* task) except -1 nogil:
    """Raise, before a result is written, if a later product cannot get a workspace."""
    cdef const Plan* plan
    cdef int64_t index
    cdef size_t nbytes = workspace_nbytes(task.device) if task.product_count else 0
    for index in range(task.single_count):
        plan = task.singles[index].plan
        if plan is not NULL and plan.workspace_nbytes > nbytes:
            nbytes = plan.workspace_nbytes
    return workspace_ask(task.device, task.stream, nbytes)


cdef int grouped_launch(GroupedTask* task) except -1 nogil:
    cdef int64_t index
    ask_for_workspace(task)
    for index in range(task.single_count):
        task_launch(&task.singles[index])
    if task.product_count:
        launch_group(task)
    return 0


cdef int launch_group(GroupedTask* task) except -1 nogil:
    cdef Plan plan
    cdef Work work
    cdef Outcome outcome
    grouped_plan(task.products, &plan)
    work_init(&work, &plan, task.products, task.stream)
    work.count, work.scratch = task.product_count, task.table
    work_queue(&work, &outcome)
    if outcome.stage == STAGE_LIBRARY and outcome.status == BLAS_NOT_SUPPORTED:
        note_refused_group(task.products)
        return launch_alone(task)
    return 0 if outcome.stage == STAGE_DONE else raise_for_outcome(&work, &outcome)


cdef int launch_alone(GroupedTask* task) except -1 nogil:
    """Queue the products that the library refused as a group, one by one, once for each kind."""
    cdef Task single
    cdef Operand a, b, out
    cdef int64_t index
    for index in range(task.product_count):
        operands_of(&task.products[index], &a, &b, &out)
        try:
            task_prepare(&single, task.device, task.stream, &a, &b, &out, task.options)
            task_launch(&single)
        finally:
            task_release(&single)
    return 0


cdef void operands_of(const Product* product, Operand* a, Operand* b, Operand* out) noexcept nogil:
    """Make operands of the matrices of a product, in its column-major terms."""
    a.ptr, a.dtype, a.ndim, a.is_scalar = product.a, product.type_a, 2, 0
    b.ptr, b.dtype, b.ndim, b.is_scalar = product.b, product.type_b, 2, 0
    out.ptr, out.dtype, out.ndim, out.is_scalar = product.d, product.type_d, 2, 0
    a.shape[0], a.shape[1] = product.m, product.k
    b.shape[0], b.shape[1] = product.k, product.n
    out.shape[0], out.shape[1] = product.m, product.n
    a.strides[product.op_a != OP_N] = 1
    a.strides[product.op_a == OP_N] = product.lda
    b.strides[product.op_b != OP_N] = 1
    b.strides[product.op_b == OP_N] = product.ldb
    out.strides[0], out.strides[1] = 1, product.ldd


cdef void grouped_release(GroupedTask* task) noexcept nogil:
    cdef int64_t index
    for index in range(task.single_count):
        task_release(&task.singles[index])
    if task.block is not NULL:
        allocator_free(task.block)
    free(task.singles)
    free(task.products)
    memset(task, 0, sizeof(GroupedTask))


# ---- overlap

cdef struct Extent:
    uint64_t low
    uint64_t high
    int64_t index


cdef int by_address(const void* one, const void* other) noexcept nogil:
    cdef uint64_t left = (<const Extent*>one).low
    cdef uint64_t right = (<const Extent*>other).low
    return (left > right) - (left < right)


cdef int check_pair(const Operand* out, const Operand* operand, const char* which,
                    int64_t pair) except -1 nogil:
    cdef char[64] name
    snprintf(name, sizeof(name), b"%s of pair %lld", which, <long long>pair)
    return check_extents(out, operand, name)


cdef int check_grouped_extents(const Pairs* pairs) except -1 nogil:
    cdef int64_t count = pairs.count
    cdef const Operand* a = pairs.a
    cdef const Operand* b = pairs.b
    cdef const Operand* out = pairs.out
    cdef Extent* extents = <Extent*>calloc(count + 1, sizeof(Extent))
    cdef int64_t index
    cdef bint are_apart = True
    if extents is NULL:
        raise_for_count(count)
    try:
        for index in range(count):
            extent_of(&out[index], &extents[index].low, &extents[index].high)
            extents[index].index = index
        qsort(extents, count, sizeof(Extent), by_address)
        for index in range(count - 1):
            if extents[index + 1].low < extents[index].high:
                are_apart = False
        for index in range(count):
            if are_apart:
                check_among(extents, count, out, &a[index], b"the first operand", index)
                check_among(extents, count, out, &b[index], b"the second operand", index)
            else:
                check_each(pairs, index)
    finally:
        free(extents)
    return 0


cdef int check_among(const Extent* extents, int64_t count, const Operand* out,
                     const Operand* operand, const char* which, int64_t pair) except -1 nogil:
    """Check an operand against the results around it, which do not overlap each other."""
    cdef int64_t first = 0
    cdef int64_t last = count
    cdef int64_t middle
    cdef uint64_t low, high
    extent_of(operand, &low, &high)
    while first < last:
        middle = (first + last) // 2
        if extents[middle].high <= low:
            first = middle + 1
        else:
            last = middle
    while first < count and extents[first].low < high:
        check_pair(&out[extents[first].index], operand, which, pair)
        first += 1
    return 0


cdef int check_each(const Pairs* pairs, int64_t index) except -1 nogil:
    cdef const Operand* out = &pairs.out[index]
    cdef int64_t other
    for other in range(pairs.count):
        check_pair(out, &pairs.a[other], b"the first operand", other)
        check_pair(out, &pairs.b[other], b"the second operand", other)
        if other > index:
            check_pair(out, &pairs.out[other], b"out", other)
    return 0
