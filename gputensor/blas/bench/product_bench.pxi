"""The operands of one product on a device, ready to be multiplied and timed with any algorithm.

An algorithm is None (the cost models and the library's heuristic decide) or a tuple (pad, backend,
configuration). Operands rotate through more memory than the cache holds; products are captured into
graphs, so that the host's time does not count. Plans and graphs are numbers here; the caller that
made one releases it. Everything runs on a separate stream, never inside a capture of the caller's.
"""

cdef enum:
    MAX_SETS = 16               # sets of rotating operands
    MAX_REPEATS = 64

# Word patterns for random finite elements: bits kept of random words, bits set (random.cuh).
cdef dict PATTERNS = {
    DT_FLOAT64: (0x800FFFFFFFFFFFFF, 0x3FE0000000000000),
    DT_COMPLEX128: (0x800FFFFFFFFFFFFF, 0x3FE0000000000000),
    DT_FLOAT32: (0x807FFFFF807FFFFF, 0x3F0000003F000000),
    DT_COMPLEX64: (0x807FFFFF807FFFFF, 0x3F0000003F000000),
    DT_FLOAT16: (0x83FF83FF83FF83FF, 0x3800380038003800),
    DT_BFLOAT16: (0x807F807F807F807F, 0x3F003F003F003F00),
    DT_FLOAT8_E4M3: (0x8787878787878787, 0x3030303030303030),
    DT_FLOAT8_E5M2: (0x8383838383838383, 0x3838383838383838),
}

cdef extern from "gputensor/blas/kernels/random/random.h" namespace "gputensor" nogil:
    cdef struct RandomParameters:
        uint64_t ptr
        uint64_t count
        uint64_t keep
        uint64_t set
        uint64_t seed


cdef Kernel fill = Kernel(programs.random())

# This room's slot of each open device (registry.pxd): the handle of its stream, 0 before the stream
# exists. Blocks of the allocator's pools carry it.
cdef Slot slot
slot.nbytes = sizeof(uint64_t)
cdef int bench_slot = register_slot(&slot)


cdef class ProductBench:
    """The operands of one product on a device, ready to be multiplied by any plan.

    Parameters
    ----------
    signature : tuple of int
        The product; see :data:`gputensor.blas.plan.FIELDS`.
    device : int
        An open CUDA device.
    rotating_nbytes : int
        Bytes of memory that the operands rotate through.
    """

    cdef Product raw
    cdef Product[MAX_SETS] sets
    cdef readonly int set_count     # sets of operands that rotate
    cdef int device
    cdef uint64_t stream, start, end
    cdef Driver* driver
    cdef list blocks            # addresses of Block records, to give back
    cdef uint64_t pad_a, pad_b, pad_d
    cdef uint64_t own_scratch
    cdef uint64_t scratch       # the workspace
    cdef size_t scratch_nbytes
    cdef int64_t size_a, size_b, size_d

    def __cinit__(self, tuple signature, int device, size_t rotating_nbytes):
        self.blocks = []
        self.device = device
        self.driver = driver_open(device)
        libraries_load(device)
        product_of_signature(signature, &self.raw)
        self.raw.device = device
        cdef uint64_t* stream = <uint64_t*>device_slot(device, bench_slot)
        if not stream[0]:
            raise_for_status(self.driver.stream_create(self.driver.self, stream, 0),
                             "stream_create")
        self.stream = stream[0]
        raise_for_status(self.driver.event_create(self.driver.self, &self.start, EVENT_TIMING),
                         "event_create")
        raise_for_status(self.driver.event_create(self.driver.self, &self.end, EVENT_TIMING),
                         "event_create")
        self.make_operands(rotating_nbytes)

    def __dealloc__(self):
        if self.driver is NULL:
            return
        if self.stream:
            self.driver.stream_synchronize(self.driver.self, self.stream)
        for address in self.blocks or ():
            allocator_free(<Block*><uint64_t>address)
        if self.start:
            self.driver.event_destroy(self.driver.self, self.start)
        if self.end:
            self.driver.event_destroy(self.driver.self, self.end)

    cdef uint64_t take(self, size_t nbytes) except 0:
        cdef status_t status = STATUS_OK
        cdef Block* block = allocator_malloc(self.device, nbytes, self.stream, &status)
        if block is NULL:
            raise_for_malloc(self.device, nbytes, self.stream, status)
        self.blocks.append(<uint64_t>block)
        return block.ptr

    cdef int make_operands(self, size_t rotating_nbytes) except -1:
        cdef Product* raw = &self.raw
        cdef int index
        cdef int64_t total
        cdef int64_t rows_a = raw.m if raw.op_a == OP_N else raw.k
        cdef int64_t columns_a = raw.k if raw.op_a == OP_N else raw.m
        cdef int64_t rows_b = raw.k if raw.op_b == OP_N else raw.n
        cdef int64_t columns_b = raw.n if raw.op_b == OP_N else raw.k
        self.size_a = span(rows_a, columns_a, raw.lda, raw.batch, raw.stride_a)
        self.size_b = span(rows_b, columns_b, raw.ldb, raw.batch, raw.stride_b)
        self.size_d = span(raw.m, raw.n, raw.ldd, raw.batch, raw.stride_d)
        total = (self.size_a * dtype_itemsize(raw.type_a)
                 + self.size_b * dtype_itemsize(raw.type_b)
                 + self.size_d * dtype_itemsize(raw.type_d))
        # Rounded up in signed numbers, because an unsigned minimum could wrap.
        self.set_count = <int>min(
            MAX_SETS, max(0, <int64_t>rotating_nbytes - 1) // max(1, total) + 1)
        for index in range(self.set_count):
            self.sets[index] = raw[0]
            self.sets[index].a = self.operand(self.size_a, raw.type_a, raw.a, 2 * index + 1)
            self.sets[index].b = self.operand(self.size_b, raw.type_b, raw.b, 2 * index + 2)
            self.sets[index].d = self.operand(self.size_d, raw.type_d, raw.d, 0)
            self.sets[index].c = self.sets[index].d
            self.sets[index].ldc, self.sets[index].stride_c = raw.ldd, raw.stride_d
            if raw.bias:
                self.sets[index].bias = self.operand(raw.m, raw.type_d, 256, 99)
        self.scratch_nbytes = workspace_nbytes(self.device)
        self.scratch = self.take(self.scratch_nbytes)
        # From here on, the raw product is that of the first set.
        self.raw = self.sets[0]
        return 0

    cdef uint64_t operand(self, int64_t size, int dtype, uint64_t alignment,
                          uint64_t seed) except 0:
        """Make random elements at an address of exactly this alignment (256: any multiple)."""
        cdef RandomParameters parameters
        cdef Launch launch
        cdef size_t nbytes = <size_t>(size * dtype_itemsize(dtype)) + 512
        cdef uint64_t ptr = self.take(nbytes)
        keep, pattern = PATTERNS.get(dtype, (0xFFFFFFFFFFFFFFFF, 0))
        memset(&parameters, 0, sizeof(parameters))
        parameters.ptr = ptr
        parameters.count = nbytes // 8
        parameters.keep, parameters.set, parameters.seed = keep, pattern, seed << 40
        launch_init(&launch, self.device, self.stream,
                    <uint32_t>min(4096, parameters.count // 256 + 1), 256, &parameters,
                    sizeof(parameters))
        launch_kernel(<void*>fill, &launch)
        return ptr + (alignment if alignment < 256 else 0)

    cdef int take_padding(self) except -1:
        """Take memory for padded copies, which the sets share because products are ordered."""
        cdef int64_t ld, stride
        if not self.pad_a:
            self.pad_a = self.take(pad_nbytes(&self.raw, PAD_A, &ld, &stride))
            self.pad_b = self.take(pad_nbytes(&self.raw, PAD_B, &ld, &stride))
            self.pad_d = self.take(pad_nbytes(&self.raw, PAD_D, &ld, &stride))
        return 0

    cdef uint64_t take_own_scratch(self, Plan* plan) except? 1:
        """Take the scratch memory of a plan, which the sets share like the padding."""
        cdef size_t nbytes = scratch_nbytes(plan, &self.raw)
        if nbytes and not self.own_scratch:
            self.own_scratch = self.take(nbytes)
        return self.own_scratch

    cdef int launch(self, Plan* plan, int index) except -1:
        """Queue one product and return a cuBLAS status."""
        cdef Product product = self.sets[index]
        cdef Relayout before, after
        cdef Work work
        cdef int status
        if plan.pad:
            self.take_padding()
            pad_bind(&product, plan.pad, self.pad_a, self.pad_b, self.pad_d, &before, &after)
            if before.count:
                relayout_launch(&before, self.device, self.stream)
        # The bench's own workspace, because inside a capture none may be allocated.
        work_init(&work, plan, &product, self.stream)
        work.workspace.ptr, work.workspace.nbytes = self.scratch, self.scratch_nbytes
        work.workspace.lent = <Block*>NULL
        work.scratch = self.take_own_scratch(plan)
        status = work_launch(&work)
        if status == BLAS_OK and plan.pad and after.count:
            relayout_launch(&after, self.device, self.stream)
        return status

    def once(self, uint64_t plan):
        """Run a plan uncaptured and return its seconds on the device; infinity when refused."""
        cdef float milliseconds = 0
        cdef int status
        self.driver.event_record(self.driver.self, self.start, self.stream)
        status = self.launch(<Plan*>plan, 0)
        self.driver.event_record(self.driver.self, self.end, self.stream)
        self.wait()
        if status != BLAS_OK:
            return float("inf")
        self.driver.event_elapsed(self.driver.self, &milliseconds, self.start, self.end)
        return milliseconds * 1e-3

    def wait(self):
        """Wait for all queued work."""
        cdef status_t status
        with nogil:
            status = self.driver.stream_synchronize(self.driver.self, self.stream)
        raise_for_status(status, "stream_synchronize", "while tuning a product")

    def graph(self, uint64_t plan, int repeats):
        """Return an executable graph of `repeats` products over the rotating operands."""
        cdef uint64_t captured = 0
        cdef uint64_t executable = 0
        cdef int index
        cdef int status = BLAS_OK
        cdef status_t ended
        raise_for_status(self.driver.capture_begin(self.driver.self, self.stream, 2),
                         "capture_begin")
        try:
            for index in range(repeats):
                if status == BLAS_OK:
                    status = self.launch(<Plan*>plan, index % self.set_count)
        finally:
            ended = self.driver.capture_end(self.driver.self, self.stream, &captured)
        raise_for_status(ended, "capture_end")
        ended = self.driver.graph_instantiate(self.driver.self, captured, &executable)
        self.driver.graph_destroy(self.driver.self, captured)
        raise_for_status(ended, "graph_instantiate")
        return executable

    def replay(self, uint64_t executable, int repeats):
        """Replay a graph and return the seconds of one of its products."""
        cdef float milliseconds = 0
        self.driver.event_record(self.driver.self, self.start, self.stream)
        raise_for_status(self.driver.graph_launch(self.driver.self, executable, self.stream),
                         "graph_launch")
        self.driver.event_record(self.driver.self, self.end, self.stream)
        self.wait()
        self.driver.event_elapsed(self.driver.self, &milliseconds, self.start, self.end)
        return milliseconds * 1e-3 / repeats

    def result(self, uint64_t plan):
        """Return the first elements of a plan's result, as float64; None when it was refused."""
        cdef int64_t count = min(self.size_d, 1 << 20)
        values = np.empty(count, DTYPES[self.raw.type_d].numpy)
        cdef uint64_t target = values.__array_interface__["data"][0]
        if self.launch(<Plan*>plan, 0) != BLAS_OK:
            return None
        raise_for_status(
            self.driver.copy_async(self.driver.self, target, self.raw.d, values.nbytes,
                                   self.stream), "copy_async")
        self.wait()
        return values.astype(np.complex128 if values.dtype.kind == "c" else np.float64)

    def plan(self, object choice):
        """Make the plan of an algorithm; 0 when there is none."""
        cdef Choice given
        cdef Wanted wanted
        cdef Outcome outcome
        cdef Plan* plan
        wanted_init(&wanted, &self.raw, LIBRARY_AUTO, 0)
        plan_known(&wanted)
        if choice is not None:
            choice_read(choice, &given)
            wanted.choice = &given
            if is_own(given.backend):
                return <uint64_t>own_plan(given.backend, &wanted)
        plan = plan_build(&wanted, &outcome)
        if plan is NULL and outcome.stage == STAGE_CONTEXT:
            raise_for_status(outcome.status, "context_enter")
        return <uint64_t>plan

    def algorithm_of(self, uint64_t plan):
        """Return the algorithm of a plan, with its library."""
        cdef Plan* found = <Plan*>plan
        cdef Choice choice
        config = None
        if found.backend == BACKEND_LT and lt_config_of(&found.algo, &choice) == BLAS_OK:
            config = tuple([choice.config[i] for i in range(CONFIG_COUNT)])
        return (found.pad, found.backend, config)

    def release(self, uint64_t plan, uint64_t executable):
        """Free a plan and a graph; 0 for none."""
        if executable:
            self.driver.graph_executable_destroy(self.driver.self, executable)
        if plan:
            plan_destroy(<Plan*>plan)

    def forms(self):
        """Return the forms of padding: none, the odd inputs, all odd matrices."""
        cdef int odd = odd_matrices(&self.raw)
        if self.raw.outer_ndim:
            return [PAD_NONE]
        return sorted({PAD_NONE, odd & (PAD_A | PAD_B), odd})

    def own_algorithms(self):
        """Return the algorithms of our own kernels."""
        if self.raw.outer_ndim:
            return []
        return [(PAD_NONE, row["number"], None) for row in backend_table() if row["is_own"]]

    def proposals(self, int padded):
        """Return the libraries' algorithms for one form of padding, the likely ones first."""
        return [(padded, BACKEND_CUBLAS, None)] + self.search(padded, None, 0)

    def everything(self, int padded, double deadline):
        """Return all of cuBLASLt's algorithms that can be found until the deadline."""
        return self.search(padded, (), deadline)

    def neighbours(self, tuple algorithm, double deadline):
        """Return the algorithms that differ from one of cuBLASLt's in one attribute."""
        return self.search(algorithm[0], algorithm[2], deadline) if algorithm[2] is not None else []

    cdef list search(self, int padded, tuple config, double deadline):
        """Return proposals if `config` is None, all if it is empty, otherwise its neighbours."""
        cdef Product final = self.raw
        cdef Relayout before, after
        cdef size_t nbytes = workspace_nbytes(self.device)
        cdef uint64_t address = self.plan((padded, BACKEND_LT, None))
        cdef Plan* plan = <Plan*>address
        cdef list found = []
        if plan is NULL:
            return found
        if plan.backend == BACKEND_LT:
            pad_bind(&final, padded, 0, 0, 0, &before, &after)
            if config is None:
                found = lt_proposals(plan, &final, nbytes)
            elif not config:
                found = lt_enumerate(plan, &final, nbytes, deadline)
            else:
                found = lt_neighbours(plan, &final, nbytes, config, deadline)
        plan_destroy(plan)
        return [(padded, BACKEND_LT, one) for one in found]

    def tolerance(self, expected):
        """Return how far two results may differ because of the sum's order and rounding."""
        unit = {DT_FLOAT16: 2.0**-10, DT_BFLOAT16: 2.0**-7, DT_FLOAT64: 2.0**-50,
                DT_COMPLEX128: 2.0**-50}.get(self.raw.type_d, 2.0**-9)
        if self.raw.type_d == DT_FLOAT32 and self.raw.compute == COMPUTE_32F and (
                self.raw.type_a == DT_FLOAT32):
            unit = 2.0**-21
        # Random signs: a sum of k terms below 1 has a size near sqrt(k), its error a few units of
        # that.
        return 4 * unit * (np.abs(expected) + 4 * float(self.raw.k) ** 0.5)


def algorithms_of(tuple signature, int device):
    """Return cuBLASLt's algorithms for an unpadded product.

    Parameters
    ----------
    signature : tuple of int
        The product; see :data:`gputensor.blas.plan.FIELDS`.
    device : int
        An open CUDA device.

    Returns
    -------
    version : int
        Of cuBLASLt.
    algorithms : list of tuple of int
        Its own choice, then other proposals; empty if it does not compute the product.
    """
    cdef Product product
    cdef Choice choice
    cdef Wanted wanted
    cdef Outcome outcome
    cdef Plan* plan
    cdef list found = []
    libraries_load(device)
    product_of_signature(signature, &product)
    product.device = device
    choice.pad, choice.backend, choice.has_config = PAD_NONE, BACKEND_LT, 0
    wanted_init(&wanted, &product, LIBRARY_AUTO, PLAN_PLAIN)
    wanted.choice = &choice
    plan = plan_build(&wanted, &outcome)
    if plan is NULL:
        return lt_version(), found
    if plan.backend == BACKEND_LT and lt_config_of(&plan.algo, &choice) == BLAS_OK:
        found.append(tuple([choice.config[i] for i in range(CONFIG_COUNT)]))
        found += lt_proposals(plan, &product, workspace_nbytes(device))
    plan_destroy(plan)
    return lt_version(), list(dict.fromkeys(found))


cdef int64_t span(int64_t rows, int64_t columns, int64_t ld, int64_t batch,
                  int64_t stride) noexcept nogil:
    return (batch - 1) * stride + (columns - 1) * ld + rows
