# The doors of this room's calls, which make recorded calls on any device (calls.py).
#
# A door trusts its arguments, which calls.make has checked.

cdef dict OPERATION_CODES = {row.name: row.code for row in ELEMENTWISE}
cdef dict REDUCTION_CODES = {row.name: row.code for row in REDUCTIONS}
cdef dict DTYPE_CODES = {row.name: row.code for row in DTYPES}


cdef Operand* operand_of(CallOperand given) except NULL:
    return &given.c


cdef int copy_operands(Operand* operands, tuple given) except -1:
    """Copy the operands into an array, as the faces take them; return their number."""
    cdef int i, count = len(given)
    if count > MAX_NDIM:
        raise argument_error(ValueError, "operands", count, "at most 16")
    for i in range(count):
        operands[i] = operand_of(given[i])[0]
    return count


def _elementwise_door(int device, uint64_t stream, tuple arguments):
    cdef Operand[16] inputs
    cdef int op = OPERATION_CODES[arguments[0]]
    cdef int count = copy_operands(inputs, arguments[3:])
    elementwise(op, device, stream, DTYPE_CODES[arguments[1]], operand_of(arguments[2]), count,
                inputs)


def _reduce_door(int device, uint64_t stream, tuple arguments):
    op, compute, axes, out, x = arguments
    cdef uint32_t mask = sum([1 << axis for axis in axes])
    if not has_no_elements(operand_of(out)):
        reduce(REDUCTION_CODES[op], device, stream, DTYPE_CODES[compute], operand_of(out),
               operand_of(x), mask)


def _gather_door(int device, uint64_t stream, tuple arguments):
    cdef Operand[16] indices
    cdef int count = copy_operands(indices, arguments[3:])
    cdef Operand* out = operand_of(arguments[1])
    if not has_no_elements(out):
        gather(device, stream, out, operand_of(arguments[2]), arguments[0], count, indices)


def _scatter_door(int device, uint64_t stream, tuple arguments):
    cdef Operand[16] indices
    cdef int count = copy_operands(indices, arguments[3:])
    cdef Operand* values = operand_of(arguments[2])
    if not has_no_elements(values):
        scatter(device, stream, operand_of(arguments[1]), arguments[0], count, indices, values)


def _check_door(int device, uint64_t stream, tuple arguments):
    cdef Operand[16] indices
    cdef Operand whole
    cdef int i, count = copy_operands(indices, arguments[1:])
    for i in range(count):
        whole.shape[i] = arguments[0][i]
    check_unused(device, stream, &whole, 0, count, indices)


def _arange_door(int device, uint64_t stream, tuple arguments):
    start, step, out = arguments
    cdef uint64_t whole_start = int(start) & 0xFFFFFFFFFFFFFFFF if type(start) is int else 0
    cdef uint64_t whole_step = int(step) & 0xFFFFFFFFFFFFFFFF if type(step) is int else 0
    arange(device, stream, operand_of(out), start, step, <int64_t>whole_start, <int64_t>whole_step)


cdef object ELEMENTWISE_CALL = bind("elementwise", elementwise_on_host.run, _elementwise_door)
cdef object REDUCE_CALL = bind("reduce", reduction_on_host.run, _reduce_door)
cdef object GATHER_CALL = bind("gather", index_on_host.run_gather, _gather_door)
cdef object SCATTER_CALL = bind("scatter", index_on_host.run_scatter, _scatter_door)
cdef object CHECK_CALL = bind("check_indices", index_on_host.run_check, _check_door)
cdef object ARANGE_CALL = bind("arange", index_on_host.run_arange, _arange_door)
