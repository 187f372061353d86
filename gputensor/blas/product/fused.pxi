"""Products of a few rows of x with a norm before and further steps after them, in one kernel.

One kernel computes everything only where our skinny kernel would also compute the product alone, or
where the panels of the product fit into shared memory (kernels/panel). Elsewhere the single calls
are made instead (blas/host/fused.py), with temporary memory.
"""

cdef enum:
    # Rows of x that every block normalizes itself; with more rows, the norm is a separate kernel.
    MOST_NORMED_ROWS = 4


@cython.final
cdef class _Maker:
    """A maker for one stream (blas/host/fused.py); its memory is kept until `release`."""
    cdef Temporaries temporaries

    def __cinit__(self, int device, uint64_t stream):
        temporaries_init(&self.temporaries, device, stream)

    cdef int release(self) except -1:
        temporaries_release(&self.temporaries)
        return 0

    def new(self, str dtype, shape):
        cdef CallOperand like = CallOperand(0, dtype, shape)
        cdef Operand made
        take_operand(&self.temporaries, &like.c, like.c.dtype, &made)
        return like.at(made.ptr)

    def part(self, CallOperand x, shape, strides, first=0):
        return CallOperand(x.c.ptr + first * dtype_itemsize(x.c.dtype), x.dtype, shape, strides)

    def call(self, str name, *arguments):
        bound_row(name).door(self.temporaries.device, self.temporaries.stream, arguments)

    def turned(self, CallOperand x):
        return CallOperand(x.c.ptr, x.dtype, x.shape[::-1], x.strides[::-1])

    def dtype(self, CallOperand x):
        return x.dtype


cdef bint fill_skinny(SkinnyProduct* small, int device, CallOperand x, CallOperand weight,
                      CallOperand scales, CallOperand bias, int64_t n):
    """Fill the product without its fusion; return whether our kernel is the faster one for it."""
    memset(small, 0, sizeof(SkinnyProduct))
    small.device, small.type_x, small.type_y = device, x.c.dtype, x.c.dtype
    small.m, small.k, small.n = x.c.shape[0], x.c.shape[1], n
    small.x, small.w, small.x_pitch = x.c.ptr, weight.c.ptr, small.k
    small.form, small.w_pitch, small.alpha = FORM_PLAIN, small.k, 1
    small.bias = bias.c.ptr if bias is not None else 0
    if scales is None:
        return weight.c.dtype == x.c.dtype and skinny_half_wins(small.m, n, small.k)
    small.scales = scales.c.ptr
    small.group = <int>(small.k // scales.c.shape[0]) if scales.c.shape[0] > 1 else 0
    small.form = FORM_INT8
    if weight.c.dtype == DT_UINT8:
        small.form, small.w_pitch = FORM_INT4, weight.c.shape[1]
    return True


cdef void fill_pairs(SkinnyProduct* small, int64_t distance) noexcept:
    """Fill the second features of all pairs, which are `distance` rows of the weights away."""
    cdef SkinnyFusion* fused = &small.fused
    cdef int64_t step = small.w_pitch * distance
    if small.form == FORM_INT4:
        step = small.w_pitch * 512 * distance // 16
    elif small.form == FORM_PLAIN:
        step *= 2
    fused.pair_count = small.n // 2
    fused.second_w = small.w + <uint64_t>step
    fused.second_scales = small.scales + <uint64_t>(2 * distance) if small.scales else 0
    fused.second_bias = small.bias + <uint64_t>(2 * distance) if small.bias else 0
    fused.scales_pitch, fused.last = small.n, small.n - distance - 1


cdef bint with_norm(SkinnyProduct* small, CallOperand gain, float epsilon, bint is_centered,
                    CallOperand shift):
    """Return whether the kernel normalizes x itself; if not, the caller does it first."""
    cdef SkinnyFusion* fused = &small.fused
    if gain is None:
        return True
    fused.gain, fused.epsilon, fused.is_centered = gain.c.ptr, epsilon, is_centered
    fused.shift = shift.c.ptr if shift is not None else 0
    if small.m <= MOST_NORMED_ROWS and skinny_fusion_fits(small):
        return True
    fused.gain = fused.shift = fused.is_centered = 0
    return False


cdef int run_skinny(SkinnyProduct* small, _Maker maker, CallOperand x, CallOperand gain,
                    double epsilon, bint is_centered=False, CallOperand shift=None) except -1:
    """Queue the product with our kernel; return False where that kernel cannot compute it."""
    cdef CallOperand rows = x
    if small.m < 1 or not with_norm(small, gain, epsilon, is_centered, shift):
        if not skinny_fusion_fits(small):
            return False
        rows = fused_host.normed(maker, epsilon, x, gain, is_centered, shift)
        small.x = rows.c.ptr
    elif not skinny_fusion_fits(small):
        return False
    skinny_product_run(small, maker.temporaries.stream)
    return True


cdef bint takes_own(int device, CallOperand x):
    return dtype_is_half(x.c.dtype) and known_facts(device).capability >= 80


def _fused_door(int device, uint64_t stream, tuple arguments):
    cdef SkinnyProduct small
    cdef CallOperand out, x, weight, scales, gain, shift, bias, addend
    cdef _Maker maker
    epsilon, is_centered, activation, is_gated, is_steady, precision = arguments[:6]
    out, x, weight, scales, gain, shift, bias, addend = arguments[6:]
    along_terms = check_operands(arguments[6:], 2, "fused_product")
    if device_kind(device) == DEVICE_HOST:
        host_call(device, stream, FUSED_CALL, given_to_host(device, 6, arguments))
        return
    if 0 in x.shape or 0 in out.shape:
        return
    if (scales is None and gain is None and not is_gated and along_terms
            and brief_programs.brief_wins(x.c.shape[0], *weight.shape, x.dtype)):
        trees, _used = fused_host.epilogue_trees(
            1, 1, activation, addend is not None, False, False)
        if run_brief(device, stream, formula_of(trees), is_steady,
                     (out, x, weight, bias, addend)):
            return
    if scales is None and not is_gated and run_panel(
            device, stream, (epsilon, is_centered, activation, is_steady), along_terms,
            (out, None, x, weight, gain, shift, bias, addend)):
        return
    maker = _Maker(device, stream)
    try:
        if along_terms and takes_own(device, x) and fill_skinny(
                &small, device, x, weight, scales, bias,
                out.c.shape[1] * (2 if is_gated else 1)):
            small.y, small.y_pitch, small.is_steady = out.c.ptr, out.c.shape[1], is_steady
            if addend is not None:
                small.addend, small.addend_pitch, small.beta = addend.c.ptr, small.n, 1
            small.fused.gate = ACTIVATION_NAMES.index(activation)
            if is_gated:
                small.fused.pairs = PAIRS_GATED
                fill_pairs(&small, out.c.shape[1])
            if run_skinny(&small, maker, x, gain, epsilon, is_centered, shift):
                return
        fused_host.fused(*arguments, maker=maker)
    finally:
        maker.release()


cdef bint check_operands(tuple operands, int weight, str name) except -1:
    """Return whether the rows of the weights are along k; refuse operands that are not dense."""
    cdef CallOperand given = operands[weight]
    cdef bint is_turned = given.c.strides[0] == 1 and given.c.strides[1] == given.c.shape[0]
    cdef bint along_terms = given.c.strides[1] == 1 or not is_turned
    for number, operand in enumerate(operands):
        if number != weight or along_terms:
            check_dense(operand, name)
    return along_terms


cdef bint run_panel(int device, uint64_t stream, tuple attributes, bint along_terms,
                    tuple operands) except -1:
    """Queue a product of more than one row as panels; return False where they do not fit."""
    cdef CallOperand out, normed, x, weight, gain, shift, bias, addend
    cdef PanelProduct p
    out, normed, x, weight, gain, shift, bias, addend = operands
    if x.c.shape[0] < 2 or not takes_own(device, x) or weight.c.dtype != x.c.dtype:
        return False
    memset(&p, 0, sizeof(p))
    epsilon, is_centered, activation, is_steady = attributes
    p.device, p.type, p.along_terms, p.is_steady = device, x.c.dtype, along_terms, is_steady
    p.epsilon, p.is_centered, p.gate = epsilon, is_centered, ACTIVATION_NAMES.index(activation)
    p.m, p.k, p.n = x.c.shape[0], x.c.shape[1], out.c.shape[1]
    p.x_pitch, p.w_pitch = p.k, p.k if along_terms else p.n
    p.y_pitch = p.addend_pitch = p.n
    p.x, p.w, p.y = x.c.ptr, weight.c.ptr, out.c.ptr
    p.gain, p.shift, p.bias, p.addend, p.normed = (
        address_or_0(gain), address_or_0(shift), address_or_0(bias), address_or_0(addend),
        address_or_0(normed))
    return panel_run(&p, stream)


cdef inline uint64_t address_or_0(CallOperand operand):
    return 0 if operand is None else operand.c.ptr


def _normed_door(int device, uint64_t stream, tuple arguments):
    cdef CallOperand out = arguments[5], x = arguments[7]
    cdef _Maker maker
    along_terms = check_operands(arguments[5:], 3, "normed_product")
    if device_kind(device) == DEVICE_HOST:
        host_call(device, stream, NORMED_CALL, given_to_host(device, 5, arguments))
        return
    if 0 in x.shape:
        return
    if 0 not in out.shape and run_panel(device, stream, arguments[:4], along_terms, arguments[5:]):
        return
    maker = _Maker(device, stream)
    try:
        fused_host.normed_product(*arguments, maker=maker)
    finally:
        maker.release()


def _rotary_door(int device, uint64_t stream, tuple arguments):
    cdef SkinnyProduct small
    cdef CallOperand out, keys, values, x, weight, scales, gain, bias, cosines, sines, places
    cdef _Maker maker
    cdef SkinnyFusion* fused = &small.fused
    (epsilon, is_steady, precision, out, keys, values, x, weight, scales, gain, bias, cosines,
     sines, places) = arguments
    for operand in (out, *arguments[6:]):
        check_dense(operand, "rotary_product")
    if device_kind(device) == DEVICE_HOST:
        host_call(device, stream, ROTARY_CALL, given_to_host(device, 3, arguments))
        return
    maker = _Maker(device, stream)
    try:
        if takes_own(device, x) and places.c.dtype in (DT_INT32, DT_INT64) and fill_skinny(
                &small, device, x, weight, scales, bias,
                (out.c.shape[0] + 2 * keys.c.shape[0]) * out.c.shape[2]):
            small.y, small.y_pitch, small.is_steady = out.c.ptr, out.c.shape[2], is_steady
            fused.pairs, fused.half = PAIRS_ROTATED, out.c.shape[2] // 2
            fill_pairs(&small, fused.half)
            fused.cosines, fused.sines, fused.places = cosines.c.ptr, sines.c.ptr, places.c.ptr
            fused.keys, fused.values, fused.length = keys.c.ptr, values.c.ptr, keys.c.shape[1]
            fused.key_head, fused.key_row = keys.c.strides[0], keys.c.strides[1]
            fused.value_head, fused.value_row = values.c.strides[0], values.c.strides[1]
            fused.heads, fused.kept = <int>out.c.shape[0], <int>keys.c.shape[0]
            fused.long_places = places.c.dtype == DT_INT64
            if keys.c.strides[2] == 1 and values.c.strides[2] == 1 and run_skinny(
                    &small, maker, x, gain, epsilon):
                return
        fused_host.rotary(*arguments, maker=maker)
    finally:
        maker.release()


def _row_door(int device, uint64_t stream, tuple arguments):
    cdef _Maker maker
    trees, is_steady, precision, out, x, weight, bias = arguments
    for operand in arguments[3:]:
        check_dense(operand, "row_product")
    if device_kind(device) == DEVICE_HOST:
        host_call(device, stream, ROW_CALL, given_to_host(device, 3, arguments))
        return
    if 0 in x.shape or 0 in out.shape:
        return
    if brief_programs.brief_row_wins(x.shape[0], *weight.shape, x.dtype) and run_brief(
            device, stream, formula_of(trees), is_steady, (out, x, weight, bias, None)):
        return
    maker = _Maker(device, stream)
    try:
        fused_host.row_product(*arguments, maker=maker)
    finally:
        maker.release()


cdef tuple given_to_host(int device, int attributes, tuple arguments):
    """Return the arguments of a call in the form that `host_call` expects."""
    cdef list found = list(arguments[:attributes])
    for operand in arguments[attributes:]:
        found.append(call_argument(device, operand_or_null(operand)))
    return tuple(found)


cdef object FUSED_CALL = bind("fused_product", fused_host.fused, _fused_door)
cdef object NORMED_CALL = bind("normed_product", fused_host.normed_product, _normed_door)
cdef object ROW_CALL = bind("row_product", fused_host.row_product, _row_door)
cdef object ROTARY_CALL = bind("rotary_product", fused_host.rotary, _rotary_door)
