"""Attention as a product, a formula along rows and a product: any element type and head size.

The heads that share keys are stacked, so no key is copied. Scores of 16-bit floats are float32.
"""

cdef dict weight_formulas = {}      # scale, is_causal, window, cap, mask, has length -> RowFormula

cdef RowFormula weight_formula(const Attention* given):
    cdef object kind = None, found
    cdef tuple key
    if given.mask != NULL:
        kind = "bool" if given.mask.dtype == DT_BOOL else "float"
    key = (given.scale, bool(given.is_causal), given.window, given.soft_cap, kind,
           given.length != NULL)
    found = weight_formulas.get(key)
    if found is None:
        found = weight_formulas.setdefault(key, RowFormula(weight_trees(*key)))
    return <RowFormula>found


# The values of keys from the length on, which may be anything, become 0: a weight of 0 times NaN
# would be NaN. The operands are the values and the length.
cdef object kept_values = None

cdef RowFormula kept_values_formula():
    global kept_values
    if kept_values is None:
        kept_values = RowFormula([("where", ("lt", ("row",), ("load", 1)), ("load", 0),
                                   ("number", 0))])
    return <RowFormula>kept_values


cdef void matrix_of(const Operand* given, int64_t shared, Operand* out) noexcept nogil:
    """[batch, heads, rows, size] as [batch, kept heads, shared * rows, size]."""
    out[0] = given[0]
    out.shape[1] = given.shape[1] // shared
    out.strides[1] = given.strides[1] * shared
    out.shape[2] = given.shape[2] * shared
    if given.shape[2] == 1:
        out.strides[2] = given.strides[1]


cdef bint stacks(const Operand* given, int64_t shared) noexcept nogil:
    return shared == 1 or given.shape[2] == 1 or (
        given.strides[1] == given.strides[2] * given.shape[2])


cdef int plain_product(int device, uint64_t stream, const Operand* a, const Operand* b,
                       Operand* out, uint32_t precision) except -1:
    cdef Options options
    cdef Task task
    memset(&task, 0, sizeof(task))
    options_init(&options, precision)
    try:
        task_prepare(&task, device, stream, a, b, out, &options)
        task_launch(&task)
    finally:
        task_release(&task)
    return 0


cdef int plain_attention(int device, uint64_t stream, const Attention* given) except -1:
    cdef Temporaries temporaries
    cdef Operand query, key, value, scores, weights, result, stacked, stacked_weights
    cdef Operand[4] operands
    cdef Operand[3] kept
    cdef int64_t shared = given.query.shape[1] // given.key.shape[1]
    cdef int count = 1, axis, dtype = given.query.dtype
    cdef RowFormula formula = weight_formula(given)
    temporaries_init(&temporaries, device, stream)
    try:
        query = given.query[0]
        if not stacks(&query, shared):
            take_operand(&temporaries, given.query, dtype, &query)
        scores = given.out[0]
        scores.shape[3] = given.key.shape[2]
        take_operand(&temporaries, &scores, DT_FLOAT32 if dtype_is_half(dtype) else dtype,
                     &operands[0])
        take_operand(&temporaries, &scores, dtype, &weights)
        result = given.out[0]
        if not stacks(given.out, shared):
            take_operand(&temporaries, given.out, dtype, &result)
        if query.ptr != given.query.ptr:
            elementwise(OP_COPY, device, stream, dtype, &query, 1, <Operand*>given.query)
        matrix_of(&query, shared, &stacked)
        key = given.key[0]
        key.shape[2], key.shape[3] = given.key.shape[3], given.key.shape[2]
        key.strides[2], key.strides[3] = given.key.strides[3], given.key.strides[2]
        matrix_of(&operands[0], shared, &scores)
        plain_product(device, stream, &stacked, &key, &scores, given.precision)
        if given.mask != NULL:
            operands[count] = given.mask[0]
            count += 1
        if given.length != NULL:
            operands[count] = operands[0]
            operands[count].ptr, operands[count].dtype = given.length.ptr, given.length.dtype
            operands[count].strides[0] = given.length.strides[0]
            for axis in range(1, 4):
                operands[count].strides[axis] = 0
            count += 1
        operands[count] = weights
        run_formula(formula, device, stream, operands, 1)
        value = given.value[0]
        if given.length != NULL:
            take_operand(&temporaries, given.value, dtype, &value)
            kept[0], kept[1], kept[2] = given.value[0], given.value[0], value
            kept[1].ptr, kept[1].dtype = given.length.ptr, given.length.dtype
            kept[1].strides[0] = given.length.strides[0]
            for axis in range(1, 4):
                kept[1].strides[axis] = 0
            run_formula(kept_values_formula(), device, stream, kept, 1)
        matrix_of(&weights, shared, &stacked_weights)
        matrix_of(&result, shared, &stacked)
        plain_product(device, stream, &stacked_weights, &value, &stacked, given.precision)
        if result.ptr != given.out.ptr:
            elementwise(OP_COPY, device, stream, dtype, <Operand*>given.out, 1, &result)
    finally:
        temporaries_release(&temporaries)
    return 0
