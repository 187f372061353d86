"""The end of a product: scales, bias, activation and residual in one launch."""

cdef enum:
    EPILOGUE_BLOCK = 256
    UNROLL = 2                  # units a thread has in flight; as in programs.py
    EPILOGUE_MAX_GRID = 65536
    EPILOGUE_MAX_OFFSET = 0x7FFFFFFF
    OUT = 6                     # number of the target among the operands
    OPERANDS = 7

ctypedef const Operand* OperandPtr

cdef extern from "gputensor/blas/kernels/epilogue/epilogue.h" namespace "gputensor" nogil:
    cdef struct Axis "gputensor::EpilogueAxis":
        uint64_t size
        int64_t[OPERANDS] strides

    cdef struct EpilogueParameters:
        uint64_t[OUT] inputs
        uint64_t out
        uint64_t units
        Axis[MAX_NDIM] axes

    unsigned epilogue_nbytes(int rank)


# A variant of the kernel; types take 5 bits of its key, the vector width at most 16.
cdef struct EpilogueVariant:
    int[4] types                # source, bias, residual, target
    int activation
    int rank
    int vector
    int is_scaled
    int is_plain
    int is_wide

cdef KernelTable epilogue_kernels


cdef void epilogue_init(Epilogue* epilogue) noexcept nogil:
    epilogue.activation = ACT_NONE
    epilogue.scale = epilogue.scale2 = epilogue.bias = NULL
    epilogue.residual = epilogue.result_scale = NULL


cdef void along_last_axis(const Operand* vector, const Operand* target,
                          Operand* out) noexcept nogil:
    cdef int axis
    out[0] = target[0]
    out.ptr, out.dtype = vector.ptr, vector.dtype
    for axis in range(target.ndim):
        out.strides[axis] = 0
    out.strides[target.ndim - 1] = vector.strides[0]


cdef int merge_axes(OperandPtr* operands, EpilogueParameters* p) noexcept nogil:
    """Fill the axes of several elements, innermost first, merge neighbours; return the rank."""
    cdef const Operand* target = operands[OUT]
    cdef Axis* inner
    cdef Axis one
    cdef int rank = 0
    cdef int axis, number
    cdef bint is_joined
    for axis in range(target.ndim - 1, -1, -1):
        if target.shape[axis] == 1:
            continue
        one.size = <uint64_t>target.shape[axis]
        for number in range(OPERANDS):
            one.strides[number] = operands[number].strides[axis] if operands[number] else 0
        if rank:
            inner = &p.axes[rank - 1]
            is_joined = True
            for number in range(OPERANDS):
                if one.strides[number] != inner.strides[number] * <int64_t>inner.size:
                    is_joined = False
            if is_joined:
                inner.size *= one.size
                continue
        p.axes[rank] = one
        rank += 1
    if rank == 0:
        p.axes[0].size = 1
        for number in range(OPERANDS):
            p.axes[0].strides[number] = 0
        rank = 1
    # Few ranks need few kernels, and axes of one element cost a thread almost no time.
    while rank > 2 and rank != 4 and rank != MAX_NDIM:
        p.axes[rank].size = 1
        for number in range(OPERANDS):
            p.axes[rank].strides[number] = 0
        rank += 1
    return rank


cdef void turn_inwards(EpilogueParameters* p, int rank) noexcept nogil:
    """Make the axis along which the target is contiguous the innermost."""
    cdef Axis axis
    cdef int position
    for position in range(1, rank):
        if p.axes[position].strides[OUT] == 1:
            axis = p.axes[position]
            p.axes[position] = p.axes[0]
            p.axes[0] = axis
            return


cdef int vector_of(OperandPtr* operands, const EpilogueParameters* p, int rank) noexcept nogil:
    """Return the elements a thread takes at once: 16 bytes of the wider of source and target, or 1.

    An operand with another stride than 1 along the innermost axis is read element by element.
    """
    cdef int64_t size_source = dtype_itemsize(operands[0].dtype)
    cdef int64_t size_target = dtype_itemsize(operands[OUT].dtype)
    cdef int64_t vector = 16 // (size_source if size_source > size_target else size_target)
    cdef int number, position
    if p.axes[0].strides[0] != 1 or p.axes[0].strides[OUT] != 1 or p.axes[0].size % vector:
        return 1
    for number in range(OPERANDS):
        if operands[number] is NULL or p.axes[0].strides[number] != 1:
            continue
        if operands[number].ptr % <uint64_t>(vector * dtype_itemsize(operands[number].dtype)):
            return 1
        for position in range(1, rank):
            if p.axes[position].strides[number] % vector:
                return 1
    return <int>vector


cdef bint is_wide(const EpilogueParameters* p, int rank) noexcept nogil:
    """Whether an index or an offset needs more than 31 bits."""
    cdef int64_t reach
    cdef int64_t size = 1
    cdef int number, position
    for number in range(OPERANDS):
        reach = 0
        for position in range(rank):
            reach += llabs(p.axes[position].strides[number]) * <int64_t>(p.axes[position].size - 1)
        if reach > EPILOGUE_MAX_OFFSET:
            return True
    for position in range(rank):
        size *= <int64_t>p.axes[position].size
    return size > EPILOGUE_MAX_OFFSET


cdef int epilogue_run(int device, uint64_t stream, const Epilogue* epilogue,
                      const Operand* source, const Operand* target) except -1 nogil:
    cdef EpilogueParameters p
    cdef EpilogueVariant variant
    cdef OperandPtr[OPERANDS] operands
    cdef Launch launch
    cdef uint64_t grid
    cdef int number, rank, axis
    for axis in range(target.ndim):
        if target.shape[axis] == 0:
            return 0
    if dtype_kind(target.dtype) != KIND_FLOAT and dtype_kind(target.dtype) != KIND_SMALL:
        return add_bias(device, stream, epilogue, source, target)
    memset(&p, 0, sizeof(p))
    operands[0], operands[1], operands[2] = source, epilogue.scale, epilogue.scale2
    operands[3], operands[4] = epilogue.bias, epilogue.residual
    operands[5], operands[OUT] = epilogue.result_scale, target
    for number in range(OUT):
        p.inputs[number] = operands[number].ptr if operands[number] else 0
    p.out = target.ptr
    rank = merge_axes(operands, &p)
    turn_inwards(&p, rank)
    variant.activation, variant.rank = epilogue.activation, rank
    variant.vector = vector_of(operands, &p, rank)
    variant.is_wide = is_wide(&p, rank)
    variant.is_scaled = operands[1] is not NULL or operands[2] is not NULL
    variant.is_plain = operands[3] is NULL and operands[4] is NULL
    variant.types[0], variant.types[3] = source.dtype, target.dtype
    variant.types[1] = operands[3].dtype if operands[3] else target.dtype
    variant.types[2] = operands[4].dtype if operands[4] else target.dtype
    p.units = p.axes[0].size // <uint64_t>variant.vector
    for axis in range(1, rank):
        p.units *= p.axes[axis].size
    grid = (p.units + EPILOGUE_BLOCK * UNROLL - 1) // (EPILOGUE_BLOCK * UNROLL)
    launch_init(&launch, device, stream,
                <uint32_t>(grid if grid < EPILOGUE_MAX_GRID else EPILOGUE_MAX_GRID),
                EPILOGUE_BLOCK, &p, epilogue_nbytes(rank))
    return launch_kernel(kernel_of(&epilogue_kernels, epilogue_key(&variant), epilogue_program,
                                   &variant), &launch)


cdef uint64_t epilogue_key(const EpilogueVariant* variant) noexcept nogil:
    cdef uint64_t key = 0
    cdef int index
    for index in range(4):
        key = key << 5 | <uint64_t>variant.types[index]
    key = key << 5 | <uint64_t>variant.activation
    key = key << 5 | <uint64_t>variant.rank
    key = key << 5 | <uint64_t>variant.vector
    key = key << 1 | <uint64_t>variant.is_plain
    return key << 2 | <uint64_t>(variant.is_scaled << 1 | variant.is_wide)


cdef object epilogue_program(const void* given):
    cdef EpilogueVariant* variant = <EpilogueVariant*>given
    return programs.epilogue(tuple(variant.types), variant.activation, variant.rank,
                             variant.vector, bool(variant.is_scaled), bool(variant.is_plain),
                             bool(variant.is_wide))


cdef int add_bias(int device, uint64_t stream, const Epilogue* epilogue, const Operand* source,
                  const Operand* target) except -1 nogil:
    cdef Operand[2] inputs
    cdef Operand out = target[0]
    inputs[0], inputs[1] = source[0], epilogue.bias[0]
    return elementwise(OP_ADD, device, stream, target.dtype, &out, 2, inputs)
