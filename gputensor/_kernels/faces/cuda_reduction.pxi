# Reductions on a CUDA device: layout, division of the work, launches (see __init__.pxd).
#
# reduction.cuh describes row and column kernels. With few outputs the reduced range is cut into
# parts, whose accumulators a second launch on the same stream reduces; the workspace is freed at
# once, which is safe in stream order. The cut depends on shapes and strides alone, so the same call
# gives the same bits.

cdef enum:
    THREADS = 256
    FULL = 1024                 # blocks that fill the device (132 multiprocessors, 8 blocks each)
    MOST_PARTS = 1024
    MOST_SHARED = 32768         # bytes of a block's accumulators
    MORE = 2                    # times FULL, for long columns of `var`
    LONG_ROUNDS = 16            # of a block, that a part of them has at least
    MOST_PACKED_STEPS = 4096    # units of a thread: as many as a key counts (shares.cuh)

cdef extern from "gputensor/_kernels/cuda/reduction.h" namespace "gputensor" nogil:
    cdef struct ReductionParameters:
        uint64_t out
        uint64_t input
        uint64_t partial
        int64_t kept
        int64_t units
        int64_t reduced
        int64_t chunk
        int64_t parts
        KeptAxis[16] kept_axes
        ReducedAxis[16] reduced_axes

cdef struct Variant:
    int op
    int dtype
    int compute
    int out
    int column
    int vector
    int kept
    int reduced
    int wide
    int partial
    int from_partial

cdef struct Division:
    int x                       # threads of a block along x and y
    int y
    int64_t blocks              # along the outputs
    int64_t parts
    int64_t chunk               # units of a part

cdef KernelTable cuda_reduction_kernels
cdef unsigned char[16][32] sizes    # of an accumulator, by operation and compute dtype


def _load_sizes():
    for row in REDUCTIONS:
        for element in DTYPES:
            nbytes = programs.accumulator_nbytes(row.code, element.code)
            sizes[<int>row.code][<int>element.code] = nbytes


_load_sizes()


cdef inline int64_t ceil_divide(int64_t a, int64_t b) noexcept nogil:
    return (a + b - 1) // b


cdef inline int power_of_two(int64_t at_least, int most) noexcept nogil:
    cdef int x = 1
    while x < at_least and x < most:
        x *= 2
    return x


cdef void divide_for_keys(Division* division, int64_t units, int64_t threads) noexcept nogil:
    """Cut the range into more parts, where a thread would have more units than a key counts."""
    if division.chunk > MOST_PACKED_STEPS * threads:
        cut_parts(division, units, 4 * threads, ceil_divide(units, MOST_PACKED_STEPS * threads))


cdef void divide_rows(Division* division, int64_t kept, int64_t units) noexcept nogil:
    # Four loads for each thread when outputs are many; with fewer outputs, more threads for each,
    # and then more parts.
    division.x = power_of_two(ceil_divide(units, 4), THREADS)
    while division.x > 32 and kept * division.x > 2 * FULL * THREADS:
        division.x //= 2
    division.y = THREADS // division.x
    division.blocks = ceil_divide(kept, division.y)
    divide_parts(division, units, 4 * division.x)


cdef void divide_columns(Division* division, int op, int64_t kept, int64_t units) noexcept nogil:
    cdef int64_t long_parts
    division.x = power_of_two(kept, 32)
    division.y = power_of_two(ceil_divide(units, 4), THREADS // division.x)
    division.x = power_of_two(kept, THREADS // division.y)
    division.blocks = ceil_divide(kept, division.x)
    divide_parts(division, units, 4 * division.y)
    if op != RED_VAR or division.parts == 1:
        return
    # Its registers leave 6 blocks on a multiprocessor, so FULL blocks are one wave and a third.
    # With twice as many a column of 65,536 float32 takes 254 us instead of 282, bfloat16 358
    # instead of 387 (1 GiB on an H200).
    long_parts = min(MORE * FULL // division.blocks, MOST_PARTS,
                     units // (LONG_ROUNDS * 4 * division.y))
    if long_parts > division.parts:
        cut_parts(division, units, 4 * division.y, long_parts)


cdef void divide_parts(Division* division, int64_t units, int64_t least) noexcept nogil:
    # `least` units are one round of a block; a part has several rounds, to be worth its store.
    cdef int64_t parts = 1
    if division.blocks < FULL // 2:
        parts = FULL // division.blocks
        if parts > ceil_divide(units, 2 * least):
            parts = ceil_divide(units, 2 * least)
        if parts > MOST_PARTS:
            parts = MOST_PARTS
        if parts < 1:
            parts = 1
    cut_parts(division, units, least, parts)


cdef void cut_parts(Division* division, int64_t units, int64_t least, int64_t parts) noexcept nogil:
    division.chunk = ceil_divide(ceil_divide(units, parts), least) * least
    division.parts = ceil_divide(units, division.chunk) if units > 0 else 1


cdef int cuda_reduce(int op, int device, uint64_t stream, int compute_dtype,
                     Operand* out, Operand* input, uint32_t axes_mask) except -1 nogil:
    cdef ReductionLayout layout
    cdef ReductionParameters parameters
    cdef Variant variant
    cdef Division division
    cdef int axis, most, size = sizes[op][compute_dtype]
    cdef bint is_argument = op == RED_ARGMAX or op == RED_ARGMIN
    cdef bint is_packed = (is_argument and input.dtype == compute_dtype
                           and dtype_itemsize(input.dtype) <= 2)
    reduction_layout(&layout, out, input, axes_mask, is_argument)
    variant.op = op
    variant.dtype = input.dtype
    variant.compute = compute_dtype
    variant.out = out.dtype
    variant.column = is_column(&layout)
    variant.wide = layout.kept > 0x7fffffff or layout.reduced > 0x7fffffff
    # The accumulators of a block fit the shared memory.
    most = MOST_SHARED // (8 if is_packed and not variant.wide else size) // THREADS
    variant.vector = load_width(&layout, input, variant.column, dtype_itemsize(input.dtype),
                                64 // size if op not in (RED_ARGMAX, RED_ARGMIN, RED_VAR) else most)
    variant.kept = layout.kept_ndim
    variant.reduced = layout.reduced_ndim
    variant.from_partial = 0
    memset(&parameters, 0, sizeof(parameters))
    parameters.out = out.ptr
    parameters.input = input.ptr
    parameters.partial = 0
    parameters.reduced = layout.reduced
    for axis in range(layout.kept_ndim):
        parameters.kept_axes[axis] = layout.kept_axes[axis]
    for axis in range(layout.reduced_ndim):
        parameters.reduced_axes[axis] = layout.reduced_axes[axis]
    if variant.column:
        parameters.kept = layout.kept // variant.vector
        parameters.units = layout.reduced
        divide_columns(&division, op, parameters.kept, parameters.units)
        if is_packed:
            divide_for_keys(&division, parameters.units, division.y)
    else:
        parameters.kept = layout.kept
        parameters.units = layout.reduced // variant.vector
        divide_rows(&division, parameters.kept, parameters.units)
        if is_packed:
            divide_for_keys(&division, parameters.units, division.x)
    variant.partial = division.parts > 1
    if not variant.partial:
        return cuda_reduction_launch(device, stream, &variant, &division, &parameters)
    return launch_in_parts(device, stream, &variant, &division, &parameters, &layout, size)


cdef int launch_in_parts(int device, uint64_t stream, Variant* variant, Division* division,
                         ReductionParameters* parameters, const ReductionLayout* layout,
                         int size) except -1 nogil:
    cdef int axis
    cdef int64_t stride
    cdef status_t status = 0
    cdef size_t nbytes = <size_t>(layout.kept * division.parts * size)
    cdef Block* block = allocator_malloc(device, nbytes, stream, &status)
    if block == NULL:
        raise_for_malloc(device, nbytes, stream, status)
    try:
        parameters.partial = block.ptr
        cuda_reduction_launch(device, stream, variant, division, parameters)
        # The parts of one output are neighbours: a row reduction over a C-ordered array.
        parameters.input = block.ptr
        parameters.kept = layout.kept
        parameters.units = division.parts
        parameters.reduced_axes[0].size = division.parts
        parameters.reduced_axes[0].stride = 1
        stride = division.parts
        for axis in range(layout.kept_ndim):
            parameters.kept_axes[axis].in_stride = stride
            stride *= layout.kept_axes[axis].size
        variant.column = 0
        variant.vector = 1
        variant.reduced = 1
        variant.partial = 0
        variant.from_partial = 1
        divide_rows(division, layout.kept, parameters.units)
        division.parts = 1
        division.chunk = parameters.units
        return cuda_reduction_launch(device, stream, variant, division, parameters)
    finally:
        allocator_free(block)


cdef int cuda_reduction_launch(int device, uint64_t stream, const Variant* variant,
                               const Division* division,
                               ReductionParameters* parameters) except -1 nogil:
    cdef uint64_t key
    cdef Launch launch
    parameters.chunk = division.chunk
    parameters.parts = division.parts
    key = variant.op << 15 | variant.dtype << 10 | variant.compute << 5 | variant.out
    key = key << 5 | variant.vector
    key = key << 10 | variant.kept << 5 | variant.reduced
    key = key << 4 | variant.column << 3 | variant.wide << 2
    key = key | variant.partial << 1 | variant.from_partial
    launch_init(&launch, device, stream, <uint32_t>division.blocks, division.x, parameters,
                sizeof(ReductionParameters))
    launch.grid[1], launch.block[1] = <uint32_t>division.parts, division.y
    return launch_kernel(kernel_of(&cuda_reduction_kernels, key, reduction_program, variant),
                         &launch)


cdef object reduction_program(const void* given):
    cdef const Variant* variant = <const Variant*>given
    return programs.reduction(
        variant.op, variant.dtype, variant.compute, variant.out, column=bool(variant.column),
        vector=variant.vector, kept=variant.kept, reduced=variant.reduced, wide=bool(variant.wide),
        partial=bool(variant.partial), from_partial=bool(variant.from_partial))
