"""Products with quantized weights on a GPU, and the way back to plain weights.

Up to 16 rows of x the weights are expanded in registers (skinny_mma.cuh); beyond, arithmetic
counts and the caller multiplies with weights that `dequantize_run` made.
"""

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


cdef int quantized_run(int device, uint64_t stream, const Operand* x, const Operand* weight,
                       const Operand* scales, const Operand* bias, const Operand* out) except -1:
    cdef SmallProduct product
    cdef int64_t groups = scales.shape[0]
    if x.shape[0] > SMALL_M:
        return 0
    memset(&product, 0, sizeof(product))
    product.device = device
    product.type_x, product.type_y = x.dtype, out.dtype
    product.m, product.n, product.k = x.shape[0], out.shape[1], x.shape[1]
    product.group = <int>(product.k // groups) if groups > 1 else 0
    product.x, product.w, product.y = x.ptr, weight.ptr, out.ptr
    product.scales = scales.ptr
    product.bias = bias.ptr if bias is not NULL else 0
    product.x_pitch, product.y_pitch = x.strides[0], out.strides[0]
    if weight.dtype == DT_UINT8:
        product.form, product.w_pitch = FORM_INT4, weight.shape[1]
    else:
        product.form, product.w_pitch = FORM_INT8, weight.strides[0]
    product.alpha = 1
    if not small_product_fits(&product):
        return 0
    small_product_run(&product, stream)
    return 1


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
                         <uint32_t>(grid if grid < QUANTIZED_MAX_GRID else QUANTIZED_MAX_GRID), QUANTIZED_BLOCK, 0, &p,
                         sizeof(p))
