"""Batches that no single stride describes, as one call of cuBLAS with arrays of addresses.

Broadcasting in two batch dimensions, or views with steps, leave batch dimensions that do not merge.
A call for each index of the smaller dimensions takes 3 to 5 µs of the host and leaves most of the
GPU idle when the products are small. Instead, a kernel of some 2 µs writes the addresses of all
matrices to device memory, in stream order, and one pointer-array call does the whole batch. The
kernel computes them from the strides in its parameters, so a captured call does not need the host.

The library does not check the alignment of such addresses: with tensor cores it may load 16 bytes
at once. So batches with matrices at other addresses keep one call for each repetition.
"""

cdef enum:
    POINTERS_BLOCK = 256
    POINTERS_MAX_GRID = 1024
    POINTERS_ALIGNMENT = 16              # bytes
    # A repetition with more multiply-adds keeps the GPU busy until the next call.
    BUSY_TERMS = 1 << 30

cdef extern from "gputensor/blas/kernels/pointers/pointers.h" namespace "gputensor" nogil:
    const int LISTED_PRODUCTS "gputensor::LISTED_PRODUCTS"

    cdef struct StridedParameters:
        uint64_t a
        uint64_t b
        uint64_t d
        uint64_t table
        int64_t total
        int64_t ndim
        int64_t[17] count
        int64_t[17] step_a
        int64_t[17] step_b
        int64_t[17] step_d

    cdef struct ListedParameters:
        uint64_t table
        int64_t total
        int64_t first
        int64_t count
        uint64_t[288] addresses

cdef Kernel strided = Kernel(programs.strided())
cdef Kernel listed = Kernel(programs.listed())
cdef void* strided_kernel = <void*>strided
cdef void* listed_kernel = <void*>listed


cdef int64_t repetitions(const Product* product) noexcept nogil:
    cdef int64_t count = 1
    cdef int axis
    for axis in range(product.outer_ndim):
        count *= product.outer_count[axis]
    return count


cdef bint pointers_are_aligned(const Product* product, int a, int b, int d) noexcept nogil:
    if product.type_a == DT_FLOAT64 or (product.type_a == DT_FLOAT32
                                        and product.compute == COMPUTE_32F):
        return True
    return a >= POINTERS_ALIGNMENT and b >= POINTERS_ALIGNMENT and d >= POINTERS_ALIGNMENT


cdef bint pointer_batch_wins(const Product* product) noexcept nogil:
    cdef int kind = dtype_kind(product.type_a)
    cdef int a, b, c, d
    cdef int64_t itemsize
    cdef double terms
    if product.outer_ndim == 0 or product.scale_a != 0:
        return False
    if kind != KIND_FLOAT and kind != KIND_COMPLEX:
        return False
    terms = 1.0 * product.m * product.n * product.k * product.batch
    if terms > BUSY_TERMS:
        return False
    product_alignments(product, &a, &b, &c, &d)
    if product.batch > 1:
        itemsize = dtype_itemsize(product.type_a)
        a = min(a, alignment_of(0, product.stride_a * itemsize))
        b = min(b, alignment_of(0, product.stride_b * itemsize))
        d = min(d, alignment_of(0, product.stride_d * dtype_itemsize(product.type_d)))
    return pointers_are_aligned(product, a, b, d)


cdef bint pointer_batch_ready(int device) except -1 nogil:
    # A phantom GPU keeps one product for each repetition.
    return not known_facts(device).is_phantom and compiled(strided_kernel, device, 0) == BLAS_OK


cdef bint pointers_can(const Product* product) except -1 nogil:
    return product.flags & PRODUCT_POINTERS != 0


cdef size_t pointers_scratch(const Plan* plan, const Product* product) noexcept nogil:
    return <size_t>(3 * sizeof(uint64_t) * repetitions(product) * product.batch)


# The outer dimensions are in the table, so this is one call.
cdef int pointers_launch(const Work* work) except -1 nogil:
    cdef const Product* product = work.products
    cdef StridedParameters p
    cdef Grid grid
    cdef int axis
    cdef int64_t blocks
    cdef int64_t size_a = dtype_itemsize(product.type_a)
    cdef int64_t size_b = dtype_itemsize(product.type_b)
    cdef int64_t size_d = dtype_itemsize(product.type_d)
    memset(&p, 0, sizeof(p))
    p.a, p.b, p.d, p.table = product.a, product.b, product.d, work.scratch
    p.total = repetitions(product) * product.batch
    p.ndim = product.outer_ndim + 1
    p.count[0] = product.batch
    p.step_a[0] = product.stride_a * size_a
    p.step_b[0] = product.stride_b * size_b
    p.step_d[0] = product.stride_d * size_d
    for axis in range(product.outer_ndim):
        p.count[axis + 1] = product.outer_count[axis]
        p.step_a[axis + 1] = product.outer_a[axis] * size_a
        p.step_b[axis + 1] = product.outer_b[axis] * size_b
        p.step_d[axis + 1] = product.outer_d[axis] * size_d
    blocks = (p.total + POINTERS_BLOCK - 1) // POINTERS_BLOCK
    grid_of_blocks(&grid, blocks if blocks < POINTERS_MAX_GRID else POINTERS_MAX_GRID,
                   POINTERS_BLOCK, 0)
    queue_kernel(work, strided_kernel, &grid, &p, sizeof(p))
    return cublas_run_pointers(product, p.total, work.scratch, work.workspace.ptr,
                               work.workspace.nbytes, work.stream)


# Products of different geometries as one call; `scratch` holds the table of their addresses.
cdef int grouped_launch_all(const Work* work) except -1 nogil:
    cdef const Product* products = work.products
    cdef ListedParameters p
    cdef Grid grid
    cdef int64_t index
    memset(&p, 0, sizeof(p))
    p.table, p.total = work.scratch, work.count
    p.first = 0
    grid_of_blocks(&grid, 1, LISTED_PRODUCTS, 0)
    while p.first < p.total:
        p.count = p.total - p.first
        if p.count > LISTED_PRODUCTS:
            p.count = LISTED_PRODUCTS
        for index in range(p.count):
            p.addresses[3 * index] = products[p.first + index].a
            p.addresses[3 * index + 1] = products[p.first + index].b
            p.addresses[3 * index + 2] = products[p.first + index].d
        queue_kernel(work, listed_kernel, &grid, &p, sizeof(p))
        p.first += p.count
    return cublas_run_grouped(products, work.count, work.scratch, work.workspace.ptr,
                              work.workspace.nbytes, work.stream)
