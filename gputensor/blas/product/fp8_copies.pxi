"""Copies of fp8 matrices and of their scales before a product."""

cdef enum:
    FP8_COPIES_ALIGNMENT = 16              # bytes; the library requires it of addresses and lines
    SCALE_LINE = 4              # scales of 128 x 128 blocks lie in lines of a multiple of this


cdef inline int64_t blocks_of(int64_t size) noexcept nogil:
    return (size + SCALE_BLOCK - 1) // SCALE_BLOCK


cdef Operand matrix_of(const Operand* source, bint is_transposed) noexcept nogil:
    cdef Operand matrix = source[0]
    if is_transposed:
        matrix.shape[0], matrix.shape[1] = source.shape[1], source.shape[0]
        matrix.strides[0], matrix.strides[1] = source.strides[1], source.strides[0]
    return matrix


# `scale` may be NULL. `is_transposed` is true for b.
cdef void side_init(Side* side, const Operand* matrix, const Operand* scale,
                    bint is_transposed) noexcept nogil:
    side.matrix = matrix_of(matrix, is_transposed)
    side.rows, side.k = side.matrix.shape[0], side.matrix.shape[1]
    side.padded_rows = side.rows
    side.has_scale = scale is not NULL
    side.is_blocked = side.has_row_scales = 0
    side.scale_ptr = 0
    if scale is NULL:
        return
    side.scale = matrix_of(scale, is_transposed)
    side.has_row_scales = side.rows > 1 and side.scale.shape[0] == side.rows
    side.is_blocked = side.scale.shape[1] > 1 or (
        side.scale.shape[0] > 1 and not side.has_row_scales)


cdef bint scale_fits(int64_t lines, int64_t columns, int64_t rows, int64_t k) noexcept nogil:
    if lines != 1 and lines != rows and lines != blocks_of(rows):
        return False
    if columns != 1 and columns != blocks_of(k):
        return False
    # Scales for blocks of lines must also be for blocks of terms.
    return lines == 1 or lines == rows or columns == blocks_of(k)


# ---- steps

cdef Step* add_step(Steps* steps, int operation, int count) noexcept nogil:
    cdef Step* step = &steps.items[steps.count]
    step.operation, step.count = operation, count
    steps.count += 1
    return step


cdef void fp8_copies_add_copy(Steps* steps, const Operand* source,
                              const Operand* target) noexcept nogil:
    cdef Step* step = add_step(steps, OP_COPY, 1)
    step.inputs[0], step.target = source[0], target[0]


cdef Operand line_of(uint64_t ptr, int dtype, int64_t size) noexcept nogil:
    cdef Operand line
    line.ptr, line.dtype, line.ndim, line.is_scalar = ptr, dtype, 1, 0
    line.shape[0], line.strides[0] = size, 1
    return line


cdef void add_zeros(Steps* steps, uint64_t ptr, int dtype, int64_t size) noexcept nogil:
    cdef Step* step = add_step(steps, OP_COPY, 0)
    step.target = line_of(ptr, dtype, size)


cdef int steps_launch(Steps* steps, int device, uint64_t stream) except -1 nogil:
    cdef Operand zero
    cdef Step* step
    cdef int index
    zero.is_scalar, zero.ndim, zero.ptr, zero.integer = 1, 0, 0, 0
    zero.real = zero.imag = 0
    for index in range(steps.count):
        step = &steps.items[index]
        if step.count == 0:
            zero.dtype = step.target.dtype
            fill(device, stream, &step.target, &zero)
        else:
            elementwise(step.operation, device, stream, step.target.dtype, &step.target, step.count,
                        step.inputs)
    return 0


# ---- matrices

cdef bint lies_well(const Side* side, int64_t padded_rows, int64_t padded_k) noexcept nogil:
    cdef const Operand* matrix = &side.matrix
    if padded_rows != side.rows or padded_k != side.k or matrix.ptr % FP8_COPIES_ALIGNMENT:
        return False
    if matrix.strides[1] != 1:
        return False
    return side.rows == 1 or (matrix.strides[0] % FP8_COPIES_ALIGNMENT == 0
                              and matrix.strides[0] >= side.k)


# Stages the matrix with lines of padded_k terms at multiples of 16 bytes, with zeros after the
# k-th.
cdef int stage_matrix(Side* side, int64_t padded_rows, int64_t padded_k, Temporaries* temporaries,
                      Steps* steps) except -1 nogil:
    cdef Operand target = side.matrix
    side.padded_rows = padded_rows
    if lies_well(side, padded_rows, padded_k):
        side.ptr = side.matrix.ptr
        side.ld = side.matrix.strides[0] if side.rows > 1 else padded_k
        return 0
    side.ld = padded_k
    take_memory(temporaries, <size_t>(padded_rows * padded_k), &side.ptr)
    if padded_rows != side.rows or padded_k != side.k:
        add_zeros(steps, side.ptr, side.matrix.dtype, padded_rows * padded_k)
    target.ptr, target.strides[0], target.strides[1] = side.ptr, padded_k, 1
    fp8_copies_add_copy(steps, &side.matrix, &target)
    return 0


# Stages the values without scales, as a contiguous matrix of a 16-bit type, which holds them
# exactly.
cdef int stage_values(Side* side, int dtype, Temporaries* temporaries,
                      Steps* steps) except -1 nogil:
    cdef Operand target = side.matrix
    take_memory(temporaries, <size_t>(2 * side.rows * side.k), &target.ptr)
    target.dtype, target.strides[0], target.strides[1] = dtype, side.k, 1
    fp8_copies_add_copy(steps, &side.matrix, &target)
    side.matrix = target
    return 0


# ---- scales

cdef Operand stretched(const Side* side, int64_t lines, int64_t columns) noexcept nogil:
    """Return the scales with their single line or column repeated."""
    cdef Operand scale = side.scale
    if scale.shape[0] == 1:
        scale.strides[0] = 0
    if scale.shape[1] == 1:
        scale.strides[1] = 0
    scale.shape[0], scale.shape[1] = lines, columns
    return scale


cdef bint scale_lies_well(const Side* side, int64_t lines, int64_t columns, int64_t line_stride,
                          int64_t column_stride) noexcept nogil:
    cdef const Operand* scale = &side.scale
    return (scale.shape[0] == lines and scale.shape[1] == columns
            and scale.ptr % FP8_COPIES_ALIGNMENT == 0
            and (lines == 1 or scale.strides[0] == line_stride)
            and (columns == 1 or scale.strides[1] == column_stride))


# Stages the scales in the layout of a mode (SCALE_* of blas/libraries).
cdef int stage_scale(Side* side, int mode, Temporaries* temporaries, Steps* steps) except -1 nogil:
    cdef int64_t lines = side.rows
    cdef int64_t columns = 1 if mode == SCALE_OUTER_VECTOR else blocks_of(side.k)
    cdef int64_t line_stride = 1
    cdef int64_t column_stride = side.padded_rows
    cdef int64_t size = column_stride * columns
    cdef Operand source, target
    if mode == SCALE_TENSOR:
        side.scale_ptr = side.scale.ptr if side.has_scale else 0
        return 0
    if mode == SCALE_BLOCK_128:
        lines, column_stride = blocks_of(side.rows), 1
        line_stride = (columns + SCALE_LINE - 1) // SCALE_LINE * SCALE_LINE
        size = lines * line_stride
    if side.padded_rows == side.rows and scale_lies_well(side, lines, columns, line_stride,
                                                         column_stride):
        side.scale_ptr = side.scale.ptr
        return 0
    take_memory(temporaries, <size_t>(4 * size), &side.scale_ptr)
    if size != lines * columns:
        add_zeros(steps, side.scale_ptr, DT_FLOAT32, size)
    target = side.scale
    target.ptr = side.scale_ptr
    target.shape[0], target.shape[1] = lines, columns
    target.strides[0], target.strides[1] = line_stride, column_stride
    if side.scale.shape[0] == 1 or side.scale.shape[0] == lines:
        source = stretched(side, lines, columns)
        fp8_copies_add_copy(steps, &source, &target)
    else:
        repeat_lines(side, columns, &target, steps)
    return 0


cdef void repeat_lines(const Side* side, int64_t columns, const Operand* target,
                       Steps* steps) noexcept nogil:
    """Copy the scales of blocks of lines to each line: first all whole blocks, then the rest."""
    cdef int64_t whole = side.rows // SCALE_BLOCK
    cdef int64_t rest = side.rows - whole * SCALE_BLOCK
    cdef Operand lines = stretched(side, side.scale.shape[0], columns)
    cdef Operand source = lines
    cdef Operand part = target[0]
    if whole:
        source.ndim = part.ndim = 3
        source.shape[0], source.shape[1], source.shape[2] = whole, SCALE_BLOCK, columns
        source.strides[1], source.strides[2] = 0, lines.strides[1]
        part.shape[0], part.shape[1], part.shape[2] = whole, SCALE_BLOCK, columns
        part.strides[0] = SCALE_BLOCK * target.strides[0]
        part.strides[1], part.strides[2] = target.strides[0], target.strides[1]
        fp8_copies_add_copy(steps, &source, &part)
    if rest:
        source, part = lines, target[0]
        source.ptr += <uint64_t>(4 * whole * lines.strides[0])
        source.strides[0] = 0
        part.ptr += <uint64_t>(4 * whole * SCALE_BLOCK * target.strides[0])
        source.shape[0] = part.shape[0] = rest
        fp8_copies_add_copy(steps, &source, &part)


# ---- scaled values

# A stretch of an axis: `count` groups of `size` elements from `first` on, and the scale of each.
cdef struct Stretch:
    int64_t first
    int64_t count
    int64_t size
    int64_t scale_first
    int64_t scale_stride


cdef int stretches_of(int64_t length, int64_t scales, int64_t scale_stride,
                      Stretch* stretches) noexcept nogil:
    """Store an axis as one stretch, or as whole blocks and the rest; return how many."""
    cdef int64_t whole = length // SCALE_BLOCK
    stretches[0].first = stretches[0].scale_first = 0
    stretches[0].scale_stride = scale_stride
    stretches[0].count, stretches[0].size = length, 1
    if scales == 1:
        stretches[0].count, stretches[0].size, stretches[0].scale_stride = 1, length, 0
        return 1
    if scales == length:
        return 1
    stretches[0].count, stretches[0].size = whole, SCALE_BLOCK
    stretches[1].first, stretches[1].scale_first = whole * SCALE_BLOCK, whole
    stretches[1].count, stretches[1].size = 1, length - whole * SCALE_BLOCK
    stretches[1].scale_stride = scale_stride
    return 2 if stretches[1].size else 1


cdef Operand part_of(const Operand* matrix, int itemsize, const Stretch* down,
                     const Stretch* across) noexcept nogil:
    """Return the elements of two stretches, as four axes."""
    cdef Operand part = matrix[0]
    part.ptr += <uint64_t>(itemsize * (down.first * matrix.strides[0]
                                       + across.first * matrix.strides[1]))
    part.ndim = 4
    part.shape[0], part.shape[1] = down.count, down.size
    part.shape[2], part.shape[3] = across.count, across.size
    part.strides[0], part.strides[1] = down.size * matrix.strides[0], matrix.strides[0]
    part.strides[2], part.strides[3] = across.size * matrix.strides[1], matrix.strides[1]
    return part


# Stages the values times their scales, in float32.
cdef int stage_scaled_values(Side* side, Temporaries* temporaries, Steps* steps) except -1 nogil:
    cdef Stretch[2] down
    cdef Stretch[2] across
    cdef Operand target = side.matrix
    cdef Operand scale
    cdef Step* step
    cdef int rows, columns, i, j
    take_memory(temporaries, <size_t>(4 * side.rows * side.k), &target.ptr)
    target.dtype, target.strides[0], target.strides[1] = DT_FLOAT32, side.k, 1
    if not side.has_scale:
        fp8_copies_add_copy(steps, &side.matrix, &target)
        side.matrix = target
        return 0
    rows = stretches_of(side.rows, side.scale.shape[0], side.scale.strides[0], down)
    columns = stretches_of(side.k, side.scale.shape[1], side.scale.strides[1], across)
    for i in range(rows):
        for j in range(columns):
            step = add_step(steps, OP_MUL, 2)
            step.inputs[0] = part_of(&side.matrix, 1, &down[i], &across[j])
            step.target = part_of(&target, 4, &down[i], &across[j])
            scale = step.target
            scale.ptr = side.scale.ptr + <uint64_t>(4 * (
                down[i].scale_first * side.scale.strides[0]
                + across[j].scale_first * side.scale.strides[1]))
            scale.strides[0], scale.strides[1] = down[i].scale_stride, 0
            scale.strides[2], scale.strides[3] = across[j].scale_stride, 0
            step.inputs[1] = scale
    side.matrix = target
    return 0
