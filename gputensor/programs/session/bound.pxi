"""One function of a session at one set of sizes: the addresses of its pieces, and its work."""


class HostWork:
    """A function as a row of the registry for `host_call`; its arguments are its steps."""

    name = "program"

    @staticmethod
    def run(*steps):
        for function, arguments in steps:
            function(*arguments)


cdef object HOST_WORK = HostWork()


cdef struct Extents:
    int dtype
    int ndim
    int64_t[16] shape


cdef Extents extents_of(str dtype, tuple shape):
    cdef Extents made
    cdef int axis
    made.dtype, made.ndim = DTYPE_CODES[dtype], len(shape)
    for axis in range(made.ndim):
        made.shape[axis] = shape[axis]
    return made


@cython.final
cdef class Bound:
    cdef object binding
    cdef object program
    cdef object prepare             # running.host.prepare
    cdef object run                 # running.device.Launches
    cdef object branches            # running.branches.launch_branches
    cdef int branch_count           # number of streams that capture the calls
    cdef bint is_by_calls
    cdef bint is_checked            # the results of each call are checked
    cdef list bodies                # streams for bodies of conditions in a user's capture
    cdef readonly size_t arena_nbytes
    cdef int input_count
    cdef int output_count
    cdef list fixed                 # addresses of the pieces after arena, inputs and outputs
    cdef list reads                 # tensors: weights, and states that are only read
    cdef list writes                # tensors: states that are written
    cdef dict weights               # name -> address
    cdef tuple addresses            # those that `steps` were prepared for
    cdef tuple steps
    cdef vector[Extents] input_extents
    cdef vector[Extents] output_extents
    cdef Graph graph

    def __init__(self, binding, dict weights, dict states, program, bint is_checked):
        self.binding, self.program, self.is_checked = binding, program, is_checked
        self.prepare, self.run = program.prepare, program.launches
        self.branches = program.branches
        self.branch_count = program.branch_count(binding)
        self.is_by_calls = binding.is_by_calls
        self.arena_nbytes = binding.arena_nbytes
        self.input_count = len(binding.inputs)
        self.output_count = len(binding.outputs)
        self.fixed, self.reads, self.writes, self.bodies = [], [], [], []
        self.weights = {}
        for piece in binding.pieces[1 + self.input_count + self.output_count:]:
            tensor = weights[piece.name] if piece.kind == "weight" else states[piece.name]
            self.fixed.append((<Tensor>tensor).ptr)
            kept = self.writes if piece.name in binding.written else self.reads
            if piece.kind == "weight":
                kept = self.reads
            kept.append(tensor)
        for name in binding.region_weights:
            self.weights[name] = (<Tensor>weights[name]).ptr
            self.reads.append(weights[name])
        for dtype, shape in binding.inputs:
            self.input_extents.push_back(extents_of(dtype, shape))
        for dtype, shape in binding.outputs:
            self.output_extents.push_back(extents_of(dtype, shape))

    cdef bint fits(self, tuple inputs, int device) noexcept:
        """Whether these are tensors of the bound shapes that need no copy."""
        cdef Extents* wanted
        cdef Tensor one
        cdef int i
        if len(inputs) != self.input_count:
            return False
        for i in range(self.input_count):
            if type(inputs[i]) is not Tensor:
                return False
            one = <Tensor>inputs[i]
            wanted = &self.input_extents[i]
            if (one.dtype_code != wanted.dtype or one.ndim_ != wanted.ndim
                    or memcmp(one.shape_, wanted.shape, wanted.ndim * sizeof(int64_t))
                    or one.storage.device != device or not one.is_c_contiguous
                    or one.ptr & (INPUT_ALIGNMENT - 1)):
                return False
        return True

    cdef list results(self, int device):
        """Return new tensors for the outputs."""
        cdef Extents* wanted
        cdef int i
        cdef list made = []
        for i in range(self.output_count):
            wanted = &self.output_extents[i]
            made.append(empty_tensor(wanted.dtype, wanted.ndim, wanted.shape, device))
        return made

    cdef int queue(self, int device, uint64_t stream, Tensor arena, tuple inputs,
                   list outputs) except -1:
        """Order and queue the call; preparation precedes its section as far as possible."""
        cdef Driver* driver = driver_get(device)
        cdef Sections sections
        cdef bint is_capturing = captures_active() and capture_state(device, stream) != 0
        cdef bint is_whole = not (self.is_checked or device >= 0 and is_capturing)
        if self.is_checked and is_capturing:
            raise RuntimeError("session: got a checked call in a graph capture; expected a call of "
                               "a session without check")
        if device >= 0 and is_whole and not self.is_by_calls:
            self.make_graph(device, arena, inputs, outputs)
        if not is_whole or self.is_by_calls:
            if is_capturing:
                # The session's arena may be freed before the graph; this one is from its pool.
                arena = new_arena(device, self.arena_nbytes)
            sections = Sections.__new__(Sections)
            sections.bound, sections.device, sections.stream = self, device, stream
            sections.arena, sections.inputs, sections.outputs = arena, inputs, outputs
            sections.is_capturing = is_capturing
            return launch_calls(self, sections)
        if device < 0:
            self.place(arena, inputs, outputs)
        else:
            self.locate(inputs, outputs, self.graph.moving)
            self.graph.move(self, driver)
        work_begin()
        try:
            self.order(stream, arena, inputs, outputs)
            if device < 0:
                host_call(device, stream, HOST_WORK, self.steps)
            else:
                self.graph.launch(driver, stream)
        finally:
            work_end(device)
        return 0

    cdef int make_graph(self, int device, Tensor arena, tuple inputs, list outputs) except -1:
        """Make a graph for this arena, or switch to call by call if that is not possible."""
        cdef vector[uint64_t] moving
        if self.graph is not None and self.graph.arena == arena.ptr:
            return 0
        moving.resize(self.input_count + self.output_count)
        self.locate(inputs, outputs, moving)
        try:
            self.graph = graph_of(self, device, arena.ptr, moving)
        except DriverError as error:
            if not (self.binding.has_bodies and lacks_conditions(error)):
                raise
            self.is_by_calls, self.binding.has_bodies = True, False
            self.binding.graph = (f"none: {error}; the host reads the flags of cond and "
                                  "while_loop, call by call")
        return 0

    cdef int locate(self, tuple inputs, list outputs, vector[uint64_t]& moving) except -1:
        cdef int i
        for i in range(self.input_count):
            moving[i] = (<Tensor>inputs[i]).ptr
        for i in range(self.output_count):
            moving[self.input_count + i] = (<Tensor>outputs[i]).ptr
        return 0

    cdef tuple addresses_of(self, Tensor arena, tuple inputs, list outputs):
        return tuple([arena.ptr, *[(<Tensor>one).ptr for one in inputs],
                      *[(<Tensor>one).ptr for one in outputs], *self.fixed])

    cdef int place(self, Tensor arena, tuple inputs, list outputs) except -1:
        """Prepare the steps for the current addresses."""
        cdef tuple addresses = self.addresses_of(arena, inputs, outputs)
        before = None if self.steps is None else (self.addresses, self.steps)
        if before is None or addresses != self.addresses:
            self.steps = self.prepare(self.binding, addresses, self.weights, before)
            self.addresses = addresses
        return 0

    cdef int order(self, uint64_t stream, Tensor arena, tuple inputs, list outputs) except -1:
        for one in inputs:
            (<Tensor>one).prepare_read(stream)
        for one in self.reads:
            (<Tensor>one).prepare_read(stream)
        for one in self.writes:
            (<Tensor>one).prepare_write(stream)
        for one in outputs:
            (<Tensor>one).prepare_write(stream)
        arena.prepare_write(stream)
        return 0
