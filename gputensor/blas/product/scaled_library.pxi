"""Scaled products by cuBLASLt: its rules on Ada and Hopper, and the copies that satisfy them.

Its fp8 kernels read both matrices with k contiguous (op_a transposed, op_b not), at addresses and
in lines that are multiples of 16 bytes, with k a multiple of 16, and write lines of multiples of 16
bytes. The other size of the result is free, except that scales for each 128 terms of each line need
a multiple of 4 lines. Other operands are copied first, with zeros up to the next multiple, and the
result is written to a temporary and copied to out. Since the result may be row-major or
column-major, either size can be the free one. Checked on an H200 with cuBLAS 13.1.

Scales: one for each matrix, or one for each line of both, or blocks of 128 terms (for each line, or
for each 128 lines of one side). Scales of two kinds are expanded to the finer kind.
"""

cdef enum:
    SCALED_LIBRARY_ALIGNMENT = 16
    MAX_REFUSED = 65536

# Hashes of the keys of products for which the library has no kernel, so that each is tried once.
cdef set scaled_library_refused = set()


cdef inline int64_t round_up(int64_t size, int64_t multiple) noexcept nogil:
    return (size + multiple - 1) // multiple * multiple


cdef inline int result_type(int dtype) noexcept nogil:
    """Return the type that the library writes; the epilogue makes an fp8 result of float32 sums."""
    return dtype if dtype == DT_BFLOAT16 or dtype == DT_FLOAT16 else DT_FLOAT32


cdef void choose_modes(const Side* x, const Side* y, int* mode_x, int* mode_y) noexcept nogil:
    """Choose the scale modes of the library's A and B."""
    if not x.is_blocked and not y.is_blocked:
        mode_x[0] = mode_y[0] = SCALE_TENSOR
        if x.has_row_scales or y.has_row_scales:
            mode_x[0] = mode_y[0] = SCALE_OUTER_VECTOR
        return
    mode_x[0] = SCALE_VECTOR_128 if x.has_row_scales else SCALE_BLOCK_128
    mode_y[0] = SCALE_VECTOR_128 if y.has_row_scales else SCALE_BLOCK_128
    if mode_x[0] == SCALE_BLOCK_128 and mode_y[0] == SCALE_BLOCK_128:
        mode_x[0] = SCALE_VECTOR_128


cdef bint line_fits(const Operand* out, int line, int across, int64_t step) noexcept nogil:
    """Whether the library can write `out` with its lines along axis `line`."""
    return (out.strides[line] == 1 and out.shape[line] % step == 0
            and out.ptr % SCALED_LIBRARY_ALIGNMENT == 0
            and (out.shape[across] == 1
                 or (out.strides[across] % step == 0 and out.strides[across] >= out.shape[line])))


cdef int scaled_library_place_result(ScaledTask* task, int dtype, int64_t step,
                                     int* line) except -1 nogil:
    """Whether the library writes into out; `line` is the axis along which its lines lie."""
    cdef const Operand* out = &task.out
    if out.dtype == dtype:
        line[0] = 1
        if line_fits(out, 1, 0, step):
            return True
        line[0] = 0
        if line_fits(out, 0, 1, step):
            return True
    line[0] = 0 if out.shape[1] % step and out.shape[0] % step == 0 else 1
    return False


# Plans the product of `left` (a) and `right` (b transposed) and takes the memory for it. Returns
# False, and releases the memory, when the library cannot compute it.
cdef bint library_prepare(ScaledTask* task, Side* left, Side* right) except? False nogil:
    cdef const ScaledProduct* given = task.given
    cdef Product* product = &task.task.product
    cdef int dtype = result_type(task.out.dtype)
    cdef int64_t step = SCALED_LIBRARY_ALIGNMENT // dtype_itemsize(dtype)
    cdef int mode_x, mode_y, line
    cdef bint is_direct = scaled_library_place_result(task, dtype, step, &line)
    cdef Side* x = right if line == 1 else left
    cdef Side* y = left if line == 1 else right
    cdef int64_t m = round_up(x.rows, step)
    cdef int64_t n = y.rows
    cdef int64_t k = round_up(x.k, SCALED_LIBRARY_ALIGNMENT)
    choose_modes(x, y, &mode_x, &mode_y)
    if mode_y == SCALE_VECTOR_128 and n % 4:
        n = round_up(n, 4)
        is_direct = False
    task.result = task.out
    if not is_direct:
        task.result.dtype = dtype
        task.result.strides[line], task.result.strides[1 - line] = 1, m
        take_memory(&task.temporaries, <size_t>(m * n * dtype_itemsize(dtype)), &task.result.ptr)
    stage_matrix(x, m, k, &task.temporaries, &task.steps)
    stage_matrix(y, n, k, &task.temporaries, &task.steps)
    stage_scale(x, mode_x, &task.temporaries, &task.steps)
    stage_scale(y, mode_y, &task.temporaries, &task.steps)
    product.m, product.n, product.k = m, n, k
    product.is_swapped = line == 1
    describe(task, x, y)
    product.scale_mode_a, product.scale_mode_b = mode_x, mode_y
    set_epilogue(task, m == x.rows)
    if given.is_fast and mode_x != SCALE_VECTOR_128 and mode_y != SCALE_VECTOR_128:
        product.flags |= PRODUCT_FAST_ACCUMULATION
    task.has_copy = not is_direct
    if scaled_library_find_plan(task):
        return True
    temporaries_release(&task.temporaries)
    temporaries_init(&task.temporaries, task.task.device, task.task.stream)
    task.steps.count = task.has_copy = task.has_epilogue = 0
    return False


cdef void describe(ScaledTask* task, const Side* x, const Side* y) noexcept nogil:
    """Fill the geometry and the addresses of the library's product."""
    cdef Product* product = &task.task.product
    cdef const Operand* result = &task.result
    cdef int across = 0 if product.is_swapped else 1
    product.batch, product.outer_ndim = 1, 0
    product.op_a, product.op_b = OP_T, OP_N
    product.a, product.b = x.ptr, y.ptr
    product.lda, product.ldb = x.ld, y.ld
    product.type_a, product.type_b = x.matrix.dtype, y.matrix.dtype
    product.type_d = result.dtype
    product.c = product.d = result.ptr
    # The stride of a single line is arbitrary.
    product.ldd = result.strides[across] if result.shape[across] > 1 else product.m
    product.ldc = product.ldd
    product.stride_a = product.stride_b = product.stride_c = product.stride_d = 0
    product_fill(product, task.task.device, task.given.precision & DETERMINISTIC)
    product.compute = COMPUTE_32F
    product.scale_a, product.scale_b = x.scale_ptr, y.scale_ptr


cdef void set_epilogue(ScaledTask* task, bint is_whole) noexcept nogil:
    """Assign bias and activation to the library or to the epilogue."""
    cdef const ScaledProduct* given = task.given
    cdef Product* product = &task.task.product
    cdef const Operand* bias = given.bias
    cdef int activation = given.activation
    # For float32 results the library reads only a bfloat16 bias.
    if (bias is not NULL and product.is_swapped and is_whole and bias.strides[0] == 1
            and bias.dtype == product.type_d and product.type_d != DT_FLOAT32
            and bias.ptr % SCALED_LIBRARY_ALIGNMENT == 0):
        product.bias = bias.ptr
        bias = NULL
    if bias is NULL and (activation == ACT_RELU or activation == ACT_GELU_TANH):
        product.activation = activation
        activation = ACT_NONE
    if (bias is NULL and activation == ACT_NONE and given.result_scale is NULL
            and task.out.dtype == product.type_d):
        return
    task.has_epilogue = 1
    task.epilogue.activation = activation
    task.epilogue.result_scale = given.result_scale
    if bias is not NULL:
        task.bias = task.out
        task.bias.ptr, task.bias.dtype = bias.ptr, bias.dtype
        task.bias.strides[0], task.bias.strides[1] = 0, bias.strides[0]
        task.epilogue.bias = &task.bias


cdef bint has_refused(uint64_t hash) noexcept with gil:
    return hash in scaled_library_refused


cdef int note_refused(uint64_t hash) except -1 with gil:
    if len(scaled_library_refused) < MAX_REFUSED:
        scaled_library_refused.add(hash)
    return 0


cdef bint scaled_library_find_plan(ScaledTask* task) except? False nogil:
    """Find the plan of the task's product; False when the library has none."""
    cdef Product* product = &task.task.product
    cdef Wanted wanted
    cdef Outcome outcome
    wanted_init(&wanted, product, LIBRARY_AUTO, PLAN_PLAIN)
    task.task.plan = plan_known(&wanted)
    if task.task.plan is not NULL:
        return True
    if has_refused(wanted.hash):
        return False
    task.task.plan = plan_of(&wanted, task.task.stream, &outcome)
    if task.task.plan is not NULL:
        return True
    if outcome.stage != STAGE_LIBRARY or (
            outcome.status != BLAS_INVALID_VALUE and outcome.status != BLAS_ARCH_MISMATCH
            and outcome.status != BLAS_NOT_SUPPORTED):
        raise_for_plan(product, &outcome)
    if not known_facts(task.task.device).is_phantom:
        note_refused(wanted.hash)
    return False
