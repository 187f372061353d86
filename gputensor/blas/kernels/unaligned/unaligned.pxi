"""Odd products of small and middle size, in one launch and without copies.

Packing or padding an odd product costs one or two launches and passes over memory besides the
product, and the library's kernels for odd operands read them by words through an older path. Ours
(unaligned.cuh) reads the matrices as they are and cuts K among the blocks of a cluster until the
multiprocessors are busy.

The model: a cluster of `split` blocks multiplies a tile of 128 x 112, each block its share of the
steps of 128 bytes along K; CLUSTERS[split] clusters run at once. In microseconds

    time = LAUNCH + waves * (ceil(steps / split) * STEP + (MEET if split > 1))

which is within 10 percent of 40 measured times of one wave on an H200. The kernel takes a product
whose tiles are one wave, not too empty and not too short along K, while that time is under a limit
beyond which the packed or padded product was quicker. With float32 that is nearly every product of
one wave, fewer where the library's rows lie along k; with 16-bit types, whose copies cost less,
about half of that, and no product whose result is aligned. Other Hopper devices have other
constants, which shift choices, not results; devices of other compute capabilities are left to the
libraries.
"""

cdef enum:
    CAPABILITY = 90             # measured there, and the kernel needs clusters
    UNALIGNED_TILE = 128
    COLUMNS = 112
    COLUMNS_PAIRED = 128        # where pairs of k are assembled from two rows of B
    STAGES = 6
    UNALIGNED_BLOCK = 256
    STEP_NBYTES = 128
    CHUNK = 16
    SHARED_NBYTES = 209408      # the stages of any layout, and their barriers
    MAX_SPLIT = 8
    UNALIGNED_LEAST_TERMS = 384
    LEAST_TILES_HALF = 8
    UNALIGNED_MAX_SIZE = 65536

cdef extern from "gputensor/blas/kernels/unaligned/unaligned.h" namespace "gputensor" nogil:
    cdef struct UnalignedParameters:
        uint64_t a
        uint64_t b
        uint64_t c
        uint64_t d
        uint64_t bias
        int64_t stride_a
        int64_t stride_b
        int64_t stride_c
        int64_t stride_d
        int64_t lda
        int64_t ldb
        int64_t ldc
        int64_t ldd
        int m
        int n
        int k
        int activation
        float alpha
        float beta

# Clusters of 1 to 8 blocks that run at once, a block on each multiprocessor (H200).
cdef int[9] CLUSTERS
CLUSTERS[:] = [0, 132, 66, 39, 30, 22, 16, 15, 15]

# Microseconds.
cdef double UNALIGNED_LAUNCH = 5.8
cdef double MEET = 0.9          # each block reads its slice of all blocks' sums
cdef double STEP = 0.8          # 32 terms of float32
cdef double STEP_HALF = 1.0     # 64 terms of 16 bits
cdef double LIMIT = 25.0
cdef double LIMIT_ALONG_K = 19.9    # the same where both operands' unit stride is along k
cdef double LIMIT_HALF = 12.0
cdef double LEAST_FILLED = 0.6  # share of the tiles' area that is result

# A variant of the kernel: types; whether each operand lies along k, and in whole chunks; the split.
cdef struct UnalignedVariant:
    int[2] types
    int[2] along_k
    int[2] is_even
    int split

cdef KernelTable unaligned_kernels


cdef inline int unaligned_columns_of(int dtype, bint b_along_k) noexcept nogil:
    return COLUMNS if b_along_k or dtype == DT_FLOAT32 else COLUMNS_PAIRED


cdef inline double limit_of(int dtype, bint is_along_k) noexcept nogil:
    if dtype != DT_FLOAT32:
        return LIMIT_HALF
    return LIMIT_ALONG_K if is_along_k else LIMIT


# ---- the rule

cdef int choose_split(int dtype, int columns, int64_t m, int64_t n, int64_t k, int64_t batch,
                      double* microseconds) noexcept nogil:
    """Return the split with the shortest modelled time, and store that time."""
    cdef int64_t tiles = ceil_divide(m, UNALIGNED_TILE) * ceil_divide(n, columns) * batch
    cdef int64_t steps = ceil_divide(k * dtype_itemsize(dtype), STEP_NBYTES)
    cdef double step = STEP if dtype == DT_FLOAT32 else STEP_HALF
    cdef double time
    cdef int split, best = 1
    for split in range(1, MAX_SPLIT + 1):
        if split > steps:
            break
        time = UNALIGNED_LAUNCH + ceil_divide(tiles, CLUSTERS[split]) * (
            ceil_divide(steps, split) * step + (MEET if split > 1 else 0))
        if split == 1 or time < microseconds[0]:
            best, microseconds[0] = split, time
    return best


cdef bint unaligned_can(const Product* product) except -1 nogil:
    cdef int dtype = product.type_a
    if product.type_b != dtype or product.scale_a != 0 or product.scale_b != 0:
        return False
    if dtype == DT_FLOAT32:
        if (product.compute != COMPUTE_32F_FAST_TF32
                and product.compute != COMPUTE_32F_FAST_16BF):
            return False
    elif dtype != DT_FLOAT16 and dtype != DT_BFLOAT16:
        return False
    if product.type_d != dtype and product.type_d != DT_FLOAT32:
        return False
    return (product.activation == ACT_NONE or product.activation == ACT_RELU
            or product.activation == ACT_GELU_TANH)


cdef int unaligned_split(int dtype, bint a_along_k, bint b_along_k, int64_t m, int64_t n, int64_t k,
                         int64_t batch) noexcept nogil:
    """Return the split of a product; 0 if the kernel does not take these sizes."""
    cdef int columns = unaligned_columns_of(dtype, b_along_k)
    cdef double limit = limit_of(dtype, a_along_k and b_along_k)
    cdef double microseconds = 0
    cdef int64_t tiles
    cdef int split
    if (k < UNALIGNED_LEAST_TERMS or k > UNALIGNED_MAX_SIZE or m > UNALIGNED_MAX_SIZE
            or n > UNALIGNED_MAX_SIZE or batch > CLUSTERS[1]):
        return 0
    tiles = ceil_divide(m, UNALIGNED_TILE) * ceil_divide(n, columns) * batch
    if dtype != DT_FLOAT32 and tiles < LEAST_TILES_HALF:
        return 0
    if m * n * batch < LEAST_FILLED * tiles * UNALIGNED_TILE * columns:
        return 0
    split = choose_split(dtype, columns, m, n, k, batch, &microseconds)
    return split if tiles <= CLUSTERS[split] and microseconds <= limit else 0


cdef int split_of_product(const Product* product) noexcept nogil:
    return unaligned_split(product.type_a, product.op_a != OP_N, product.op_b == OP_N, product.m,
                           product.n, product.k, product.batch)


# ---- plans and launches

cdef void* unaligned_kernel(const Product* product, int split) except NULL nogil:
    cdef UnalignedVariant variant
    cdef int chunk = CHUNK // dtype_itemsize(product.type_a)
    cdef uint64_t key
    variant.types[0], variant.types[1], variant.split = product.type_a, product.type_d, split
    variant.along_k[0], variant.along_k[1] = product.op_a != OP_N, product.op_b == OP_N
    variant.is_even[0] = not variant.along_k[0] and product.lda % chunk == 0
    variant.is_even[1] = not variant.along_k[1] and product.ldb % chunk == 0
    key = product.type_a << 5 | product.type_d
    key = key << 4 | <uint64_t>(variant.along_k[0] << 3 | variant.along_k[1] << 2
                                | variant.is_even[0] << 1 | variant.is_even[1])
    return kernel_of(&unaligned_kernels, key << 4 | <uint64_t>split, unaligned_program, &variant)


cdef object unaligned_program(const void* given):
    cdef UnalignedVariant* variant = <UnalignedVariant*>given
    along_k, is_even = map(bool, variant.along_k), map(bool, variant.is_even)
    columns = unaligned_columns_of(variant.types[0], variant.along_k[1])
    return programs.unaligned(DTYPES[variant.types[0]].name, DTYPES[variant.types[1]].name,
                              tuple(along_k), tuple(is_even), columns, variant.split, STAGES)


cdef bint unaligned_wins(const Product* product) except -1 nogil:
    cdef int odd = odd_matrices(product)
    if odd == PAD_NONE or (product.type_a != DT_FLOAT32 and not odd & PAD_D):
        return False
    return split_of_product(product) != 0


cdef int unaligned_build(const Product* product, const Choice* choice,
                         Plan* plan) except -1 nogil:
    cdef int split = split_of_product(product)
    if split == 0 or known_facts(product.device).capability != CAPABILITY:
        return BLAS_NOT_SUPPORTED
    plan.handle = unaligned_kernel(product, split)
    return compiled(plan.handle, product.device, SHARED_NBYTES)


cdef int unaligned_launch_split(const Work* work, void* kernel, int split) except -1 nogil:
    cdef const Product* product = work.products
    cdef Grid grid
    cdef UnalignedParameters p
    cdef int columns = unaligned_columns_of(product.type_a, product.op_b == OP_N)
    memset(&p, 0, sizeof(p))
    p.a, p.b, p.c, p.d = product.a, product.b, product.c, product.d
    p.bias = product.bias
    p.stride_a, p.stride_b = product.stride_a, product.stride_b
    p.stride_c, p.stride_d = product.stride_c, product.stride_d
    p.lda, p.ldb, p.ldc, p.ldd = product.lda, product.ldb, product.ldc, product.ldd
    p.m, p.n, p.k = <int>product.m, <int>product.n, <int>product.k
    p.activation = product.activation
    p.alpha, p.beta = <float>product.alpha, <float>product.beta
    grid.x, grid.y = ceil_divide(product.m, UNALIGNED_TILE) * split, ceil_divide(product.n, columns)
    grid.z = product.batch
    grid.block, grid.shared_nbytes = UNALIGNED_BLOCK, SHARED_NBYTES
    return queue_kernel(work, kernel, &grid, &p, sizeof(p))


cdef int unaligned_launch(const Work* work) except -1 nogil:
    return unaligned_launch_split(work, work.plan.handle, split_of_product(work.products))
