"""Choosing elements by a rule on a CUDA device: bits and starts, then elements or places.

The kernels are mark.cuh and pick.cuh of cuda/orders. Between the two the host reads the number of
chosen elements, which is the last start.
"""

cdef tuple MARK_RULES = ("true", "first", "first_nan")

cdef enum:
    RULE_BITS = 3               # of mark.cuh
    SEEN_THREADS = 1024
    SEEN_EACH = 64              # bytes of a thread, at least, until every multiprocessor has blocks
    SEEN_RESERVED = 1024        # of a multiprocessor's shared memory, for a block


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


cdef int cuda_seen(int device, uint64_t stream, const Operand* bits, const Operand* starts,
                   const Operand* x, uint64_t least) except -1:
    """Set the bits of the integers in `x`, and write the starts of tiles of them."""
    cdef SeenParameters p
    cdef Launch launch
    cdef int[5] numbers
    cdef Operand words = bits[0]
    cdef int64_t nbytes = 4 * bits.shape[0], blocks
    cdef int64_t room = device_facts(device).shared_nbytes - SEEN_RESERVED
    cdef int64_t most = max(1, device_facts(device).multiprocessors)
    memset(&p, 0, sizeof(p))
    memset(numbers, 0, sizeof(numbers))
    clear(device, stream, bits.ptr, nbytes)
    p.input, p.least, p.bits = x.ptr, least, bits.ptr
    p.count, p.words = x.shape[0], bits.shape[0]
    numbers[0], numbers[1] = x.dtype, nbytes <= room
    launch_init(&launch, device, stream, 1, SEEN_THREADS, &p, sizeof(p))
    if nbytes <= room:
        launch.shared_nbytes, launch.most_shared_nbytes = <uint32_t>nbytes, <uint32_t>room
    if nbytes > room or 2 * (nbytes + SEEN_RESERVED) <= room:
        most *= 2
    blocks = ceil_divide(p.count * dtype_itemsize(x.dtype), SEEN_THREADS * SEEN_EACH)
    launch_order(SEEN, numbers, min(most, blocks), &launch)
    words.shape[0] *= 32
    return cuda_mark(device, stream, bits, starts, &words, RULE_BITS)


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
