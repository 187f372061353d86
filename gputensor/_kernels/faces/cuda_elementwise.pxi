# Element-wise kernels on a CUDA device: layout, choice of kernel, launch.
#
# The steps of a call: merge the axes; cut arrays that do not fit 32-bit indices; choose vector
# width and reading modes; find the kernel by one integer key; fill one parameter struct; launch.
# With a known key no Python object is made.

cdef enum:
    UNIT = 0                # reading modes; elementwise.cuh explains them
    STRIDED = 1
    SCALAR = 2
    SPACED = 3
    MAX_STEP = 4            # the largest step of SPACED
    SPACED_NBYTES = 32      # that a unit in this mode reads, at most
    MIN_CUT = 1 << 20       # the least length of a row whose last elements are cut off
    CUDA_ELEMENTWISE_BLOCK = 256

cdef extern from "gputensor/_kernels/cuda/elementwise.h" namespace "gputensor" nogil:
    cdef struct ElementwiseScalar:
        double[2] parts

    cdef struct ElementwiseParameters:
        uint64_t out
        uint64_t[3] inputs
        uint32_t units
        uint32_t tail
        ElementwiseScalar[3] scalars
        Axis[16] axes

    unsigned elementwise_nbytes(int rank)

cdef struct Plan:
    int op
    int compute
    int out
    int count
    int[3] dtypes
    int[3] modes
    int[3] steps            # of the operands in mode SPACED
    int[3] shifts
    int piece               # bytes of their loads
    int vector
    int rank                # 0: contiguous
    int unroll

cdef KernelTable cuda_elementwise_kernels


cdef int cuda_elementwise(int op, int device, uint64_t stream, int compute_dtype,
                          Operand* out, int count, Operand* inputs) except -1 nogil:
    cdef Plan plan
    cdef Layout layout
    cdef ElementwiseParameters parameters
    cdef int i
    memset(&parameters, 0, sizeof(parameters))
    if op == OP_POW and inputs[1].is_scalar and is_two(&inputs[1]):
        op = OP_SQUARE
        count = 1
    plan.op = op
    plan.compute = compute_dtype
    plan.out = out.dtype
    plan.count = count
    for i in range(count):
        if inputs[i].is_scalar:
            plan.modes[i] = SCALAR
            plan.dtypes[i] = DT_BOOL if op == OP_WHERE and i == 0 else compute_dtype
            scalar_pack(&inputs[i], plan.dtypes[i], parameters.scalars[i].parts)
        else:
            plan.modes[i] = UNIT
            plan.dtypes[i] = inputs[i].dtype
    if op == OP_COPY:
        use_bits(&plan)
    if choose_run(&plan, out, inputs):
        set_run(&parameters, &plan, out, inputs)
        return launch_plan(device, stream, &plan, &parameters)
    layout_merge(&layout, out, count, inputs)
    return run_layout(device, stream, &plan, &layout, &parameters)


cdef bint is_two(const Operand* operand) noexcept nogil:
    # The value is in the field for the operand's dtype (see scalar.pxi).
    return operand.integer == 2 if operand.dtype < DT_FLOAT16 else (
        operand.real == 2 and operand.imag == 0)


cdef void use_bits(Plan* plan) noexcept nogil:
    # A copy within one dtype moves bits: one kernel for each size.
    cdef int size
    if plan.modes[0] == SCALAR or plan.dtypes[0] != plan.out:
        return
    size = dtype_itemsize(plan.out)
    plan.out = (DT_UINT8 if size == 1 else DT_UINT16 if size == 2 else DT_UINT32 if size == 4
                else DT_UINT64 if size == 8 else DT_COMPLEX128)
    plan.dtypes[0] = plan.out
    plan.compute = plan.out


cdef int run_layout(int device, uint64_t stream, Plan* plan, Layout* layout,
                    ElementwiseParameters* parameters) except -1 nogil:
    cdef Layout rest
    cdef Plan fresh
    cdef bint is_flat = choose_flat(plan, layout)
    if (is_flat and layout_size(layout) > <int64_t>0x7ffff000 * plan.vector) or (
            not is_flat and not layout_is_small(layout)):
        fresh = plan[0]
        layout_cut(layout, &rest)
        run_layout(device, stream, plan, layout, parameters)
        return run_layout(device, stream, &fresh, &rest, parameters)
    if is_flat:
        return launch_flat(device, stream, plan, layout, parameters)
    if plan.op == OP_COPY and plan.modes[0] != SCALAR and is_transposition(layout):
        return transpose(device, stream, plan.out, plan.dtypes[0], layout)
    return launch_strided(device, stream, plan, layout, parameters)


cdef inline int log_of(int power) noexcept nogil:
    cdef int bits = 0
    while power > 1 << bits:
        bits += 1
    return bits


cdef inline int aligned_vector(const Plan* plan, const Layout* layout) noexcept nogil:
    # The number of elements that every operand can load at once: at most 16 bytes, aligned. All
    # sizes are powers of two.
    cdef int k, largest = 1, vector
    for k in range(OPERANDS):
        if layout.itemsizes[k] > largest:
            largest = layout.itemsizes[k]
    vector = 16 // largest
    for k in range(OPERANDS):
        if layout.itemsizes[k] == 0 or (
                k != OUT and plan.modes[k] in (STRIDED, SPACED)):
            continue
        vector = run_vector(vector, layout.ptrs[k], layout.itemsizes[k])
    return vector


# Whether every operand is one contiguous run of one axis, as `tensor` passes tensors without gaps;
# if so, sets the vector width. This is choose_flat without a layout.
cdef bint choose_run(Plan* plan, const Operand* out, const Operand* inputs) noexcept nogil:
    cdef int k, itemsize = dtype_itemsize(out.dtype), largest = itemsize, vector
    cdef bint is_run = out.ndim == 1 and out.strides[0] == 1
    for k in range(plan.count):
        if plan.modes[k] != SCALAR:
            is_run = is_run and inputs[k].strides[0] == 1
            largest = max(largest, dtype_itemsize(plan.dtypes[k]))
    if not is_run:
        return False
    vector = run_vector(16 >> log_of(largest), out.ptr, itemsize)
    for k in range(plan.count):
        if plan.modes[k] != SCALAR:
            vector = run_vector(vector, inputs[k].ptr, dtype_itemsize(plan.dtypes[k]))
    plan.rank, plan.vector = 0, vector
    return out.shape[0] <= <int64_t>0x7ffff000 * vector


cdef inline int run_vector(int vector, uint64_t ptr, int itemsize) noexcept nogil:
    while ptr & <uint64_t>(vector * itemsize - 1) and vector > 1:
        vector >>= 1
    return vector


cdef inline void set_run(ElementwiseParameters* parameters, const Plan* plan, const Operand* out,
                         const Operand* inputs) noexcept nogil:
    cdef int k
    set_size(parameters, plan, <uint64_t>out.shape[0])
    parameters.out = out.ptr
    for k in range(plan.count):
        if plan.modes[k] != SCALAR:
            parameters.inputs[k] = inputs[k].ptr


cdef inline void set_size(ElementwiseParameters* parameters, const Plan* plan,
                          uint64_t size) noexcept nogil:
    parameters.units = <uint32_t>(size >> log_of(plan.vector))
    parameters.tail = <uint32_t>(size & <uint64_t>(plan.vector - 1))


cdef inline void set_pointers(ElementwiseParameters* parameters,
                              const Layout* layout) noexcept nogil:
    cdef int k
    parameters.out = layout.ptrs[OUT]
    for k in range(3):
        parameters.inputs[k] = layout.ptrs[k]


cdef bint choose_flat(Plan* plan, const Layout* layout) noexcept nogil:
    # Whether every operand is one contiguous run; if so, sets the vector width.
    cdef int i
    if layout.ndim > 1 or not is_contiguous(layout, OUT):
        return False
    for i in range(plan.count):
        if plan.modes[i] != SCALAR:
            if not is_contiguous(layout, i):
                return False
            plan.modes[i] = UNIT
    plan.rank = 0
    plan.vector = aligned_vector(plan, layout)
    return True


cdef int launch_flat(int device, uint64_t stream, Plan* plan, const Layout* layout,
                     ElementwiseParameters* parameters) except -1 nogil:
    set_size(parameters, plan, <uint64_t>layout_size(layout))
    set_pointers(parameters, layout)
    return launch_plan(device, stream, plan, parameters)


cdef int launch_strided(int device, uint64_t stream, Plan* plan, Layout* layout,
                        ElementwiseParameters* parameters) except -1 nogil:
    cdef int i
    cdef Plan fresh = plan[0]
    cdef Layout rest
    if layout.ndim == 1 and layout.shape[0] >= MIN_CUT and layout.shape[0] & 15:
        # The last elements of a long row are a launch of their own, which leaves vectors before it.
        layout_split(layout, &rest, 0, layout.shape[0] & ~<int64_t>15)
        choose_strided(plan, layout)
        if plan.vector > 1:
            launch_strided(device, stream, &fresh, layout, parameters)
            return launch_strided(device, stream, plan, &rest, parameters)
        layout.shape[0] += rest.shape[0]
    choose_strided(plan, layout)
    layout.shape[0] //= plan.vector
    for i in range(OPERANDS):
        if i == OUT or (i < plan.count and plan.modes[i] in (UNIT, SPACED)):
            layout.strides[i][0] *= plan.vector
    layout_axes(layout, parameters.axes)
    parameters.units = <uint32_t>layout_size(layout)
    parameters.tail = 0
    set_pointers(parameters, layout)
    return launch_plan(device, stream, plan, parameters)


cdef bint is_spaced(const Layout* layout, int k) noexcept nogil:
    cdef int64_t step = layout.strides[k][0]
    return layout.itemsizes[k] <= 4 and gap_of(layout, k) <= MAX_STEP and step != 0 and step != 1


cdef inline int64_t gap_of(const Layout* layout, int k) noexcept nogil:
    cdef int64_t step = layout.strides[k][0]
    return -step if step < 0 else step


cdef void choose_strided(Plan* plan, const Layout* layout) noexcept nogil:
    # Vectors along the innermost axis when every operand has stride 0 or 1 there, or is spaced.
    cdef int i, axis, vector
    cdef int64_t together
    cdef bint is_vectored = layout.strides[OUT][0] == 1
    plan.rank = layout.ndim
    for i in range(plan.count):
        if plan.modes[i] == SCALAR:
            continue
        plan.modes[i] = UNIT if layout.strides[i][0] == 1 else STRIDED
        if is_spaced(layout, i):
            plan.modes[i] = SPACED
        elif layout.strides[i][0] != 1 and layout.strides[i][0] != 0:
            is_vectored = False
    vector = 1
    if is_vectored:
        together = layout.shape[0]
        for axis in range(1, layout.ndim):
            together |= layout.strides[OUT][axis]
            for i in range(plan.count):
                if plan.modes[i] == UNIT:
                    together |= layout.strides[i][axis]
        vector = aligned_vector(plan, layout)
        while together % vector != 0:
            vector //= 2
        for i in range(plan.count):
            while plan.modes[i] == SPACED and vector > 1 and (
                    gap_of(layout, i) * vector * layout.itemsizes[i] > SPACED_NBYTES):
                vector //= 2
    plan.vector = vector
    for i in range(plan.count):
        if vector == 1 and plan.modes[i] != SCALAR:
            plan.modes[i] = STRIDED
    choose_pieces(plan, layout)


cdef void choose_pieces(Plan* plan, const Layout* layout) noexcept nogil:
    # The widest aligned loads of the operands in mode SPACED.
    cdef int i
    plan.piece = 16
    for i in range(plan.count):
        plan.steps[i] = plan.shifts[i] = 0
        while plan.modes[i] == SPACED and not fits_pieces(plan, layout, i):
            plan.piece >>= 1
    for i in range(plan.count):
        if plan.modes[i] == SPACED:
            fits_pieces(plan, layout, i)


cdef bint fits_pieces(Plan* plan, const Layout* layout, int i) noexcept nogil:
    # Whether plan.piece suits operand `i`; sets its step and shift.
    cdef int axis, itemsize = layout.itemsizes[i], gap = <int>gap_of(layout, i)
    cdef int piece = max(1, plan.piece // itemsize)
    cdef int64_t together = gap * plan.vector
    cdef uint64_t lowest = layout.ptrs[i]
    plan.steps[i] = <int>layout.strides[i][0]
    if plan.steps[i] < 0:
        lowest -= <uint64_t>(gap * (plan.vector - 1) * itemsize)
    for axis in range(1, layout.ndim):
        together |= layout.strides[i][axis]
    plan.shifts[i] = <int>(lowest // itemsize & <uint64_t>(piece - 1))
    return together % piece == 0 and plan.shifts[i] < gap


cdef inline uint64_t mode_key(const Plan* plan, int i) noexcept nogil:
    if plan.modes[i] != SPACED:
        return plan.modes[i]
    return SPACED + <uint64_t>(plan.steps[i] + MAX_STEP) * MAX_STEP + plan.shifts[i]


cdef int launch_plan(int device, uint64_t stream, Plan* plan,
                     ElementwiseParameters* parameters) except -1 nogil:
    cdef int i, loads = 0, spaced = 0
    cdef uint64_t key, threads, block
    cdef Launch launch
    key = plan.op | plan.compute << 7 | plan.out << 12
    for i in range(3):
        key <<= 11
        if i < plan.count:
            key |= plan.dtypes[i] | mode_key(plan, i) << 5
            loads += plan.modes[i] != SCALAR
            spaced += plan.modes[i] == SPACED
    key = (key << 3 | log_of(plan.vector)) << 5 | plan.rank
    key = key << 3 | (log_of(plan.piece) if spaced else 0)
    # Two units in flight hide the latency of a kernel that reads one array; spaced units are long.
    plan.unroll = 2 if loads <= 1 and plan.rank <= 2 and not spaced else 1
    threads = <uint64_t>parameters.units + parameters.tail
    block = CUDA_ELEMENTWISE_BLOCK * plan.unroll
    launch_init(&launch, device, stream, <uint32_t>((threads + block - 1) // block),
                CUDA_ELEMENTWISE_BLOCK, parameters, elementwise_nbytes(plan.rank))
    return launch_kernel(kernel_of(&cuda_elementwise_kernels, key, elementwise_program, plan),
                         &launch)


cdef object elementwise_program(const void* variant):
    cdef const Plan* plan = <const Plan*>variant
    cdef int i
    cdef list inputs = []
    for i in range(plan.count):
        if plan.modes[i] == SPACED:
            inputs.append((plan.dtypes[i], SPACED, plan.steps[i], plan.shifts[i],
                           max(1, plan.piece // dtype_itemsize(plan.dtypes[i]))))
        else:
            inputs.append((plan.dtypes[i], plan.modes[i]))
    return programs.elementwise(plan.op, plan.compute, plan.out, inputs, plan.vector, plan.rank,
                                plan.unroll)
