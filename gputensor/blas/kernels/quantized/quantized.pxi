"""Converts quantized weights to plain ones on a GPU."""

cdef enum:
    QUANTIZED_BLOCK = 256
    QUANTIZED_MAX_GRID = 1048576

cdef extern from "gputensor/blas/kernels/quantized/dequantize.h" namespace "gputensor" nogil:
    cdef struct DequantizeParameters:
        uint64_t w
        uint64_t scales
        uint64_t out
        int64_t n
        int64_t k
        int64_t tiles
        int64_t group

cdef KernelTable quantized_kernels


# Queues out[n, k] = weights * scales, rounded to the type of out and scales.
cdef int dequantize_run(int device, uint64_t stream, const Operand* weight, const Operand* scales,
                        const Operand* out) except -1 nogil:
    cdef DequantizeParameters p
    cdef Launch launch
    cdef int64_t units = out.shape[0] * ((out.shape[1] + 7) // 8)
    cdef int64_t grid = (units + QUANTIZED_BLOCK - 1) // QUANTIZED_BLOCK
    cdef int[2] variant
    variant[0], variant[1] = out.dtype, 4 if weight.dtype == DT_UINT8 else 8
    memset(&p, 0, sizeof(p))
    p.w, p.scales, p.out = weight.ptr, scales.ptr, out.ptr
    p.n, p.k = out.shape[0], out.shape[1]
    p.tiles = weight.shape[1]
    p.group = p.k // scales.shape[0]
    launch_init(&launch, device, stream,
                <uint32_t>(grid if grid < QUANTIZED_MAX_GRID else QUANTIZED_MAX_GRID),
                QUANTIZED_BLOCK, &p, sizeof(p))
    return launch_kernel(kernel_of(&quantized_kernels, <uint64_t>(variant[0] << 4 | variant[1]),
                                   dequantize_program, variant), &launch)


cdef object dequantize_program(const void* variant):
    cdef const int* given = <const int*>variant
    return programs.dequantize(DTYPES[given[0]].name, given[1])
