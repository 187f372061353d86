"""Choosing elements by a rule on a CUDA device: bits and starts, then elements or places.

The kernels are mark.cuh and pick.cuh of cuda/orders. Between the two the host reads the number of
chosen elements, which is the last start.
"""

cdef tuple MARK_RULES = ("true", "first", "first_nan")


cdef int cuda_mark(int device, uint64_t stream, const Operand* bits, const Operand* starts,
                   const Operand* x, int rule) except -1:
    cdef MarkParameters p
    cdef Launch launch
    cdef int[5] numbers
    cdef size_t nbytes
    cdef Block* block
    memset(&p, 0, sizeof(p))
    memset(numbers, 0, sizeof(numbers))
    p.input, p.bits, p.starts = x.ptr, bits.ptr, starts.ptr
    p.count, p.tiles = x.shape[0], starts.shape[0] - 1
    numbers[0], numbers[1] = x.dtype, rule
    nbytes = prefix_nbytes(1, p.tiles, 8)
    block = scratch(device, stream, nbytes)
    try:
        clear(device, stream, block.ptr, nbytes)
        p.counter, p.words = block.ptr, block.ptr + COUNTER_NBYTES
        launch_init(&launch, device, stream, 1, ORDER_THREADS, &p, sizeof(p))
        return launch_order(MARK, numbers, p.tiles, &launch)
    finally:
        allocator_free(block)


cdef int cuda_pick(int device, uint64_t stream, const Operand* out, const Operand* bits,
                   const Operand* starts, uint64_t input, object extents) except -1:
    """Pick elements of `input`, or their places along axes of these extents if `input` is 0."""
    cdef PickParameters p
    cdef int rank = len(extents)
    cdef Launch launch
    cdef int[5] numbers
    cdef int axis
    memset(&p, 0, sizeof(p))
    memset(numbers, 0, sizeof(numbers))
    p.input, p.bits, p.starts, p.out = input, bits.ptr, starts.ptr, out.ptr
    p.count, p.total = 1, out.shape[out.ndim - 1]
    for axis in range(rank):
        p.extents[axis] = extents[axis]
        p.count *= extents[axis]
    numbers[0] = dtype_itemsize(out.dtype)
    numbers[1], numbers[2] = input == 0, p.count >= <int64_t>1 << 32
    numbers[3] = rank
    launch_init(&launch, device, stream, 1, ORDER_THREADS, &p, sizeof(p))
    return launch_order(PICK, numbers, starts.shape[0] - 1, &launch)
