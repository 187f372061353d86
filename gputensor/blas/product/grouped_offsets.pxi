"""Grouped products whose row offsets are on the device: one launch that reads them there.

The host neither waits for the offsets nor checks them. On a GPU the work goes to a kernel of ours,
which clamps them; on a host device to NumPy, where they are clamped too. There are two kernels: one
for the tensor cores of Hopper and 16-bit operands whose rows are aligned (grouped_wgmma.cuh), and
one for all other operands (grouped.cuh).
"""

cdef enum:
    BLOCK = 256
    BLOCKS = 132                # one for each multiprocessor of an H100 or H200
    HOPPER = 90
    MAX_SIZE = 0x7FFFFFFF       # of each dimension
    LARGE = 8                   # results of a thread in each direction
    SMALL = 4

cdef extern from "gputensor/blas/kernels/grouped/grouped.h" namespace "gputensor" nogil:
    cdef struct GroupedParameters:
        uint64_t a
        uint64_t b
        uint64_t d
        uint64_t offsets
        int64_t tokens
        int64_t n
        int64_t k
        int64_t row_a
        int64_t term_a
        int64_t group_b
        int64_t term_b
        int64_t column_b
        int64_t row_d
        int64_t column_d
        int first
        int count
        int is_last
        int columns
        int has_pairs

cdef KernelTable kernels
cdef KernelTable tensor_kernels
cdef KernelTable loaded_kernels     # the tensor_kernels of each device that loaded them
cdef bint[MAX_DEVICES] is_refused   # the compiler does not support the architecture
cdef int MOST_GROUPS = programs.MAX_GROUPS
# By `quartets`, the groups of one launch; by these and columns / 64, the shared memory of a block.
cdef int[4] TENSOR_GROUPS
cdef int[4][5] TENSOR_NBYTES
for rows in range(1, 4):
    TENSOR_GROUPS[rows] = programs.grouped_groups(rows)
    for columns in range(1, 5):
        TENSOR_NBYTES[rows][columns] = programs.grouped_shared_nbytes(rows, 64 * columns)


cdef int offsets_check(const Operand* a, const Operand* b, const Operand* out,
                       const Operand* offsets) except -1:
    cdef int axis
    if a.ndim != 2 or b.ndim != 3 or a.shape[1] != b.shape[1]:
        raise ValueError(
            f"grouped_matmul: weights: got shape {shape_of(b)} for tokens of shape {shape_of(a)}; "
            "expected (groups, k, n) for (tokens, k)")
    if offsets is not NULL and (offsets.ndim != 1 or offsets.shape[0] != b.shape[0]):
        raise ValueError(f"grouped_matmul: offsets: got shape {shape_of(offsets)}; expected one "
                         f"for each of the {b.shape[0]} groups")
    if out.ndim != 2 or out.shape[0] != a.shape[0] or out.shape[1] != b.shape[2]:
        raise ValueError(f"grouped_matmul: out: got shape {shape_of(out)}; expected "
                         f"({a.shape[0]}, {b.shape[2]}), that of the result")
    for axis in range(2):
        if out.shape[axis] > 1 and out.strides[axis] == 0 and out.shape[1 - axis]:
            raise ValueError("grouped_matmul: out: got elements with more than one index (a stride "
                             "of 0); expected a separate place in memory for each")
    for axis in range(3):
        if b.shape[axis] > MAX_SIZE or a.shape[0] > MAX_SIZE:
            raise ValueError(f"grouped_matmul: tokens and weights: got shapes {shape_of(a)} and "
                             f"{shape_of(b)}; expected sizes of at most 2**31 - 1")
    if a.dtype != b.dtype or not (a.dtype == DT_FLOAT32 or dtype_is_half(a.dtype)):
        raise_for_types(a, b, out)
    if out.dtype != a.dtype and out.dtype != DT_FLOAT32:
        raise_for_types(a, b, out)
    check_extents(out, a, b"the tokens")
    check_extents(out, b, b"the weights")
    if offsets is not NULL:
        check_extents(out, offsets, b"the offsets")
    return 0


cdef tuple shape_of(const Operand* operand):
    cdef int axis
    return tuple([operand.shape[axis] for axis in range(operand.ndim)])


cdef int offsets_launch(int device, uint64_t stream, Operand* a, Operand* b, Operand* out,
                        Operand* offsets) except -1 nogil:
    if device_kind(device) == DEVICE_HOST:
        return host_offsets(device, stream, a, b, out, offsets)
    if out.shape[0] == 0 or out.shape[1] == 0:
        return 0
    if a.shape[1] == 0 or b.shape[0] == 0:
        return fill_zeros(device, stream, out)
    if suits_tensor_cores(device, a, b):
        if run_on_tensor_cores(device, stream, a, b, out, offsets):
            return 0
    return run_any_layout(device, stream, a, b, out, offsets)


cdef int host_offsets(int device, uint64_t stream, Operand* a, Operand* b, Operand* out,
                      Operand* offsets) except -1 with gil:
    return host_call(device, stream, OFFSETS_CALL, (
        call_argument(device, out), call_argument(device, a), call_argument(device, b),
        call_argument(device, offsets)))


cdef int fill_zeros(int device, uint64_t stream, Operand* out) except -1 nogil:
    cdef Operand zero
    zero.is_scalar = 1
    zero.ndim = 0
    zero.ptr = 0
    zero.integer = 0
    zero.dtype = out.dtype
    zero.real = zero.imag = 0
    return fill(device, stream, out, &zero)


cdef void fill_parameters(GroupedParameters* p, const Operand* a, const Operand* b,
                          const Operand* out, const Operand* offsets) noexcept nogil:
    cdef int64_t size = dtype_itemsize(out.dtype)
    memset(p, 0, sizeof(p[0]))
    p.a, p.b, p.d, p.offsets = a.ptr, b.ptr, out.ptr, offsets.ptr
    p.tokens, p.n, p.k = a.shape[0], b.shape[2], a.shape[1]
    p.row_a, p.term_a = a.strides[0], a.strides[1]
    p.group_b, p.term_b, p.column_b = b.strides[0], b.strides[1], b.strides[2]
    p.row_d, p.column_d = out.strides[0], out.strides[1]
    p.has_pairs = (out.strides[1] == 1 and out.strides[0] % 2 == 0
                   and out.ptr % <uint64_t>(2 * size) == 0)


cdef struct GroupsLaunch:
    void* kernel
    int64_t groups
    int64_t most                # groups of one launch
    int rows, columns           # of a tile
    int block                   # threads
    int shared_nbytes
    int blocks                  # at most


cdef int launch_groups(int device, uint64_t stream, const GroupsLaunch* groups,
                       GroupedParameters* p) except -1 nogil:
    """Launch for all groups, up to `most` of them at a time."""
    cdef Launch launch
    cdef int64_t tiles, left
    p.columns = <int>((p.n + groups.columns - 1) // groups.columns)
    p.first = 0
    while p.first < groups.groups:
        left = groups.groups - p.first
        p.count = <int>(left if left < groups.most else groups.most)
        p.is_last = p.first + p.count == groups.groups
        # Each group, and the rows after the last, may end with a partial tile.
        tiles = (p.tokens // groups.rows + p.count + 1) * p.columns
        launch_init(&launch, device, stream,
                    <uint32_t>(tiles if tiles < groups.blocks else groups.blocks), groups.block, p,
                    sizeof(p[0]))
        launch.shared_nbytes = launch.most_shared_nbytes = groups.shared_nbytes
        launch_kernel(groups.kernel, &launch)
        p.first += p.count
    return 0


# ---- any layout

cdef int run_any_layout(int device, uint64_t stream, Operand* a, Operand* b, Operand* out,
                        Operand* offsets) except -1 nogil:
    cdef GroupedParameters p
    cdef int64_t groups = b.shape[0]
    # Large tiles if an average group fills them.
    cdef int quad = LARGE if a.shape[0] >= 96 * groups and b.shape[2] >= 96 else SMALL
    cdef int tile = 16 * quad
    cdef GroupsLaunch launch
    cdef int[3] variant
    variant[0], variant[1], variant[2] = a.dtype, out.dtype, quad
    launch.kernel = kernel_of(&kernels, <uint64_t>((a.dtype << 5 | out.dtype) << 4 | quad),
                              grouped_program, variant)
    launch.groups, launch.most = groups, MOST_GROUPS
    launch.rows = launch.columns = tile
    launch.block, launch.shared_nbytes = BLOCK, 0
    launch.blocks = 2 * BLOCKS if quad == LARGE else 3 * BLOCKS
    fill_parameters(&p, a, b, out, offsets)
    return launch_groups(device, stream, &launch, &p)


cdef object grouped_program(const void* variant):
    cdef const int* given = <const int*>variant
    return programs.grouped(DTYPES[given[0]].name, DTYPES[given[1]].name, given[2])


# ---- tensor cores

cdef bint suits_tensor_cores(int device, const Operand* a, const Operand* b) noexcept nogil:
    """Whether these are 16-bit operands with rows aligned to 16 bytes, on Hopper."""
    cdef bint is_along_terms = b.strides[1] == 1
    if not dtype_is_half(a.dtype) or a.strides[1] != 1:
        return False
    if not is_along_terms and b.strides[2] != 1:
        return False
    if (a.ptr | b.ptr) % 16 or (a.strides[0] | b.strides[0]) % 8:
        return False
    if b.strides[2 if is_along_terms else 1] % 8:
        return False
    return known_facts(device).capability == HOPPER


cdef bint run_on_tensor_cores(int device, uint64_t stream, Operand* a, Operand* b, Operand* out,
                              Operand* offsets) except -1 nogil:
    """Launch on tensor cores; False when the kernel cannot be compiled."""
    cdef GroupedParameters p
    cdef int64_t groups = b.shape[0]
    cdef int64_t tokens = a.shape[0]
    cdef int64_t n = b.shape[2]
    cdef int quartets = 1 if tokens <= 64 * groups else 2
    cdef int columns = 128
    cdef GroupsLaunch launch
    cdef TensorVariant variant
    if n <= 64:
        columns = 64
    elif quartets == 2 and (tokens // 128 + groups // 2) * (n // 256) >= BLOCKS:
        columns = 256
        # Taller tiles read less of the weights, since the L2 cache limits large products.
        if tokens >= 4 * 192 * groups:
            quartets = 3
    variant.dtype, variant.result = a.dtype, out.dtype
    variant.quartets, variant.columns = quartets, columns
    variant.is_along_terms = b.strides[1] == 1
    launch.kernel = tensor_kernel(device, &variant)
    if launch.kernel == NULL:
        return False
    launch.groups, launch.most = groups, TENSOR_GROUPS[quartets]
    launch.rows, launch.columns, launch.block = 64 * quartets, columns, 128 * quartets
    launch.shared_nbytes = TENSOR_NBYTES[quartets][columns >> 6]
    launch.blocks = BLOCKS if columns == 256 else 2 * BLOCKS
    fill_parameters(&p, a, b, out, offsets)
    launch_groups(device, stream, &launch, &p)
    return True


cdef struct TensorVariant:
    int dtype
    int result
    int quartets
    int columns
    int is_along_terms


cdef void* tensor_kernel(int device, const TensorVariant* variant) except? NULL nogil:
    """Return the loaded kernel, or NULL when it cannot be compiled."""
    cdef uint64_t key = (variant.dtype << 5 | variant.result) << 2 | variant.quartets
    key = key << 10 | <uint64_t>(variant.columns << 1 | variant.is_along_terms)
    cdef uint64_t loaded = key << 8 | <uint64_t>device
    cdef void* found
    if is_refused[device]:
        return NULL
    found = loaded_kernels.find(loaded)
    if found == NULL:
        found = kernel_of(&tensor_kernels, key, tensor_program, variant)
        found = tensor_kernel_loaded(device, found, variant, loaded)
    return found


cdef void* tensor_kernel_loaded(int device, void* found, const TensorVariant* variant,
                                uint64_t key) except? NULL with gil:
    try:
        kernel_load(found, device, TENSOR_NBYTES[variant.quartets][variant.columns >> 6])
    except DeviceError:
        # The compiler does not support the architecture.
        is_refused[device] = True
        return NULL
    if loaded_kernels.find(key) == NULL:
        loaded_kernels.insert(key, found)
    return found


cdef object tensor_program(const void* given):
    cdef const TensorVariant* variant = <const TensorVariant*>given
    return programs.grouped_wgmma(
        DTYPES[variant.dtype].name, DTYPES[variant.result].name, variant.quartets, variant.columns,
        bool(variant.is_along_terms))
