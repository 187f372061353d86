"""Skinny products by our own kernels: which products they take, and the kernel for float32.

16-bit x goes to tensor cores (skinny_mma.pxi). In float32 the shape of blocks is chosen so that
one wave of blocks fills the device, two on each multiprocessor: blocks of up to 128 outputs, with K
cut among the blocks of a cluster until there are enough blocks. Shared memory holds the activations
and the ring of copies in flight (64 KiB of a block, 128 KiB of a multiprocessor, several times as
much as the latency of memory requires at full speed).
"""

cdef enum:
    SKINNY_ALIGNMENT = 16       # bytes; of each address and pitch of an asynchronous copy
    SLICE = 128                 # k; splits and spans are multiples of it
    ROW_PAD = 64                # bytes between rows of x, against bank conflicts of a warp's reads
    RING_NBYTES = 65536
    LEAST_IN_FLIGHT = 28672     # bytes of a block
    SKINNY_MAX_STAGES = 12
    # Blocks of a cluster. The parts of a device in which a cluster lies have pairs of
    # multiprocessors, so clusters of 4 fill them, two blocks on each; clusters of 8 may need a
    # second wave.
    MAX_SPLITS = 4
    SKINNY_RESERVED_NBYTES = 1024      # of shared memory, for each block
    WORTHWHILE_NBYTES = 1048576     # of weights
    WORTHWHILE_FEATURES = 512
    # Rows in float32 by weights of at most so many bytes and at least so many terms are left to the
    # next row of backends: 9 to 16 rows, up to 8, and one, which also has an upper limit.
    SIXTEEN_NBYTES = 16000000
    SIXTEEN_TERMS = 256
    EIGHT_NBYTES = 20000000
    EIGHT_TERMS = 80
    ONE_NBYTES = 10000000
    ONE_MOST_NBYTES = 35000000
    HALF_FEATURES = 32768       # at most, in 16-bit floats
    LEAST_HALF_TERMS = 512
    EAGER_HALF_TERMS = 768
    LEAST_HALF_FEATURES = 8
    MOST_HALF_TERMS = 16384
    SKINNY_MAX_SIZE = 1073741824       # n and k; blocks and steps are counted in 31 bits

cdef extern from "gputensor/blas/kernels/skinny/skinny.h" namespace "gputensor" nogil:
    cdef struct SkinnyParameters:
        uint64_t x
        uint64_t w
        uint64_t bias
        uint64_t addend
        uint64_t y
        int64_t n
        int64_t k
        int64_t x_pitch
        int64_t w_pitch
        int64_t y_pitch
        int64_t addend_pitch
        int64_t slice
        int m
        int span
        int x_offset
        int x_row
        float alpha
        float beta
        int is_turned

cdef KernelTable skinny_kernels


# ---- the shape of a block

cdef inline int half_nbytes(const SkinnyDevice* device) noexcept nogil:
    """Return the shared memory for each of two blocks of a multiprocessor."""
    return device.shared_nbytes // 2 - SKINNY_RESERVED_NBYTES


cdef inline int skinny_stage_nbytes(const SkinnyBlockShape* shape) noexcept nogil:
    """Return the bytes of two chunks of features in a tile and two substeps in each line."""
    return 4 * shape.tiles * 32 * shape.warps * SKINNY_ALIGNMENT


cdef int tokens_of(const SkinnyProduct* product) noexcept nogil:
    cdef int tokens = 1
    while tokens < product.m:
        tokens *= 2
    return tokens


cdef void choose_blocks(const SkinnyProduct* product, const SkinnyDevice* device,
                        SkinnyBlockShape* shape) noexcept nogil:
    """Choose warps, tiles and splits for two blocks a multiprocessor, if N and K allow it."""
    cdef int64_t wanted = 2 * device.multiprocessors
    cdef int64_t blocks, rows
    # Stages of 8 or 16 KiB. A wider tile reads each x for more outputs, which counts with many
    # rows of x.
    shape.tiles, shape.warps = 1, 8
    if product.m > 4:
        shape.tiles, shape.warps = 2, 4
    shape.splits = 1
    if skinny_forced.tiles:
        shape.tiles = skinny_forced.tiles
    if skinny_forced.warps:
        shape.warps = skinny_forced.warps
    while True:
        rows = 16 * shape.tiles * shape.warps
        blocks = round_up(product.n, rows) // rows
        if 2 * blocks * shape.splits > wanted:
            break
        if (device.can_cluster and shape.splits < MAX_SPLITS and not skinny_forced.splits
                and product.k >= 4 * SLICE * shape.splits):
            shape.splits *= 2
        elif shape.tiles > 1 and not skinny_forced.tiles:
            shape.tiles //= 2
        elif shape.warps > 1 and not skinny_forced.warps:
            shape.warps //= 2
        else:
            break
    if skinny_forced.splits and device.can_cluster:
        shape.splits = skinny_forced.splits


cdef void choose_memory(const SkinnyProduct* product, const SkinnyDevice* device,
                        SkinnyBlockShape* shape) noexcept nogil:
    """Choose the stages of the ring and the part of x that lies in shared memory at a time."""
    cdef int stage = skinny_stage_nbytes(shape)
    cdef int sums = shape.tokens * 16 * shape.tiles * shape.warps * 4
    cdef int64_t each = SLICE * 4 * product.m
    cdef int64_t left
    shape.slice = round_up((product.k + shape.splits - 1) // shape.splits, SLICE)
    shape.stages = choose_stages(
        stage, half_nbytes(device), shape.slice // SLICE * each + ROW_PAD * product.m)
    shape.ring_nbytes = shape.stages * stage
    if shape.ring_nbytes < sums:
        shape.ring_nbytes = sums
    left = half_nbytes(device) - shape.ring_nbytes - ROW_PAD * product.m
    shape.span = SLICE
    if left > each:
        shape.span = <int>(left // each * SLICE)
    if shape.span > shape.slice:
        shape.span = <int>shape.slice
    shape.x_row = shape.span * 4 + ROW_PAD
    shape.shared_nbytes = shape.ring_nbytes + <int>product.m * shape.x_row


cdef int choose_stages(int stage, int shared_nbytes, int64_t other_nbytes) noexcept nogil:
    cdef int stages = RING_NBYTES // stage
    cdef int fewer
    cdef int third = 2 * (shared_nbytes + SKINNY_RESERVED_NBYTES) // 3 - SKINNY_RESERVED_NBYTES
    if skinny_forced.stages:
        return skinny_forced.stages
    if stages > SKINNY_MAX_STAGES:
        stages = SKINNY_MAX_STAGES
    while stages > 2 and stages * stage > shared_nbytes * 3 // 5:
        stages -= 1
    if stages < 2:
        stages = 2
    # Loading x in several spans costs a pause for each, so loading it at once has priority.
    fewer = stages
    while fewer > 3 and fewer * stage + other_nbytes > shared_nbytes:
        fewer -= 1
    if fewer * stage + other_nbytes <= shared_nbytes:
        stages = fewer
    # With room for a third block on each multiprocessor, whole clusters find places more easily,
    # which pays as long as there are enough copies in flight.
    fewer = stages
    while fewer > 3 and fewer * stage + other_nbytes > third:
        fewer -= 1
    if fewer * stage + other_nbytes <= third and (fewer - 1) * stage >= LEAST_IN_FLIGHT:
        stages = fewer
    return stages


cdef void skinny_choose_shape(const SkinnyProduct* product, const SkinnyDevice* device,
                              SkinnyBlockShape* shape) noexcept nogil:
    shape.tokens = tokens_of(product)
    choose_blocks(product, device, shape)
    choose_memory(product, device, shape)


# ---- launch

# Whether a kernel can do the product: types, sizes and alignments.
cdef bint skinny_product_fits(const SkinnyProduct* product) noexcept nogil:
    cdef int itemsize = dtype_itemsize(product.type_x)
    cdef int64_t own = SKINNY_ALIGNMENT // itemsize
    cdef uint64_t addresses = product.x | product.w
    if product.m < 1 or product.m > SKINNY_MAX_ROWS or product.n < 1 or product.k < 1:
        return False
    if product.type_x == DT_FLOAT32:
        if product.form != FORM_PLAIN or product.type_y != DT_FLOAT32:
            return False
    elif product.type_x != DT_FLOAT16 and product.type_x != DT_BFLOAT16:
        return False
    if product.type_y != product.type_x and product.type_y != DT_FLOAT32:
        return False
    if product.k % own or (product.m > 1 and product.x_pitch % own):
        return False
    if product.k > SKINNY_MAX_SIZE or product.n > SKINNY_MAX_SIZE:
        return False
    if product.form == FORM_PLAIN:
        if product.w_pitch % own:
            return False
    else:
        if product.form == FORM_INT8 and (product.w_pitch % SKINNY_ALIGNMENT
                                          or product.k % SKINNY_ALIGNMENT):
            return False
        if product.group not in (0, 32, 64, 128):
            return False
        if product.group and (product.n % 8 or product.k % product.group):
            return False
        addresses |= product.scales
    return addresses % SKINNY_ALIGNMENT == 0


cdef void* skinny_kernel(const SkinnyBlockShape* shape) except NULL nogil:
    cdef uint64_t key = shape.tokens << 5 | shape.tiles
    key = (key << 5 | <uint64_t>shape.warps) << 5 | <uint64_t>shape.stages
    return kernel_of(&skinny_kernels, key << 5 | <uint64_t>shape.splits, skinny_program, shape)


cdef object skinny_program(const void* variant):
    cdef const SkinnyBlockShape* shape = <const SkinnyBlockShape*>variant
    return programs.skinny(shape.tokens, tiles=shape.tiles, warps=shape.warps,
                           stages=shape.stages, splits=shape.splits)


# Compiles the product's kernel; BLAS_NOT_SUPPORTED where kernels cannot be compiled.
cdef int skinny_product_prepare(const SkinnyProduct* product) except -1 nogil:
    cdef const SkinnyDevice* device = known_facts(product.device)
    cdef SkinnyBlockShape shape
    if product.type_x != DT_FLOAT32:
        return mma_prepare(product, device)
    skinny_choose_shape(product, device, &shape)
    return compiled(skinny_kernel(&shape), product.device, most_nbytes(device))


cdef int skinny_product_run(const SkinnyProduct* product, uint64_t stream) except -1 nogil:
    cdef const SkinnyDevice* device = known_facts(product.device)
    cdef SkinnyParameters p
    cdef SkinnyBlockShape shape
    cdef Launch launch
    cdef int64_t rows
    if product.type_x != DT_FLOAT32:
        return mma_run(product, device, stream)
    skinny_choose_shape(product, device, &shape)
    memset(&p, 0, sizeof(p))
    p.x, p.w, p.y = product.x, product.w, product.y
    p.bias, p.addend = product.bias, product.addend
    p.m, p.n, p.k = <int>product.m, product.n, product.k
    p.x_pitch, p.w_pitch = product.x_pitch * 4, product.w_pitch * 4
    p.y_pitch, p.addend_pitch = product.y_pitch, product.addend_pitch
    p.slice, p.span = shape.slice, shape.span
    p.x_offset, p.x_row = shape.ring_nbytes, shape.x_row
    p.alpha, p.beta, p.is_turned = product.alpha, product.beta, product.is_turned
    rows = 16 * shape.tiles * shape.warps
    launch_init(&launch, product.device, stream,
                <uint32_t>((product.n + rows - 1) // rows * shape.splits), 32 * shape.warps, &p,
                sizeof(p))
    # More than half_nbytes, since the smallest shape needs over half of 64 KiB.
    launch.shared_nbytes, launch.most_shared_nbytes = shape.shared_nbytes, most_nbytes(device)
    return launch_kernel(skinny_kernel(&shape), &launch)


# ---- products in the libraries' terms

cdef void from_product(const Product* product, SkinnyProduct* small) noexcept nogil:
    """Convert: the libraries compute our result transposed, so their A is w and their B is x.

    A product that is turned has a narrow A and a wide B.
    """
    memset(small, 0, sizeof(SkinnyProduct))
    small.device = product.device
    small.form = FORM_PLAIN
    small.type_x, small.type_y = product.type_b, product.type_d
    small.m, small.n, small.k = product.n, product.m, product.k
    small.x, small.w, small.y = product.b, product.a, product.d
    small.x_pitch, small.w_pitch = product.ldb, product.lda
    small.y_pitch, small.addend_pitch = product.ldd, product.ldc
    small.bias, small.addend = product.bias, product.c
    small.alpha, small.beta = <float>product.alpha, <float>product.beta
    if product.n > SKINNY_MAX_ROWS:
        small.is_turned = 1
        small.m, small.n = product.m, product.n
        small.x, small.w = product.a, product.b
        small.x_pitch, small.w_pitch = product.lda, product.ldb


# Like skinny_product_fits, for a product in the libraries' terms whose D has at most 16 columns,
# or, in float32, rows.
cdef bint skinny_can(const Product* product) except -1 nogil:
    cdef SkinnyProduct small
    if product.batch != 1 or product.outer_ndim or product.scale_a:
        return False
    if product.n > SKINNY_MAX_ROWS and (
            product.m > SKINNY_MAX_ROWS or product.type_b != DT_FLOAT32):
        return False
    if product.type_a != product.type_b or product.activation != ACT_NONE:
        return False
    if product.compute not in (COMPUTE_32F, COMPUTE_32F_FAST_TF32, COMPUTE_32F_FAST_16BF):
        return False
    if product.op_b != OP_N or product.op_a != OP_T:
        return False
    if product.alpha_imag != 0 or product.beta_imag != 0:
        return False
    from_product(product, &small)
    return skinny_product_fits(&small)


cdef bint is_worthwhile(int64_t n, int64_t row_nbytes) noexcept nogil:
    """Return False where the launch costs the most or outputs keep few multiprocessors busy."""
    return n >= WORTHWHILE_FEATURES and n * row_nbytes >= WORTHWHILE_NBYTES


cpdef bint skinny_half_wins(int64_t m, int64_t n, int64_t k) noexcept nogil:
    """Return whether ours is faster for m rows by plain weights [n, k], both in 16-bit floats."""
    if m > 1 or k < LEAST_HALF_TERMS or k > MOST_HALF_TERMS:
        return False
    if n < LEAST_HALF_FEATURES or n > HALF_FEATURES:
        return False
    # Other rows begin within a sector of 32 bytes, so chunks of a row share sectors: 5392 x 7592
    # takes 29.1 us, the library 25.2, while 4096 x 14336 runs at 3.95 TB/s (H200).
    return k % 16 == 0


cdef bint skinny_wins(const Product* product) except -1 nogil:
    # Measured on an H200 at 1 to 16 x 8192 x 8192: exact fp32 takes 75 to 130 us, the libraries 87
    # to 198. In 16-bit floats the libraries are as fast or faster (33 us, ours 33 to 39), except
    # for one row, where our kernels start early in a chain: a token of a Llama of 1B takes 1,062 us
    # with ours and 1,125 with theirs, of 8B with 8 layers 1,355 and 1,391. The last product is as
    # fast either way. One row by 2304 x 768 takes 3.1 us, by 768 x 768 2.4 (theirs: 4.2 and 3.5),
    # by 512 x 784 2.6, 512 x 512 2.1, 10 x 512 1.9, 256 x 1536 2.8 (theirs: 3.6, 3.2, 2.4, 4.4).
    if product.compute != COMPUTE_32F:
        return False
    if product.type_a != DT_FLOAT32:
        # Small ones gain too little for a kernel to be compiled, except in programs.
        return (skinny_half_wins(product.n, product.m, product.k)
                and product.k >= EAGER_HALF_TERMS and is_worthwhile(product.m, 2 * product.k))
    if product.n > SKINNY_MAX_ROWS:
        # From .92 to 1.19 times as fast for a single column.
        return product.m > 1 and float32_wins(product.m, product.n, product.k)
    return float32_wins(product.n, product.m, product.k)


cdef bint float32_wins(int64_t m, int64_t n, int64_t k) noexcept nogil:
    """Return whether ours is the fastest for m rows by n weights, or turned, in float32."""
    # Measured on an H200 at 94 random sizes: 1.0 to 2.7 times as fast as the better library where
    # this is true; .73 to .85 at 692 x 11 x 12616, 784 x 16 x 7872 and 8379 x 15 x 260.
    if not is_worthwhile(n, 4 * k):
        return False
    if m <= 8:
        # Of 25 random sizes, the next row of backends is faster for 18 of the 19 with weights below
        # 20 MB (6 x 576 x 744: 3.3 us instead of 5.5), and for 2 of the 6 above.
        if k < EIGHT_TERMS:
            return True
        if m > 1:
            return 4 * n * k >= EIGHT_NBYTES
        # 15 random sizes of 10 to 30 MB: 1.12 times as fast as the better library, in the geometric
        # mean; 21 of 38 MB and more: .94, from .74 (3509 x 6156) to 1.19, theirs at 3 to 3.9 TB/s.
        return ONE_NBYTES <= 4 * n * k <= ONE_MOST_NBYTES
    if 4 * n * k <= SIXTEEN_NBYTES and k >= SIXTEEN_TERMS:
        return False                # 3776 x 16 x 920: 15.6 us, the next row of backends 11.9
    return k >= 512 if n >= 3000 else k <= 4096


cdef int skinny_build(const Product* product, const Choice* choice, Plan* plan) except -1 nogil:
    cdef SkinnyProduct small
    from_product(product, &small)
    return skinny_product_prepare(&small)


cdef int skinny_launch(const Work* work) except -1 nogil:
    cdef SkinnyProduct small
    from_product(work.products, &small)
    return skinny_product_run(&small, work.stream)
