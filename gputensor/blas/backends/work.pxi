"""Planned work on its way to a stream, without the GIL: the one place that queues products.

A library's call gets a workspace and the device's context; a kernel of ours needs neither. Outer
dimensions move the product's addresses through their index tuples, with one launch for each; at the
end the addresses are those from before.
"""

# The shape of one launch of our own kernels.
cdef struct Grid:
    int64_t x, y, z             # blocks
    int block                   # threads
    int shared_nbytes           # dynamic shared memory


cdef inline void grid_of_blocks(Grid* grid, int64_t blocks, int block,
                                int shared_nbytes) noexcept nogil:
    grid.x, grid.y, grid.z = blocks, 1, 1
    grid.block, grid.shared_nbytes = block, shared_nbytes


cdef inline int64_t ceil_divide(int64_t value, int64_t divisor) noexcept nogil:
    return (value + divisor - 1) // divisor


cdef inline int64_t round_up(int64_t value, int64_t multiple) noexcept nogil:
    return (value + multiple - 1) // multiple * multiple


cdef inline int64_t tiles_of(int64_t length, int tile) noexcept nogil:
    return (length + tile - 1) // tile


cdef void work_init(Work* work, Plan* plan, Product* products, uint64_t stream) noexcept nogil:
    work.plan, work.products, work.count, work.stream = plan, products, 1, stream
    work.scratch = 0


# ---- our own kernels

# Completes a plan whose kernel is known. Returns BLAS_NOT_SUPPORTED where the kernel cannot be
# compiled, because the libraries, which need no compiler, can then take the product.
cdef int compiled(void* kernel, int device, int shared_nbytes) except -1 nogil:
    if (<Kernel>kernel).functions[device + HOST_DEVICES]:
        return BLAS_OK
    return compile_now(kernel, device, shared_nbytes)


cdef int compile_now(void* kernel, int device, int shared_nbytes) except -1 with gil:
    try:
        kernel_load(kernel, device, shared_nbytes)
    except DeviceError:
        return BLAS_NOT_SUPPORTED
    return BLAS_OK


# Queues one launch of a Kernel; returns BLAS_OK or raises.
cdef int queue_kernel(const Work* work, void* kernel, const Grid* grid, const void* parameters,
                      size_t nbytes) except -1 nogil:
    cdef Launch launch
    launch_init(&launch, work.products.device, work.stream, <uint32_t>grid.x, grid.block,
                parameters, nbytes)
    launch.grid[1], launch.grid[2] = <uint32_t>grid.y, <uint32_t>grid.z
    launch.shared_nbytes = launch.most_shared_nbytes = grid.shared_nbytes
    return launch_kernel(kernel, &launch)


# ---- repetition

cdef inline void move_addresses(Product* product, int axis, int64_t count) noexcept nogil:
    """Move by `count` steps of an outer dimension."""
    cdef int64_t size_d = count * dtype_itemsize(product.type_d)
    product.a += <uint64_t>(product.outer_a[axis] * count * dtype_itemsize(product.type_a))
    product.b += <uint64_t>(product.outer_b[axis] * count * dtype_itemsize(product.type_b))
    product.c += <uint64_t>(product.outer_c[axis] * size_d)
    product.d += <uint64_t>(product.outer_d[axis] * size_d)


cdef int work_launch(Work* work) except -1 nogil:
    cdef const Backend* row = backend_of(work.plan.backend)
    cdef Product* product = work.products
    cdef int64_t[MAX_OUTER] index
    cdef int axis = 0
    cdef int status = row.launch(work)
    if product.outer_ndim == 0 or product.flags & PRODUCT_POINTERS:
        return status
    memset(index, 0, sizeof(index))
    while axis < product.outer_ndim and status == BLAS_OK:
        index[axis] += 1
        move_addresses(product, axis, 1)
        if index[axis] < product.outer_count[axis]:
            status = row.launch(work)
            axis = 0
            continue
        move_addresses(product, axis, -product.outer_count[axis])
        index[axis] = 0
        axis += 1
    return status


# ---- queue

cdef int work_queue(Work* work, Outcome* outcome) except -1 nogil:
    cdef int device = work.products.device
    cdef uint64_t before = 0
    outcome.stage = STAGE_LIBRARY
    if is_own(work.plan.backend):
        outcome.status = work_launch(work)
    else:
        outcome.stage = STAGE_WORKSPACE
        outcome.status = workspace_take(device, work.stream, work.plan.workspace_nbytes,
                                        &work.workspace)
        if outcome.status != STATUS_OK:
            return 0
        try:
            outcome.stage = STAGE_CONTEXT
            outcome.status = context_enter(device, &before)
            if outcome.status == STATUS_OK:
                outcome.stage = STAGE_LIBRARY
                try:
                    outcome.status = work_launch(work)
                finally:
                    context_leave(device, before)
        finally:
            workspace_return(&work.workspace)
    if outcome.status == BLAS_OK:
        outcome.stage = STAGE_DONE
    return 0


cdef int raise_for_outcome(const Work* work, const Outcome* outcome) except -1 with gil:
    cdef int device = work.products.device
    if outcome.stage == STAGE_WORKSPACE:
        raise_for_malloc(device, work.plan.workspace_nbytes, work.stream,
                         <status_t>outcome.status)
    if outcome.stage == STAGE_CONTEXT:
        raise_for_status(outcome.status, "context_enter")
    if outcome.stage == STAGE_LIBRARY:
        facts = product_facts(work.products)
        if work.count > 1:
            facts = f"for {work.count} products, the first {facts}"
        raise_for_blas(outcome.status, backend_of(work.plan.backend).call.decode(), facts)
    return 0
