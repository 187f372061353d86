"""One product from operands to queued work (__init__.pxd explains the steps).

On a host device the whole product is one queued NumPy call. On a GPU the operands that no library
layout describes are copied into allocator memory first, the plan is found or built, and the late
steps of the epilogue (a bias along rows, exact GELU, SiLU, a scale on the device, a residual after
an activation) follow as one kernel (epilogue.pxi). A product whose plan is cached and which needs
no copies allocates no memory and makes one library call.
"""

cdef enum:
    TASK_NOTHING = 0            # the result has no elements
    TASK_HOST = 1
    TASK_NO_TERMS = 2           # K is 0: the product is zero
    TASK_LIBRARY = 3


cdef void options_init(Options* options, uint32_t precision) noexcept nogil:
    options.alpha = 1
    options.beta = options.alpha_imag = options.beta_imag = 0
    options.precision = precision
    options.activation = ACT_NONE
    options.conj_a = options.conj_b = 0
    options.addend = NULL
    options.bias = options.scale = options.residual = NULL


# ---- prepare

cdef int task_prepare(Task* task, int device, uint64_t stream, const Operand* a, const Operand* b,
                      Operand* out, const Options* options) except -1 nogil:
    task.device = device
    task.stream = stream
    task.a, task.b, task.out, task.options = a, b, out, options
    temporaries_init(&task.temporaries, device, stream)
    task.copy_count = task.has_copy_back = 0
    task.has_late_bias = 0
    task.late_activation = ACT_NONE
    task.plan = NULL
    check_extents(out, a, b"the first operand")
    check_extents(out, b, b"the second operand")
    check_types(a, b, out)
    if device_kind(device) == DEVICE_HOST:
        task.kind = TASK_HOST
        return 0
    task.kind = TASK_LIBRARY
    if has_no_elements(out):
        task.kind = TASK_NOTHING
    elif a.shape[a.ndim - 1] == 0:
        task.kind = TASK_NO_TERMS
        matmul_place_result(task)
    else:
        prepare_library(task)
    return 0


cdef int matmul_place_result(Task* task) except -1 nogil:
    """Choose where the product is written: in out, or in a temporary if the epilogue still reads
    out, or if the product may exceed 16 bits before its scale."""
    cdef const Operand* residual = task.options.residual
    cdef bint is_wide = task.options.scale is not NULL and dtype_is_half(task.out.dtype)
    task.result = task.out[0]
    if is_wide or (residual is not NULL and residual.ptr == task.out.ptr):
        take_operand(&task.temporaries, task.out, DT_FLOAT32 if is_wide else task.out.dtype,
                     &task.result)
        task.has_copy_back = 1
    return 0


cdef void matmul_add_copy(Task* task, int operation, const Operand* source,
                          const Operand* target) noexcept nogil:
    cdef Copy* copy = &task.copies[task.copy_count]
    copy.operation = operation
    copy.source = source[0]
    copy.target = target[0]
    task.copy_count += 1


cdef int replace_by_copy(Task* task, int operation, Operand* operand) except -1 nogil:
    """Replace `operand` by a row-major copy, which is made before the product.

    Dimensions of stride 0 are copied once and keep the stride 0.
    """
    cdef Operand small, target
    cdef int axis
    compact(operand, &small)
    take_operand(&task.temporaries, &small, small.dtype, &target)
    matmul_add_copy(task, operation, &small, &target)
    for axis in range(operand.ndim):
        if small.shape[axis] != operand.shape[axis]:
            target.shape[axis] = operand.shape[axis]
            target.strides[axis] = 0
    operand[0] = target
    return 0


cdef int materialize(Task* task, int operation, Operand* operand) except -1 nogil:
    """Replace an operand whose matrix dimensions must not repeat by a full copy."""
    cdef Operand target
    take_operand(&task.temporaries, operand, operand.dtype, &target)
    matmul_add_copy(task, operation, operand, &target)
    operand[0] = target
    return 0


cdef bint matrix_repeats(const Operand* operand) noexcept nogil:
    """Whether one of the last two dimensions has stride 0 and more than one element."""
    cdef int axis
    cdef int first = operand.ndim - 2 if operand.ndim > 2 else 0
    for axis in range(first, operand.ndim):
        if operand.strides[axis] == 0 and operand.shape[axis] > 1:
            return True
    return False


cdef int copy_operand(Task* task, int operation, Operand* operand) except -1 nogil:
    if matrix_repeats(operand):
        return materialize(task, operation, operand)
    return replace_by_copy(task, operation, operand)


cdef int prepare_library(Task* task) except -1 nogil:
    cdef const Options* options = task.options
    cdef Product* product = &task.product
    cdef Operand a = task.a[0]
    cdef Operand b = task.b[0]
    cdef const Operand* addend = NULL
    cdef int copies
    cdef bint reads_addend = options.beta != 0 or options.beta_imag != 0
    matmul_place_result(task)
    if reads_addend and options.addend is not NULL:
        addend = options.addend
    copies = prepare(&a, &b, addend, &task.result, product)
    if copies & COPY_A:
        copy_operand(task, OP_COPY, &a)
    if copies & COPY_B:
        copy_operand(task, OP_COPY, &b)
    if copies & COPY_OUT:
        take_operand(&task.temporaries, task.out, task.out.dtype, &task.result)
        task.has_copy_back = 1
        if reads_addend:
            matmul_add_copy(task, OP_COPY, addend if addend is not NULL else task.out, &task.result)
        addend = NULL
    elif copies & COPY_ADDEND:
        matmul_add_copy(task, OP_COPY, addend, &task.result)
        addend = NULL
    if copies:
        prepare(&a, &b, addend, &task.result, product)
    if options.conj_a or options.conj_b:
        conjugate(task, &a, &b, addend)
    fill_product(task)
    return matmul_find_plan(task, addend)


cdef bint take_for_speed(Task* task, size_t nbytes, uint64_t* ptr) except -1 nogil:
    """Take memory for a copy that the product can do without; false when there is none.

    Without the copy another algorithm would add in another order, so a deterministic product needs
    it.
    """
    if task.product.flags & PRODUCT_DETERMINISTIC:
        take_memory(&task.temporaries, nbytes, ptr)
        return True
    return take_memory_if_any(&task.temporaries, nbytes, ptr)


cdef bint pad_product(Task* task, int padded) except -1 nogil:
    """Replace the product's matrices by padded copies, and note the copies to make.

    Returns False and changes nothing when there is no memory for them.
    """
    cdef Product* product = &task.product
    cdef uint64_t a = 0
    cdef uint64_t b = 0
    cdef uint64_t d = 0
    cdef int64_t ld, stride
    cdef int count = task.temporaries.count
    cdef bint is_there = True
    cdef bint had_bias = product.bias != 0
    cdef int activation = product.activation
    if padded & PAD_A:
        is_there = take_for_speed(task, pad_nbytes(product, PAD_A, &ld, &stride), &a)
    if is_there and padded & PAD_B:
        is_there = take_for_speed(task, pad_nbytes(product, PAD_B, &ld, &stride), &b)
    if is_there and padded & PAD_D:
        is_there = take_for_speed(task, pad_nbytes(product, PAD_D, &ld, &stride), &d)
    if not is_there:
        give_back(&task.temporaries, count)
        return False
    pad_bind(product, padded, a, b, d, &task.padding, &task.unpadding)
    if had_bias and not product.bias:
        task.has_late_bias = 1
        task.late_activation = activation
    task.has_padding = task.padding.count != 0
    task.has_unpadding = task.unpadding.count != 0
    return True


cdef int conjugate(Task* task, Operand* a, Operand* b, const Operand* addend) except -1 nogil:
    """Conjugate: the library does it for transposed matrices, a copy for the others."""
    cdef Product* product = &task.product
    cdef int* op_a = &product.op_b if product.is_swapped else &product.op_a
    cdef int* op_b = &product.op_a if product.is_swapped else &product.op_b
    cdef bint copy_a = task.options.conj_a and op_a[0] != OP_T
    cdef bint copy_b = task.options.conj_b and op_b[0] != OP_T
    if copy_a:
        materialize(task, OP_CONJ, a)
    if copy_b:
        materialize(task, OP_CONJ, b)
    if copy_a or copy_b:
        prepare(a, b, addend, &task.result, product)
    if task.options.conj_a and not copy_a:
        op_a[0] = OP_C
    if task.options.conj_b and not copy_b:
        op_b[0] = OP_C
    return 0


cdef void fill_product(Task* task) noexcept nogil:
    cdef const Options* options = task.options
    cdef Product* product = &task.product
    product_fill(product, task.device, options.precision)
    if product.compute == COMPUTE_32I and (
            options.alpha != 1 or (options.beta != 0 and options.beta != 1)):
        product.flags |= PRODUCT_FACTORS
    product.alpha, product.alpha_imag = options.alpha, options.alpha_imag
    product.beta, product.beta_imag = options.beta, options.beta_imag
    # The library adds one value to each row of D; our bias has one for each column of the result,
    # or for each row where the second operand is a vector.
    if options.bias is not NULL:
        if (product.is_swapped and task.b.ndim > 1 and options.bias.strides[0] == 1
                and options.scale is NULL and options.bias.dtype == product.type_d
                and not dtype_is_complex(product.type_d)):
            product.bias = options.bias.ptr
        else:
            task.has_late_bias = 1
    # The library's tanh is accurate enough for float32, not for float64.
    if options.activation == ACT_RELU or (options.activation == ACT_GELU_TANH
                                          and product.type_d != DT_FLOAT64):
        if not task.has_late_bias and not task.has_copy_back and options.scale is NULL:
            product.activation = options.activation
    if product.activation != options.activation:
        task.late_activation = options.activation


# ---- plans

cdef int task_plan(Task* task, int preference, int limits) except -1 nogil:
    cdef Wanted wanted
    cdef Outcome outcome
    wanted_init(&wanted, &task.product, preference, limits)
    task.plan = plan_of(&wanted, task.stream, &outcome)
    return raise_for_plan(&task.product, &outcome) if task.plan is NULL else 0


cdef bint take_copies(Task* task) except -1 nogil:
    """Take memory for the plan's scratch and copies; false if there is none for optional ones."""
    cdef size_t nbytes = scratch_nbytes(task.plan, &task.product)
    if task.plan.pad:
        return pad_product(task, task.plan.pad)
    if nbytes and is_own(task.plan.backend):
        return take_for_speed(task, nbytes, &task.scratch)
    if nbytes:
        take_memory(&task.temporaries, nbytes, &task.scratch)
    return True


cdef int matmul_find_plan(Task* task, const Operand* addend) except -1 nogil:
    task.scratch = 0
    task.has_padding = task.has_unpadding = 0
    if task.product.outer_ndim and pointer_batch_wins(&task.product) and (
            pointer_batch_ready(task.device)):
        task.product.flags |= PRODUCT_POINTERS
    task_plan(task, preferred_library(), 0)
    if not take_copies(task):
        plan_drop(task.plan)
        task.plan = NULL
        task.product.flags |= PRODUCT_AS_IT_IS
        task_plan(task, preferred_library(), 0)
    if task.plan.pad & PAD_D:
        addend = NULL
    leave_epilogue(task, addend, backend_of(task.plan.backend).epilogues)
    return 0


cdef void leave_epilogue(Task* task, const Operand* addend, int does) noexcept nogil:
    """Move the epilogue's steps that the backend does not do before or after it."""
    cdef Product* product = &task.product
    if addend is not NULL and not does & DOES_ADDEND:
        matmul_add_copy(task, OP_COPY, addend, &task.result)
        product.c, product.ldc, product.stride_c = product.d, product.ldd, product.stride_d
        product.outer_c = product.outer_d
    if product.bias and not does & DOES_BIAS:
        product.bias = 0
        task.has_late_bias = 1
    if product.activation != ACT_NONE and not does & DOES_ACTIVATION:
        task.late_activation = product.activation
        product.activation = ACT_NONE


# ---- launch

cdef int task_launch(Task* task) except -1 nogil:
    cdef int index
    cdef Copy* copy
    if task.kind == TASK_HOST:
        return matmul_launch_host(task)
    if task.kind == TASK_NOTHING:
        return 0
    if task.kind == TASK_NO_TERMS:
        return launch_no_terms(task)
    if task.copy_count:
        # A copy may go into out.
        workspace_ask(task.device, task.stream, task.plan.workspace_nbytes)
    for index in range(task.copy_count):
        copy = &task.copies[index]
        elementwise(copy.operation, task.device, task.stream, copy.source.dtype, &copy.target, 1,
                    &copy.source)
    if task.has_padding:
        relayout_launch(&task.padding, task.device, task.stream)
    task_run_library(task)
    if task.has_unpadding:
        relayout_launch(&task.unpadding, task.device, task.stream)
    return finish(task)


# Queues only the planned work, for callers that plan a product themselves; uses the task's device,
# stream, plan and product.
cdef int task_run_library(Task* task) except -1 nogil:
    cdef Work work
    cdef Outcome outcome
    work_init(&work, task.plan, &task.product, task.stream)
    work.scratch = task.scratch
    work_queue(&work, &outcome)
    return 0 if outcome.stage == STAGE_DONE else raise_for_outcome(&work, &outcome)


cdef int launch_no_terms(Task* task) except -1 nogil:
    """Write a sum without terms, zero: out = beta * addend, then bias and activation."""
    cdef const Options* options = task.options
    cdef Operand scalar
    cdef Operand[2] inputs
    scalar.is_scalar = 1
    scalar.ndim = 0
    scalar.ptr = 0
    scalar.integer = integer_factor(options.beta, options.beta_imag)
    scalar.dtype = task.out.dtype
    scalar.real, scalar.imag = options.beta, options.beta_imag
    if options.beta == 0 and options.beta_imag == 0:
        fill(task.device, task.stream, &task.result, &scalar)
    else:
        inputs[0] = options.addend[0] if options.addend is not NULL else task.out[0]
        inputs[1] = scalar
        elementwise(OP_MUL, task.device, task.stream, task.out.dtype, &task.result, 2, inputs)
    task.has_late_bias = options.bias is not NULL
    task.late_activation = options.activation
    return finish(task)


cdef int finish(Task* task) except -1 nogil:
    """Queue the late steps of the epilogue, and copy the result to out."""
    cdef const Options* options = task.options
    cdef Epilogue epilogue
    cdef Operand bias
    if (not task.has_late_bias and task.late_activation == ACT_NONE and options.scale is NULL
            and options.residual is NULL):
        if task.has_copy_back:
            elementwise(OP_COPY, task.device, task.stream, task.out.dtype, task.out, 1,
                        &task.result)
        return 0
    epilogue_init(&epilogue)
    epilogue.activation = task.late_activation
    # Like alpha, the scale does not multiply a sum without terms: 0 times infinity would be NaN.
    if task.kind != TASK_NO_TERMS:
        epilogue.scale = options.scale
    epilogue.residual = options.residual
    if task.has_late_bias:
        along_last_axis(options.bias, task.out, &bias)
        epilogue.bias = &bias
    return epilogue_run(task.device, task.stream, &epilogue, &task.result, task.out)


cdef object factor_argument(int dtype, double real, double imag):
    """Return a factor as an attribute of a call; 0 and 1 need no new object."""
    if imag == 0 and (real == 0 or real == 1):
        return 1 if real else 0
    factor = factor_object(dtype, real, imag)
    return real if imag == 0 and type(factor) is complex else factor


cdef int matmul_launch_host(Task* task) except -1 with gil:
    cdef const Options* given = task.options
    cdef int device = task.device
    cdef int dtype = task.out.dtype
    return host_call(device, task.stream, PRODUCT_CALL, (
        factor_argument(dtype, given.alpha, given.alpha_imag),
        factor_argument(dtype, given.beta, given.beta_imag),
        ACTIVATION_NAMES[given.activation], given.conj_a != 0, given.conj_b != 0, given.precision,
        call_argument(device, task.out), call_argument(device, task.a),
        call_argument(device, task.b), call_argument(device, given.addend),
        call_argument(device, given.bias), call_argument(device, given.scale),
        call_argument(device, given.residual)))


cdef void task_release(Task* task) noexcept nogil:
    temporaries_release(&task.temporaries)
    if task.plan is not NULL:
        plan_drop(task.plan)
    task.plan = NULL
