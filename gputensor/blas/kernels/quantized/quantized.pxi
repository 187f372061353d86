"""The way back from quantized weights to plain ones on a GPU."""

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

cdef KernelTable quantized_kernels = KernelTable()


# Queues out[n, k] = weights * scales, rounded to the type of out and scales.
cdef int dequantize_run(int device, uint64_t stream, const Operand* weight, const Operand* scales,
                        const Operand* out) except -1:
    cdef DequantizeParameters p
    cdef int64_t units = out.shape[0] * ((out.shape[1] + 7) // 8)
    cdef int64_t grid = (units + QUANTIZED_BLOCK - 1) // QUANTIZED_BLOCK
    cdef int bits = 4 if weight.dtype == DT_UINT8 else 8
    cdef uint64_t key = out.dtype << 4 | bits
    cdef void* found = kernel_find(quantized_kernels, key)
    if found == NULL:
        found = quantized_kernels.add(key, programs.dequantize(DTYPES[out.dtype].name, bits))
    memset(&p, 0, sizeof(p))
    p.w, p.scales, p.out = weight.ptr, scales.ptr, out.ptr
    p.n, p.k = out.shape[0], out.shape[1]
    p.tiles = weight.shape[1]
    p.group = p.k // scales.shape[0]
    return launch_kernel(device, stream, kernel_function(<Kernel>found, device),
                         blocks_in_line(min(grid, <int64_t>QUANTIZED_MAX_GRID), QUANTIZED_BLOCK),
                         &p, sizeof(p))
