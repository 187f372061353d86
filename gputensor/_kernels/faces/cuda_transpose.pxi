# The tiled transposition (see transpose.cuh).

cdef enum:
    # Below this length along either unit axis a tile is mostly empty.
    MIN_LENGTH = 16
    TILE_ROWS = 128         # at most
    TILES_EACH = 16         # large tiles of each multiprocessor, at least

cdef extern from "gputensor/_kernels/cuda/transpose.h" namespace "gputensor" nogil:
    cdef struct TransposeBatch:
        uint32_t size
        int32_t in_stride
        int32_t out_stride

    cdef struct TransposeParameters:
        uint64_t out
        uint64_t input
        uint32_t out_size
        uint32_t in_size
        uint32_t out_tiles
        uint32_t in_tiles
        int32_t in_stride
        int32_t out_stride
        TransposeBatch[16] batch

cdef KernelTable cuda_transpose_kernels


cdef int unit_axis(const Layout* layout) noexcept nogil:
    # The axis along which the input is contiguous, if tiles are worth it, otherwise 0.
    cdef int axis
    if layout.ndim < 2 or layout.strides[OUT][0] != 1 or layout.shape[0] < MIN_LENGTH:
        return 0
    for axis in range(1, layout.ndim):
        if layout.strides[0][axis] == 1 and layout.shape[axis] >= MIN_LENGTH:
            # A stride of 0 or 1 along the output's unit axis reads whole lines already.
            return 0 if -1 <= layout.strides[0][0] <= 1 else axis
    return 0


cdef bint is_transposition(const Layout* layout) noexcept nogil:
    return unit_axis(layout) != 0


cdef bint has_chunks(const Layout* layout, int unit) noexcept nogil:
    # Whether both sides consist of aligned runs of 16 bytes.
    cdef int axis, itemsize = layout.itemsizes[OUT]
    cdef int64_t together = layout.shape[0] | layout.shape[unit]
    for axis in range(layout.ndim):
        if axis != unit:
            together |= layout.strides[0][axis]
        if axis != 0:
            together |= layout.strides[OUT][axis]
    return together * itemsize % 16 == 0 and (layout.ptrs[0] | layout.ptrs[OUT]) % 16 == 0


cdef int edge_of(const Layout* layout, int unit, int multiprocessors) noexcept nogil:
    # The bytes of a tile's rows. On an H200, 256 take 524 us for 1 GiB of 16-bit elements and 128
    # take 555, but 32 MiB or 768 matrices of 512 x 64 take 19.2 and 31.7 us, and 17.9 and 27.0.
    cdef int64_t edge = 256 // layout.itemsizes[OUT]
    cdef int64_t tiles = layout_size(layout) // (edge * min(edge, <int64_t>TILE_ROWS))
    if min(layout.shape[0], layout.shape[unit]) < 2 * edge:
        return 128
    return 256 if tiles >= TILES_EACH * max(1, multiprocessors) else 128


# `layout` is small (32-bit indices), and is_transposition() is true for it.
cdef int transpose(int device, uint64_t stream, int out_dtype, int in_dtype,
                   const Layout* layout) except -1 nogil:
    cdef TransposeParameters parameters
    cdef int axis, unit = unit_axis(layout), batch = 0
    cdef uint32_t rows, columns
    cdef int itemsize = layout.itemsizes[OUT]
    cdef uint64_t blocks, key
    cdef int[4] variant
    rows = columns = 32 if itemsize >= 4 else 64
    variant[3] = 0
    if out_dtype == in_dtype and itemsize <= 4 and has_chunks(layout, unit):
        variant[3] = edge_of(layout, unit, known_facts(device).multiprocessors)
        columns = <uint32_t>(variant[3] // itemsize)
        rows = min(columns, <uint32_t>TILE_ROWS)
    cdef Launch launch
    memset(&parameters, 0, sizeof(parameters))
    parameters.out = layout.ptrs[OUT]
    parameters.input = layout.ptrs[0]
    parameters.out_size = <uint32_t>layout.shape[0]
    parameters.in_size = <uint32_t>layout.shape[unit]
    parameters.out_tiles = (parameters.out_size + rows - 1) // rows
    parameters.in_tiles = (parameters.in_size + columns - 1) // columns
    parameters.in_stride = <int32_t>layout.strides[0][0]
    parameters.out_stride = <int32_t>layout.strides[OUT][unit]
    blocks = <uint64_t>parameters.out_tiles * parameters.in_tiles
    for axis in range(1, layout.ndim):
        if axis == unit:
            continue
        parameters.batch[batch].size = <uint32_t>layout.shape[axis]
        parameters.batch[batch].in_stride = <int32_t>layout.strides[0][axis]
        parameters.batch[batch].out_stride = <int32_t>layout.strides[OUT][axis]
        blocks *= parameters.batch[batch].size
        batch += 1
    variant[0], variant[1], variant[2] = out_dtype, in_dtype, batch
    key = ((out_dtype << 5 | in_dtype) << 5 | batch) << 10 | variant[3]
    launch_init(&launch, device, stream, <uint32_t>blocks, 32, &parameters, sizeof(parameters))
    launch.block[1] = 8
    return launch_kernel(kernel_of(&cuda_transpose_kernels, key, transpose_program, variant),
                         &launch)


cdef object transpose_program(const void* variant):
    cdef const int* given = <const int*>variant
    return programs.transpose(given[0], given[1], given[2], given[3])
