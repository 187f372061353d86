"""Products with a formula of their results: the call `formula_product`, and tiles for `product`.

A GPU makes the product and then the formula, unless tiles are requested: then one kernel computes
both, if it supports the operands. `programs/ahead/tune.py` requests them to measure them.
"""

cdef bint[MAX_DEVICES] tiles_wanted     # by device + HOST_DEVICES
cdef dict tile_endings = {}             # (formula, is_paired, others) -> TileEnding


def plan_tiles(int device, bint is_wanted):
    """Have a GPU compute products of 16-bit floats by tiles, with what follows them inside."""
    tiles_wanted[device + HOST_DEVICES] = is_wanted


cdef TileEnding ending_of(object formula, bint is_paired, tuple others):
    cdef TileEnding found = tile_endings.get((formula, is_paired, others))
    if found is None:
        found = TileEnding()
        found.defines = quantized_programs.ending(formula, is_paired, others)
        found = tile_endings.setdefault((formula, is_paired, others), found)
    return found


cdef bint run_inside(int device, uint64_t stream, tuple arguments) except -1:
    """Queue a product with its formula as one kernel; False where that kernel cannot compute it."""
    cdef QuantizedTask task
    cdef SkinnyProduct* small = &task.small
    cdef CallOperand out, x, weight, scales, bias, one
    cdef TileEnding ending
    cdef list kinds = []
    cdef int number
    cdef bint is_paired = arguments[1]
    trees, _, _, out, x, weight, scales, bias, *others = arguments
    if not takes_own(device, x):
        return False
    memset(&task, 0, sizeof(task))
    for number, operand in enumerate(others):
        if operand is None:
            break
        one = operand
        if one.dtype not in programs.KINDS:
            return False
        kinds.append((one.dtype, one.c.strides[0] == 0))
        task.others[number] = TileOperand(one.c.ptr, one.c.strides[0], one.c.strides[1])
    fill_skinny(small, device, x, weight, scales, bias, out.c.shape[1] * (2 if is_paired else 1))
    small.type_y, small.y, small.y_pitch = out.c.dtype, out.c.ptr, out.c.shape[1]
    small.m = min(<int64_t>SKINNY_MAX_ROWS, x.c.shape[0])
    if not skinny_product_fits(small) or (is_paired and small.n % 32):
        return False
    small.m, small.fused.pairs = x.c.shape[0], PAIRS_GATED if is_paired else PAIRS_NONE
    if not tile_choose(small, True, &task.shape):
        return False
    ending = ending_of(formula_of(trees), is_paired, tuple(kinds))
    task.ending = <void*>ending
    temporaries_init(&task.temporaries, device, stream)
    try:
        if not take_tile_memory(&task):
            return False
        tile_run(&task, stream)
    finally:
        temporaries_release(&task.temporaries)
    return True


cdef bint is_dense(CallOperand operand):
    try:
        check_dense(operand, "product")
    except ValueError:
        return False
    return True


cdef bint product_inside(int device, uint64_t stream, tuple arguments) except -1:
    """Queue a `product` with its epilogue as one kernel; False where no kernel can compute it."""
    cdef CallOperand out, a, b, bias
    cdef int64_t rows, n, k
    cdef int last
    cdef tuple shape
    alpha, beta, activation, _, _, precision, out, a, b, addend, bias, scale, residual = arguments
    if (scale is not None or a.c.ndim < 2 or b.c.ndim < 2 or not is_dense(a) or not is_dense(out)
            or a.c.dtype != b.c.dtype or 0 in a.shape or 0 in out.shape):
        return False
    last = b.c.ndim - 1
    k, n = b.c.shape[last - 1], b.c.shape[last]
    rows = math.prod(a.shape) // k
    if (math.prod(b.shape) != k * n or b.c.strides[last - 1] != 1 or b.c.strides[last] != k
            or out.c.shape[out.c.ndim - 1] != n):
        return False
    shape = (rows, n)
    addend = None if beta == 0 else out if addend is None else addend
    for one in (addend, residual):
        if one is not None and (one.shape != out.shape or not is_dense(one)):
            return False
    trees, used = fused_host.epilogue_trees(
        alpha, beta, activation, addend is not None, bias is not None, residual is not None)
    others = [one and CallOperand(one.address, one.dtype, shape) for one in (addend, residual)]
    others.insert(1, bias and CallOperand(bias.address, bias.dtype, shape, (0, *bias.strides)))
    others = [others[number] for number in used] + [None] * (MOST_TILE_OPERANDS - len(used))
    return run_inside(device, stream, (
        trees, False, precision, CallOperand(out.address, out.dtype, shape),
        CallOperand(a.address, a.dtype, (rows, k)), CallOperand(b.address, b.dtype, (n, k)), None,
        None, *others))


def _formula_door(int device, uint64_t stream, tuple arguments):
    cdef _Maker maker
    for operand in arguments[3:8]:
        check_dense(operand, "formula_product")
    if device_kind(device) == DEVICE_HOST:
        host_call(device, stream, FORMULA_PRODUCT_CALL, given_to_host(device, 3, arguments))
        return
    if 0 in arguments[3].shape:
        return
    if tiles_wanted[device + HOST_DEVICES] and run_inside(device, stream, arguments):
        return
    maker = _Maker(device, stream)
    try:
        fused_host.finished(*arguments, maker=maker)
    finally:
        maker.release()


cdef object FORMULA_PRODUCT_CALL = bind("formula_product", fused_host.finished, _formula_door)
