"""One draw: writes the next numbers of `state` to `out` and advances `state`.

The state is four uint64: the seed, the counter (low and high half), and a word that is 0 between
draws. Both kinds of devices compile the same text for the numbers (cuda/draw.h).
"""

cdef enum:
    DRAW_THREADS = 256
    PERMUTATION_THREADS = 1024
    PERMUTATION = 6
    RANKED_ELEMENTS = 1024
    # Blocks of threads for each multiprocessor: each thread then makes several blocks of numbers.
    DRAW_WAVES = 16

cdef extern from "gputensor/_kernels/cuda/draw.h" namespace "gputensor" nogil:
    cdef struct DrawParameters:
        uint64_t out
        uint64_t state
        int64_t count
        uint64_t blocks
        double first
        double second
        double most
        uint64_t least
        uint64_t range

cdef extern from "gputensor/_kernels/faces/draw_host.h" namespace "gputensor" nogil:
    cdef struct DrawPlace:
        uint64_t seed
        uint64_t low
        uint64_t high
    void draw_numbers[T](int kind, int bits, const DrawPlace& place, const DrawParameters& p,
                         T* out)
    void draw_integers(int kind, int lanes, const DrawPlace& place, const DrawParameters& p,
                       unsigned long long* out)
    void draw_permutation(const DrawPlace& place, const DrawParameters& p,
                          unsigned long long* out)

cdef KernelTable draw_kernels
cdef dict NAME_OF = {row.numpy: row.name for row in DTYPES}
cdef object FLOAT32 = np.dtype(np.float32)
cdef object FLOAT64 = np.dtype(np.float64)


cdef int64_t dense_size(const Operand* operand) noexcept nogil:
    """The number of elements of a row-major operand; -1 for other layouts."""
    cdef int64_t size = 1
    cdef int axis
    for axis in range(operand.ndim - 1, -1, -1):
        if operand.shape[axis] != 1 and operand.strides[axis] != size:
            return -1
        size *= operand.shape[axis]
    return size


cdef int fill_parameters(DrawParameters* parameters, object facts, int64_t count) except -1:
    memset(parameters, 0, sizeof(DrawParameters))
    parameters.count = count
    parameters.blocks = facts.blocks(count)
    parameters.first = facts.first
    parameters.second = facts.second
    parameters.most = facts.most
    parameters.least = facts.least
    parameters.range = facts.range
    return 0


def _run_draw(str distribution, a, b, out, state):
    """The draw on NumPy views.

    >>> out, state = np.empty(2, np.uint32), np.zeros(4, np.uint64)
    >>> _run_draw("integers", 0, 2**32 - 1, out, state)
    >>> [hex(word) for word in out], state.tolist()
    (['0x6627e8d5', '0xe169c58d'], [0, 1, 0, 0])
    """
    cdef DrawParameters parameters
    cdef DrawPlace place
    cdef Py_buffer memory
    cdef int kind, bits, lanes
    cdef void* numbers
    cdef bint is_double = out.dtype is FLOAT64
    # Numbers in the type of the arithmetic are written to the output directly.
    cdef bint is_direct = is_double or out.dtype is FLOAT32
    cdef object facts = draw_facts(distribution, a, b, NAME_OF[out.dtype])
    cdef object made = out
    cdef list words = state.tolist()
    fill_parameters(&parameters, facts, out.size)
    kind, bits, lanes = facts.kind, facts.bits, facts.lanes
    place.seed, place.low, place.high = words[0], words[1], words[2]
    if not (bits and is_direct and out.flags.c_contiguous):
        is_direct = False
        made = np.empty(out.shape, (FLOAT64 if is_double else FLOAT32) if bits else np.uint64)
    PyObject_GetBuffer(made, &memory, PyBUF_WRITABLE)
    numbers = memory.buf
    try:
        with nogil:
            if kind == PERMUTATION:
                draw_permutation(place, parameters, <unsigned long long*>numbers)
            elif not bits:
                draw_integers(kind, lanes, place, parameters, <unsigned long long*>numbers)
            elif is_double:
                draw_numbers(kind, bits, place, parameters, <double*>numbers)
            else:
                draw_numbers(kind, bits, place, parameters, <float*>numbers)
    finally:
        PyBuffer_Release(&memory)
    if not is_direct:
        out[...] = made.astype(out.dtype, copy=False)
        if distribution == "uniform":
            np.minimum(out, out.dtype.type(facts.most), out=out)
    low = place.low + parameters.blocks
    state[1] = low
    state[2] = place.high + (1 if low < place.low else 0)


def _draw_door(int device, uint64_t stream, tuple arguments):
    distribution, a, b, out_operand, state_operand = arguments
    cdef Operand* out = &(<CallOperand?>out_operand).c
    cdef Operand* state = &(<CallOperand?>state_operand).c
    cdef int64_t count = dense_size(out)
    cdef DrawParameters parameters
    cdef Launch launch
    cdef int[4] variant
    cdef int64_t threads = DRAW_THREADS, wanted, most
    if count < 0 or dense_size(state) != 4:
        raise argument_error(ValueError, "random: strides", Described("gaps"), "row-major memory")
    if count == 0:
        return
    if device_kind(device) == DEVICE_HOST:
        host_call(device, stream, RANDOM_CALL, (
            distribution, a, b, call_argument(device, out), call_argument(device, state)))
        return
    cdef object facts = draw_facts(distribution, a, b, DTYPE_NAMES[out.dtype])
    fill_parameters(&parameters, facts, count)
    parameters.out, parameters.state = out.ptr, state.ptr
    variant[0], variant[1] = facts.kind, out.dtype
    variant[2], variant[3] = facts.bits, facts.lanes
    wanted = <int64_t>parameters.blocks
    if variant[0] == PERMUTATION:
        threads = PERMUTATION_THREADS
        wanted = count
    most = DRAW_WAVES * <int64_t>max(1, device_facts(device).multiprocessors)
    wanted = min((wanted + threads - 1) // threads, most)
    launch_init(&launch, device, stream, <uint32_t>wanted, <uint32_t>threads, &parameters,
                sizeof(parameters))
    launch_kernel(kernel_of(&draw_kernels, <uint64_t>((variant[0] << 5 | variant[1]) << 3
                                                      | variant[3]), draw_program, variant),
                  &launch)


cdef object draw_program(const void* variant):
    cdef const int* given = <const int*>variant
    return programs.draw(given[0], given[1], given[2], given[3])


cdef object RANDOM_CALL = bind("random", _run_draw, _draw_door)
