# The tiled transposition (see transpose.cuh).

cdef enum:
    # Below this length along either unit axis a tile is mostly empty.
    MIN_LENGTH = 16

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


# `layout` is small (32-bit indices), and is_transposition() is true for it.
cdef int transpose(int device, uint64_t stream, int out_dtype, int in_dtype,
                   const Layout* layout) except -1 nogil:
    cdef TransposeParameters parameters
    cdef int axis, unit = unit_axis(layout), batch = 0
    cdef uint32_t tile = 32 if layout.itemsizes[OUT] >= 4 else 64
    cdef uint64_t blocks, key
    cdef int[3] variant
    cdef Launch launch
    memset(&parameters, 0, sizeof(parameters))
    parameters.out = layout.ptrs[OUT]
    parameters.input = layout.ptrs[0]
    parameters.out_size = <uint32_t>layout.shape[0]
    parameters.in_size = <uint32_t>layout.shape[unit]
    parameters.out_tiles = (parameters.out_size + tile - 1) // tile
    parameters.in_tiles = (parameters.in_size + tile - 1) // tile
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
    key = (out_dtype << 5 | in_dtype) << 5 | batch
    variant[0], variant[1], variant[2] = out_dtype, in_dtype, batch
    launch_init(&launch, device, stream, <uint32_t>blocks, 32, &parameters, sizeof(parameters))
    launch.block[1] = 8
    return launch_kernel(kernel_of(&cuda_transpose_kernels, key, transpose_program, variant),
                         &launch)


cdef object transpose_program(const void* variant):
    cdef const int* given = <const int*>variant
    return programs.transpose(given[0], given[1], given[2])
