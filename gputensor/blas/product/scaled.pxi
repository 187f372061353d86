"""Products of fp8 matrices with scales, in one of three ways.

On a host device, one NumPy call. On a GPU the library multiplies fp8 itself where it can
(scaled_library.pxi). Elsewhere (two e5m2 matrices, libraries before CUDA 12.9 with scales of rows
or blocks, GPUs before Ada) the values are first converted: to a 16-bit type, which holds every fp8
value exactly, with the scales applied to the float32 sums; or, where scales change along k, to
float32, multiplied by their scales.
"""

cdef enum:
    SCALED_NOTHING = 0          # the result has no elements
    SCALED_HOST = 1
    SCALED_LIBRARY = 2
    SCALED_PLAIN = 3


cdef int scaled_prepare(ScaledTask* task, int device, uint64_t stream, const ScaledProduct* given,
                        const Operand* out) except -1 nogil:
    cdef Side left, right
    task.given = given
    task.out = out[0]
    task.kind = SCALED_NOTHING
    task.steps.count = task.has_epilogue = task.has_copy = 0
    task.task.device, task.task.stream = device, stream
    task.task.plan = NULL
    task.task.scratch = 0
    temporaries_init(&task.temporaries, device, stream)
    temporaries_init(&task.task.temporaries, device, stream)
    check_extents(out, given.a, b"the first operand")
    check_extents(out, given.b, b"the second operand")
    if given.scale_a is not NULL:
        check_extents(out, given.scale_a, b"scale_a")
        check_extents(out, given.scale_b, b"scale_b")
    if given.bias is not NULL:
        check_extents(out, given.bias, b"the bias")
    if given.result_scale is not NULL:
        check_extents(out, given.result_scale, b"scale_result")
    if device_kind(device) == DEVICE_HOST:
        task.kind = SCALED_HOST
        return 0
    if out.shape[0] == 0 or out.shape[1] == 0:
        return 0
    epilogue_init(&task.epilogue)
    side_init(&left, given.a, given.scale_a, False)
    side_init(&right, given.b, given.scale_b, True)
    if left.k and library_prepare(task, &left, &right):
        task.kind = SCALED_LIBRARY
        return 0
    task.kind = SCALED_PLAIN
    return prepare_plain(task, &left, &right)


# ---- plain values

cdef int prepare_plain(ScaledTask* task, Side* left, Side* right) except -1 nogil:
    cdef const ScaledProduct* given = task.given
    cdef bint is_blocked = left.is_blocked or right.is_blocked
    cdef int dtype = DT_FLOAT32
    options_init(&task.options, given.precision & DETERMINISTIC)
    if not is_blocked:
        dtype = DT_FLOAT16 if task.out.dtype == DT_FLOAT16 else DT_BFLOAT16
    if left.k == 0:
        # Without terms, no scale is read.
        left.matrix.dtype = right.matrix.dtype = dtype
        left.has_scale = right.has_scale = 0
    elif not is_blocked:
        stage_values(left, dtype, &task.temporaries, &task.steps)
        stage_values(right, dtype, &task.temporaries, &task.steps)
    else:
        stage_scaled_values(left, &task.temporaries, &task.steps)
        stage_scaled_values(right, &task.temporaries, &task.steps)
    task.left = left.matrix
    task.right = right.matrix
    task.right.shape[0], task.right.shape[1] = right.k, right.rows
    task.right.strides[0], task.right.strides[1] = right.matrix.strides[1], right.matrix.strides[0]
    task.result = task.out
    if (not left.has_scale or is_blocked) and given.result_scale is NULL and (
            task.out.dtype == DT_FLOAT32 or task.out.dtype == dtype):
        task.options.bias, task.options.activation = given.bias, given.activation
    else:
        task.has_epilogue = 1
        if task.out.dtype != DT_FLOAT32:
            take_operand(&task.temporaries, &task.out, DT_FLOAT32, &task.result)
        if left.has_scale and not is_blocked:
            scale_rows_and_columns(task, left, right)
        finish_with(task, given.bias, given.activation)
    return task_prepare(&task.task, task.task.device, task.task.stream, &task.left, &task.right,
                        &task.result, &task.options)


cdef void scale_rows_and_columns(ScaledTask* task, const Side* left,
                                 const Side* right) noexcept nogil:
    task.row_scale = task.column_scale = task.out
    task.row_scale.dtype = task.column_scale.dtype = DT_FLOAT32
    task.row_scale.ptr, task.column_scale.ptr = left.scale.ptr, right.scale.ptr
    task.row_scale.strides[0] = left.scale.strides[0] if left.has_row_scales else 0
    task.column_scale.strides[1] = right.scale.strides[0] if right.has_row_scales else 0
    task.row_scale.strides[1] = task.column_scale.strides[0] = 0
    task.epilogue.scale, task.epilogue.scale2 = &task.row_scale, &task.column_scale


cdef void finish_with(ScaledTask* task, const Operand* bias, int activation) noexcept nogil:
    task.has_epilogue = 1
    task.epilogue.activation = activation
    task.epilogue.result_scale = task.given.result_scale
    if bias is not NULL:
        along_last_axis(bias, &task.out, &task.bias)
        task.epilogue.bias = &task.bias


# ---- launch

cdef int scaled_launch(ScaledTask* task) except -1 nogil:
    cdef int device = task.task.device
    cdef uint64_t stream = task.task.stream
    if task.kind == SCALED_HOST:
        return scaled_launch_host(task)
    if task.kind == SCALED_NOTHING:
        return 0
    steps_launch(&task.steps, device, stream)
    if task.kind == SCALED_LIBRARY:
        task_run_library(&task.task)
    else:
        task_launch(&task.task)
    if task.has_epilogue:
        return epilogue_run(device, stream, &task.epilogue, &task.result, &task.out)
    if task.has_copy:
        return elementwise(OP_COPY, device, stream, task.out.dtype, &task.out, 1, &task.result)
    return 0


cdef int scaled_launch_host(ScaledTask* task) except -1 with gil:
    cdef const ScaledProduct* given = task.given
    cdef int device = task.task.device
    return host_call(device, task.task.stream, SCALED_CALL, (
        ACTIVATION_NAMES[given.activation], given.is_fast != 0, given.precision,
        call_argument(device, &task.out), call_argument(device, given.a),
        call_argument(device, given.b), call_argument(device, given.scale_a),
        call_argument(device, given.scale_b), call_argument(device, given.result_scale),
        call_argument(device, given.bias)))


cdef void scaled_release(ScaledTask* task) noexcept nogil:
    task_release(&task.task)
    temporaries_release(&task.temporaries)
