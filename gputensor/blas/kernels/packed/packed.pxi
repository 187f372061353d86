"""Large products of unaligned matrices: when they go to our own kernels, and their launches.

The library's fast kernels need every size that is contiguous in some matrix to be a multiple of 16
bytes. For them, padding (padding.pxi) copies all three matrices, even the result, which costs most
where K is short. Here A and B are copied too, but into the tiles that the tensor cores read, and
the kernel writes the result directly, whatever its alignment. C is not copied: the caller copies an
addend to D unless it is there already.

The library's D is column-major, that of the kernels row-major. So B of the product is the kernels'
A.
"""

cdef enum:
    HOPPER = 90                 # the kernels use instructions that only sm_90a has
    THREADS = 384
    PACKING_THREADS = 256
    PACKED_TILE_NBYTES = 16384
    WARP_NBYTES = 16384         # sums of one warp, for tiles of 256 columns
    WARPS = 8                   # of a block that multiply
    PACKING_KEY = 256           # of packing programs, apart from those that multiply
    FLAG_NBYTES = 4
    PACKED_ALIGNMENT = 1024
    LEAST_SIZE = 256            # m, n and k
    PACKED_MAX_SIZE = 1073741824       # m, n and k; tiles are counted in 31 bits

# Multiply-adds from which packing beats padding with float32, measured on an H200 (microseconds,
# padded and packed: 767x769x771 24 and 16, 2047x2049x2051 98 and 77, 4096x4096x4097 438 and 427,
# 8191x8191x8191 3090 and 2820). With 16-bit elements the copy of D, which packing saves, is weighed
# against our kernel's time for the tiles into which the result is cut. The library's time is that
# of its multiply-adds at LIBRARY_RATE. Padding is launched once for a batch, packing for each item.
# Of 18 products that were measured both ways, this rule takes the quicker way or loses at most
# 1.3 %: padded and packed 1023x1025x1027 15.2 and 14.2, 1535x1537x1539 25.4 and 28.1,
# 4095x4097x1025 90 and 75, 2049x2047x8191 131 and 138.
cdef double PACKED_LEAST_TERMS = 4e8
cdef double LEAST_TERMS_BATCH = 9e8
cdef double PACKED_LEAST_RESULTS = 5e5  # in float32; 702x400x3904 takes 43 us packed, padded 35
cdef double LIBRARY_RATE = 3.6e8        # multiply-adds of 16-bit elements in a microsecond
cdef double PACKED_COPY_RATE = 2.2e6           # bytes copied in a microsecond
cdef double PADDED_LAUNCHES = 9.0       # microseconds
cdef double PACKED_LAUNCHES = 5.0

cdef extern from "gputensor/blas/kernels/packed/packing.h" namespace "gputensor" nogil:
    cdef struct PackedMatrix:
        uint64_t source
        uint64_t target
        int64_t pitch
        int64_t rows
        int64_t k
        int64_t tiles
        int steps
        int along_rows

    cdef struct PackingParameters:
        PackedMatrix a
        PackedMatrix b
        uint64_t flags
        int64_t flag_count

cdef extern from "gputensor/blas/kernels/packed/packed.h" namespace "gputensor" nogil:
    cdef struct PackedParameters:
        uint64_t a
        uint64_t b
        uint64_t c
        uint64_t d
        uint64_t sums
        uint64_t flags
        int64_t ldc
        int64_t ldd
        int64_t m
        int64_t n
        int64_t units_tiles
        int64_t units
        int steps
        int line
        int main_m
        int main_n
        int edge_m
        int edge_n
        int whole
        int divided
        int strips_n
        int strips_m
        int strips_from
        int weight_tile
        int weight_strip
        float alpha
        float beta

# The handle of a plan points to one of these; each member is a Kernel of `packed_table`.
cdef struct Kernels:
    void* pack
    void* product[2]            # without and with an addend
    int shared_nbytes

cdef Kernels[5][2] packed_kernels          # by types and columns
cdef KernelTable packed_table

# A variant of a kernel; the packing kernel has the bytes of an element and 0 columns.
cdef struct PackedVariant:
    int operand
    int result
    int columns
    int has_addend
    int nbytes


# ---- which products

cdef int types_of(const Product* product) noexcept nogil:
    """Return a number for types that the kernels support; -1 for others."""
    if product.type_b != product.type_a or product.scale_a != 0:
        return -1
    if product.type_a == DT_FLOAT32:
        if product.type_d == DT_FLOAT32 and product.compute == COMPUTE_32F_FAST_TF32:
            return 0
        return -1
    if product.type_a == DT_FLOAT16:
        return 1 if product.type_d == DT_FLOAT16 else 2 if product.type_d == DT_FLOAT32 else -1
    if product.type_a == DT_BFLOAT16:
        return 3 if product.type_d == DT_BFLOAT16 else 4 if product.type_d == DT_FLOAT32 else -1
    return -1


cdef bint packed_can(const Product* product) except -1 nogil:
    return types_of(product) >= 0 and not product.flags & PRODUCT_AS_IT_IS and (
        product.m <= PACKED_MAX_SIZE and product.n <= PACKED_MAX_SIZE
        and product.k <= PACKED_MAX_SIZE)


cdef void schedule_for(const Product* product, int clusters, Schedule* schedule) noexcept nogil:
    schedule_choose(product.n, product.m, product.k, <int>dtype_itemsize(product.type_a), clusters,
                    schedule)


cdef bint packed_is_worthwhile(const Product* product, int clusters) noexcept nogil:
    cdef double terms = <double>product.m * <double>product.n * <double>product.k
    cdef double nbytes
    cdef Schedule schedule
    if packed_mode != PACKING_AUTO:
        return packed_mode == PACKING_ALWAYS
    if product.m < LEAST_SIZE or product.n < LEAST_SIZE or product.k < LEAST_SIZE:
        return False
    if product.type_a == DT_FLOAT32:
        if odd_matrices(product) == PAD_NONE or terms < PACKED_LEAST_RESULTS * product.k:
            return False
        return terms >= (PACKED_LEAST_TERMS if product.batch == 1 else LEAST_TERMS_BATCH)
    if odd_matrices(product) & PAD_D == 0:
        return False
    schedule_for(product, clusters, &schedule)
    nbytes = <double>product.m * <double>product.n * <double>dtype_itemsize(product.type_d)
    return schedule.cost + PACKED_LAUNCHES < (
        terms / LIBRARY_RATE + nbytes / PACKED_COPY_RATE + PADDED_LAUNCHES / product.batch)


cdef bint packed_wins(const Product* product) except -1 nogil:
    cdef const DeviceFacts* facts = known_facts(product.device)
    return facts.capability == HOPPER and packed_is_worthwhile(product, facts.multiprocessors // 2)


# ---- plans

cdef object packed_program(const void* given):
    cdef const PackedVariant* variant = <const PackedVariant*>given
    if variant.columns == 0:
        return programs.packing(variant.nbytes)
    return programs.packed(DTYPES[variant.operand].name, DTYPES[variant.result].name,
                           variant.columns, bool(variant.has_addend))


cdef int packed_build(const Product* product, const Choice* choice,
                      Plan* plan) except -1 nogil:
    cdef Schedule schedule
    cdef Kernels* found
    cdef PackedVariant variant
    cdef int device = product.device
    cdef int types = types_of(product)
    cdef int status, has_addend
    cdef uint64_t key
    schedule_for(product, known_facts(device).multiprocessors // 2, &schedule)
    found = &packed_kernels[types][schedule.columns == 256]
    key = <uint64_t>types << 2 | <uint64_t>(schedule.columns == 256) << 1
    variant.operand, variant.result = product.type_a, product.type_d
    variant.nbytes = <int>dtype_itemsize(product.type_a)
    variant.columns = variant.has_addend = 0
    found.shared_nbytes = packed_shared(schedule.columns)
    found.pack = kernel_of(&packed_table, PACKING_KEY | <uint64_t>variant.nbytes, packed_program,
                           &variant)
    status = compiled(found.pack, device, 0)
    variant.columns = schedule.columns
    for has_addend in range(2):
        variant.has_addend = has_addend
        found.product[has_addend] = kernel_of(&packed_table, key | <uint64_t>has_addend,
                                              packed_program, &variant)
        if status == BLAS_OK:
            status = compiled(found.product[has_addend], device, found.shared_nbytes)
    plan.handle = found
    return status


cdef int packed_shared(int columns) except -1 with gil:
    return programs.packed_shared_nbytes(columns)


# ---- runs

cdef inline size_t packed_align(size_t nbytes) noexcept nogil:
    return (nbytes + PACKED_ALIGNMENT - 1) & ~<size_t>(PACKED_ALIGNMENT - 1)


cdef inline size_t sums_nbytes(const Schedule* schedule, int clusters) noexcept nogil:
    return <size_t>clusters * 2 * WARPS * WARP_NBYTES if schedule.units else 0


cdef size_t packed_scratch(const Plan* plan, const Product* product) noexcept nogil:
    cdef Schedule schedule
    cdef int clusters = known_facts(product.device).multiprocessors // 2
    schedule_for(product, clusters, &schedule)
    return (PACKED_ALIGNMENT + <size_t>(schedule.tiles_a + schedule.tiles_b) * PACKED_TILE_NBYTES
            + sums_nbytes(&schedule, clusters) + clusters * 2 * WARPS * FLAG_NBYTES)


cdef void fill_packing(const Product* product, const Schedule* schedule, uint64_t a, uint64_t b,
                       PackingParameters* p) noexcept nogil:
    p.a.source, p.b.source = product.b, product.a
    p.a.target, p.b.target = a, b
    p.a.pitch, p.b.pitch = product.ldb, product.lda
    p.a.rows, p.b.rows = product.n, product.m
    p.a.k = p.b.k = product.k
    p.a.tiles, p.b.tiles = schedule.tiles_a, schedule.tiles_b
    p.a.steps = p.b.steps = schedule.line
    p.a.along_rows = product.op_b != OP_N
    p.b.along_rows = product.op_a == OP_N


cdef void fill_packed(const Product* product, const Schedule* schedule, uint64_t a, uint64_t b,
                      PackedParameters* p) noexcept nogil:
    p.a, p.b = a, b
    p.c, p.d = product.c, product.d
    p.ldc, p.ldd = product.ldc, product.ldd
    p.m, p.n = product.n, product.m
    p.units_tiles, p.units = schedule.units_tiles, schedule.units
    p.steps, p.line = schedule.steps, schedule.line
    p.main_m, p.main_n = schedule.main_m, schedule.main_n
    p.edge_m, p.edge_n = schedule.edge_m, schedule.edge_n
    p.whole, p.divided = schedule.whole, schedule.divided
    p.strips_n, p.strips_m = schedule.strips_n, schedule.strips_m
    p.strips_from = schedule.strips_from
    p.weight_tile, p.weight_strip = schedule.weight_tile, schedule.weight_strip
    p.alpha, p.beta = <float>product.alpha, <float>product.beta


cdef int packed_launch(const Work* work) except -1 nogil:
    cdef const Product* product = work.products
    cdef const Kernels* found = <const Kernels*>work.plan.handle
    cdef Schedule schedule
    cdef PackingParameters packing
    cdef PackedParameters run
    cdef int clusters = known_facts(product.device).multiprocessors // 2
    cdef uint64_t a = packed_align(work.scratch)
    cdef uint64_t b
    cdef int64_t _item
    cdef Grid pack, multiply
    memset(&packing, 0, sizeof(packing))
    memset(&run, 0, sizeof(run))
    schedule_for(product, clusters, &schedule)
    b = a + <uint64_t>schedule.tiles_a * PACKED_TILE_NBYTES
    fill_packing(product, &schedule, a, b, &packing)
    fill_packed(product, &schedule, a, b, &run)
    run.sums = b + <uint64_t>schedule.tiles_b * PACKED_TILE_NBYTES
    run.flags = packing.flags = run.sums + sums_nbytes(&schedule, clusters)
    if schedule.units:
        packing.flag_count = clusters * 2 * WARPS
    grid_of_blocks(&pack, schedule.tiles_a + schedule.tiles_b, PACKING_THREADS, 0)
    grid_of_blocks(&multiply, 2 * clusters, THREADS, found.shared_nbytes)
    for _item in range(product.batch):
        queue_kernel(work, found.pack, &pack, &packing, sizeof(packing))
        queue_kernel(work, found.product[run.beta != 0], &multiply, &run, sizeof(run))
        packing.a.source += <uint64_t>(product.stride_b * dtype_itemsize(product.type_b))
        packing.b.source += <uint64_t>(product.stride_a * dtype_itemsize(product.type_a))
        run.c += <uint64_t>(product.stride_c * dtype_itemsize(product.type_d))
        run.d += <uint64_t>(product.stride_d * dtype_itemsize(product.type_d))
    return 0
