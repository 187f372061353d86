"""A C session: its tensors, and the launches of each function at the shapes that have run.

The first run of a function at its shapes captures it into a graph, as a Python session does, and
later runs launch that graph. If the function or the driver does not permit a graph, and while the
caller captures the stream, a run launches the steps one by one.
"""

#: Held while a graph is captured: the driver refuses to wait for a device that captures.
CAPTURES = threading.RLock()

cdef extern from "gputensor/programs/c_entry/exported.h" nogil:
    ctypedef struct TensorDevice "gputensor_device":
        int32_t type
        int32_t id
    ctypedef struct TensorType "gputensor_dtype":
        uint8_t code
        uint8_t bits
        uint16_t lanes
    ctypedef struct CTensor "gputensor_tensor":
        void* data
        TensorDevice device
        int32_t ndim
        TensorType dtype
        int64_t* shape
        int64_t* strides
        uint64_t byte_offset
    void gt_program_set_error(const char* text)

cdef enum:
    DL_CUDA = 2
    INPUT_ALIGNMENT = 16
    OUTPUT_ALIGNMENT = 256

# Dtype of the library -> code and bits of DLPack (dlpack.h).
DL_TYPES = {
    "bool": (6, 8), "float8_e4m3": (10, 8), "float8_e5m2": (12, 8), "bfloat16": (4, 16),
    **{f"int{bits}": (0, bits) for bits in (8, 16, 32, 64)},
    **{f"uint{bits}": (1, bits) for bits in (8, 16, 32, 64)},
    **{f"float{bits}": (2, bits) for bits in (16, 32, 64)},
    "complex64": (5, 64), "complex128": (5, 128),
}
cdef dict NAMES = {pair: name for name, pair in DL_TYPES.items()}

cdef struct Wanted:
    int code
    int bits
    int ndim
    int64_t[16] shape


@cython.final
@cython.internal
cdef class Bound:
    """One function at the shapes of its inputs."""

    cdef bytes name
    cdef char* text                     # that of `name`
    cdef StepLaunches launches
    cdef vector[Wanted] inputs
    cdef vector[Wanted] outputs
    cdef vector[uint64_t] fixed         # addresses of the pieces after arena, inputs and outputs
    cdef uint64_t arena_nbytes
    cdef object binding
    cdef bint has_graph                 # or will have it after the next run
    cdef object graph                   # a Bound of Python's sessions; None before the first run
    cdef uint64_t graph_arena           # address in the graph; 0 where no call has temporaries


cdef Wanted wanted_of(str dtype, tuple shape) except *:
    cdef Wanted made
    cdef int axis
    made.code, made.bits = DL_TYPES[dtype]
    made.ndim = len(shape)
    for axis in range(made.ndim):
        made.shape[axis] = shape[axis]
    return made


cdef bint fits(const Wanted* wanted, const CTensor* given, int device) noexcept nogil:
    """Whether a tensor is on the device, has this dtype and these extents, and is row-major."""
    cdef int axis
    cdef int64_t step = 1
    if (given.device.type != DL_CUDA or given.device.id != device or given.ndim != wanted.ndim
            or given.dtype.code != wanted.code or given.dtype.bits != wanted.bits
            or given.dtype.lanes != 1 or given.ndim and given.shape is NULL):
        return False
    for axis in range(wanted.ndim - 1, -1, -1):
        if given.shape[axis] != wanted.shape[axis]:
            return False
        if given.strides is not NULL and wanted.shape[axis] > 1 and given.strides[axis] != step:
            return False
        step *= wanted.shape[axis]
    return True


cdef bint all_fit(const vector[Wanted]& wanted, int32_t count, const CTensor* given,
                  int device) noexcept nogil:
    cdef int at
    if <int>wanted.size() != count:
        return False
    for at in range(count):
        if not fits(&wanted[at], &given[at], device):
            return False
    return True


cdef inline uint64_t address_of(const CTensor* given) noexcept nogil:
    return <uint64_t>given.data + given.byte_offset


cdef bint have_addresses(const vector[Wanted]& wanted, const CTensor* given) noexcept nogil:
    """Whether each tensor with elements has an address."""
    cdef size_t at
    cdef int axis
    cdef bint has_elements
    for at in range(wanted.size()):
        has_elements = True
        for axis in range(wanted[at].ndim):
            has_elements = has_elements and wanted[at].shape[axis] != 0
        if has_elements and given[at].data is NULL:
            return False
    return True


cdef bint are_aligned(int32_t count, const CTensor* given, int alignment) noexcept nogil:
    cdef int at
    for at in range(count):
        if address_of(&given[at]) % <uint64_t>alignment:
            return False
    return True


@cython.final
@cython.internal
cdef class CSession:
    """The state, the arena and the bound functions of one caller."""

    cdef object program
    cdef int device
    cdef dict states
    cdef Tensor arena
    cdef uint64_t arena_ptr
    cdef uint64_t arena_nbytes
    cdef list kept                      # every Bound
    cdef vector[void*] bound            # the same, read without the GIL
    cdef uint64_t last_stream

    def __cinit__(self, program):
        self.program = program
        self.device = program.device_number
        self.states = {name: program.first_state(name, None) for name in program.data.states}
        self.kept = []
        # The caller's streams are not ordered after the copies of weights and states.
        synchronize(self.device)

    cdef void* find(self, const char* name, int32_t count, const CTensor* inputs) noexcept nogil:
        """Return the Bound for these inputs, or NULL."""
        cdef size_t i
        cdef void* one
        for i in range(self.bound.size()):
            one = self.bound[i]
            if strcmp((<Bound>one).text, name) == 0 and all_fit(
                    (<Bound>one).inputs, count, inputs, self.device):
                return one
        return NULL

    cdef int bind(self, const char* name, int32_t count, const CTensor* inputs) except -1:
        """Bind a function for these inputs."""
        cdef Bound made = Bound.__new__(Bound)
        cdef Tensor tensor
        cdef int at
        cdef str text = name.decode(errors="backslashreplace")
        if text not in self.program.functions:
            raise argument_error(ValueError, "function", text, ", ".join(self.program.functions))
        wanted = self.program.functions[text].inputs
        if len(wanted) != count:
            raise argument_error(ValueError, f"inputs of {text}", count, f"{len(wanted)}")
        shapes = []
        for at in range(count):
            shapes.append(check_input(wanted[at], &inputs[at], self.device))
        binding = self.program.binding(text, tuple(shapes))
        made.launches = launches_of(binding)
        made.binding, made.has_graph = binding, not binding.is_by_calls
        made.name = text.encode()
        made.text = made.name
        made.arena_nbytes = binding.arena_nbytes
        for dtype, shape in binding.inputs:
            made.inputs.push_back(wanted_of(dtype, shape))
        for dtype, shape in binding.outputs:
            made.outputs.push_back(wanted_of(dtype, shape))
        for kind, name_of in fixed_of(binding):
            tensor = self.states[name_of] if kind == "state" else self.program.weights[name_of]
            if tensor.ptr % OUTPUT_ALIGNMENT:
                raise argument_error(ValueError, name_of, Described("unaligned memory"),
                                     f"a multiple of {OUTPUT_ALIGNMENT} bytes")
            made.fixed.push_back(tensor.ptr)
        self.take_arena(made.arena_nbytes)
        self.kept.append(made)
        self.bound.push_back(<void*>made)
        return 0

    cdef int take_arena(self, uint64_t nbytes) except -1:
        """Grow the arena to at least this size, after the work of the last run is done."""
        cdef int64_t size = nbytes
        if self.arena is not None and self.arena_nbytes >= nbytes:
            return 0
        synchronize(self.device)
        self.arena = None
        self.arena = empty_tensor(DT_UINT8, 1, &size, self.device)
        self.arena_ptr, self.arena_nbytes = self.arena.ptr, nbytes
        return 0

    cdef status_t run(self, void* bound, const CTensor* inputs, CTensor* outputs,
                      uint64_t stream) noexcept nogil:
        cdef vector[uint64_t] addresses
        cdef status_t status
        cdef size_t i
        addresses.push_back(self.arena_ptr)
        for i in range((<Bound>bound).inputs.size()):
            addresses.push_back(address_of(&inputs[i]))
        for i in range((<Bound>bound).outputs.size()):
            addresses.push_back(address_of(&outputs[i]))
        for i in range((<Bound>bound).fixed.size()):
            addresses.push_back((<Bound>bound).fixed[i])
        if (<Bound>bound).has_graph and not is_capturing(self.device, stream):
            if (<Bound>bound).graph is None or (<Bound>bound).graph_arena != self.arena_ptr:
                self.capture(bound, addresses.data())
            if (<Bound>bound).has_graph:
                status = queue_captured(<void*>(<Bound>bound).graph, stream, addresses.data() + 1)
                if (status != STATUS_NOT_SUPPORTED and status != STATUS_INVALID_VALUE
                        and status != STATUS_GRAPH_UPDATE_FAILED):
                    return status
                (<Bound>bound).has_graph = False    # the driver refuses the address of a node
        return (<Bound>bound).launches.run(self.device, stream, addresses.data())

    cdef int capture(self, void* bound, const uint64_t* addresses) noexcept with gil:
        """Make the graph of a function for the current arena, if that is possible."""
        cdef Bound one = <Bound>bound
        try:
            with CAPTURES:
                one.graph = captured_bound(one.binding, self.program.weights, self.states,
                                           self.program, self.arena_ptr, addresses + 1)
        except Exception:       # the steps one by one report what else is wrong
            one.graph = None
        one.has_graph = one.graph is not None
        one.graph_arena = self.arena_ptr
        return 0


cdef bint is_capturing(int device, uint64_t stream) noexcept nogil:
    cdef Driver* driver = driver_get(device)
    cdef int found = 0
    cdef uint64_t capture_id = 0
    return driver.capture_info(driver.self, stream, &found, &capture_id) != STATUS_OK or found


cdef tuple check_input(wanted, const CTensor* given, int device):
    """Return the shape of an input after a check of its dtype and device."""
    cdef int axis
    if given.device.type != DL_CUDA or given.device.id != device:
        raise argument_error(ValueError, wanted.path, Described("a tensor of another device"),
                             f"a tensor on GPU {device}")
    name = NAMES.get((given.dtype.code, given.dtype.bits), "another dtype")
    if given.dtype.lanes != 1:
        name = f"{name} of {given.dtype.lanes} lanes"
    if name != wanted.operand.dtype or given.dtype.lanes != 1:
        raise argument_error(ValueError, f"{wanted.path}.dtype", Described(name),
                             wanted.operand.dtype)
    if not 0 <= given.ndim <= 16:
        raise argument_error(ValueError, f"{wanted.path}.ndim", given.ndim, "at most 16")
    if given.ndim and given.shape is NULL:
        raise argument_error(ValueError, f"{wanted.path}.shape", Described("NULL"), "an address")
    return tuple([given.shape[axis] for axis in range(given.ndim)])


cdef int synchronize(int device) except -1:
    """Wait for all work of a device, while no thread captures it for a C session."""
    cdef Driver* driver = driver_get(device)
    cdef status_t status
    with CAPTURES, nogil:
        status = driver.synchronize(driver.self)
    raise_for_status(status, "synchronize", f"device {device}")
    return 0
