"""Session: the state and arena of one caller of a program.

A session serves one thread at a time; sessions share only weights. A call allocates its memory
before it queues any work, so a call that fails changes nothing.
"""

cdef enum:
    MOST_BOUND = 32     # sizes of one function for which a session keeps bindings


cdef enum:
    ONE = 0                 # form of the result: the only output
    TUPLE = 1
    TREE = 2


@cython.final
@cython.internal
cdef class Run:
    """One function of a session, with its Bounds by the shapes of its inputs."""

    cdef object program
    cdef readonly str name
    cdef object inputs              # of the function: Arguments
    cdef int count
    cdef list codes                 # dtype codes of the inputs
    cdef bint is_flat
    cdef int form                   # of the result
    cdef dict bound                 # shapes -> Bound
    cdef Bound latest

    def __cinit__(self, program, str name):
        function = program.functions[name]
        self.program = program
        self.name = name
        self.inputs = function.inputs
        self.count = len(function.inputs)
        self.codes = [DTYPE_CODES[one.operand.dtype] for one in function.inputs]
        self.is_flat = program.is_flat(name)
        self.form = program.result_form(name)
        self.bound = {}

    cdef tuple leaves(self, Session session, tuple args, dict kwargs):
        """Return the inputs as tensors on the device, in order, contiguous and aligned."""
        cdef list leaves
        cdef Tensor leaf
        cdef int i
        if self.is_flat and not kwargs and len(args) == self.count:
            leaves = list(args)
        else:
            leaves = self.program.leaves(self.name, args, kwargs)
        for i in range(self.count):
            if type(leaves[i]) is not Tensor:
                leaves[i] = self.program.imported(self.inputs[i].path, leaves[i])
            leaf = <Tensor>leaves[i]
            if leaf.storage.device != session.device:
                if is_tracing():
                    current_tracer().refuse("a call of a program", "call the function itself")
                raise argument_error(ValueError, self.inputs[i].path,
                                     Described(f"a tensor on {leaf.device}"),
                                     f"a tensor on {device_text(session.device)}")
            if leaf.dtype_code != <int>self.codes[i]:
                raise argument_error(ValueError, f"{self.inputs[i].path}.dtype",
                                     Described(DTYPES[leaf.dtype_code].name),
                                     self.inputs[i].operand.dtype)
        self.find(session, leaves)
        for i in range(self.count):
            leaf = leaves[i]
            if leaf.size_ and not (leaf.is_c_contiguous and leaf.ptr % 16 == 0):
                leaves[i] = copied(leaf, leaf.dtype_code)
                self.program.count_copy(self.name)
        return tuple(leaves)

    cdef int find(self, Session session, list leaves) except -1:
        """Set `latest` to the Bound for the shapes of the inputs."""
        cdef tuple shapes = tuple([(<Tensor>leaf).shape for leaf in leaves])
        cdef Bound bound = self.bound.pop(shapes, None)
        if bound is None:
            binding = self.program.binding(self.name, shapes)
            bound = Bound(binding, session.weights, session.states, self.program,
                          session.is_checked)
            while len(self.bound) >= MOST_BOUND:
                del self.bound[next(iter(self.bound))]
        self.bound[shapes] = bound
        self.latest = bound
        return 0

    cdef object call(self, Session session, tuple args, dict kwargs):
        cdef int device = session.device
        cdef tuple inputs = args
        cdef list outputs
        cdef Bound bound
        if not (self.latest is not None and self.is_flat and not kwargs
                and self.latest.fits(args, device)):
            inputs = self.leaves(session, args, kwargs)
        bound = self.latest
        session.take_arena(bound.arena_nbytes)
        outputs = bound.results(device)
        session.last_stream = current_handle(device)
        bound.queue(device, session.last_stream, session.arena, inputs, outputs)
        if self.form == ONE:
            return outputs[0]
        return tuple(outputs) if self.form == TUPLE else self.program.result(self.name, outputs)


@cython.final
cdef class Session:
    """State, arena and prepared calls of one caller; :meth:`Program.session` makes it.

    The functions of the program are its methods. It is a context manager that closes it on exit.

    Attributes
    ----------
    state : tree of tensors
        The session's own state, which may be read and written.
    """

    cdef readonly Caller program
    cdef int device
    cdef dict weights
    cdef dict states
    cdef dict runs
    cdef Tensor arena
    cdef uint64_t last_stream
    cdef bint is_checked
    cdef bint is_busy
    cdef bint is_closed
    cdef object __weakref__

    def __cinit__(self, Caller program not None, dict states not None, bint check=False):
        self.program, self.is_checked = program, check
        self.device = program.device_number
        self.weights = program.weights
        self.states = states
        self.runs = {}
        self.arena = new_arena(self.device, 0)

    cdef int take_arena(self, size_t nbytes) except -1:
        """Grow the arena to at least this size; the former one is freed first."""
        if self.arena is None or <size_t>self.arena.size_ < nbytes:
            self.arena = None
            self.arena = new_arena(self.device, nbytes)
        return 0

    def call(self, str name, tuple args, dict kwargs):
        """Call a function by its name."""
        cdef Run run
        if self.is_closed:
            raise RuntimeError("session: got a call after close(); expected an open session")
        if self.is_busy:
            raise RuntimeError("session: got a second call during a call; expected one thread at a "
                               "time, or a session for each")
        self.is_busy = True  # first: later steps may run Python code, and so other threads
        try:
            run = self.runs.get(name)
            if run is None:
                run = self.runs[name] = Run(self.program, name)
            return run.call(self, args, kwargs)
        finally:
            self.is_busy = False

    def __call__(self, *args, **kwargs):
        return self.call(self.program.only(), args, kwargs)

    def __getattr__(self, str name):
        if name not in self.program.functions:
            raise AttributeError(f"{name}: got no function of the program; expected one of "
                                 f"{', '.join(self.program.functions)}")
        return Entry(self, name)

    def __dir__(self):
        return [*object.__dir__(self), *self.program.functions]

    @property
    def state(self):
        self.check_open()
        return self.program.state_tree(self.states)

    def reset(self):
        """Set the state to its first values: zeros, or those given when the program was made."""
        self.check_open()
        for name, tensor in self.states.items():
            self.program.first_state(name, tensor)

    def fork(self):
        """Return another session with a copy of the current state."""
        self.check_open()
        states = {name: copied(tensor, (<Tensor>tensor).dtype_code)
                  for name, tensor in self.states.items()}
        return Session(self.program, states, self.is_checked)

    cdef int check_open(self) except -1:
        if self.is_closed:
            raise RuntimeError("session: got a use after close(); expected an open session")
        return 0

    def close(self):
        """Free the state, the arena and all prepared calls. Queued work still finishes."""
        if self.is_busy:
            raise RuntimeError("session: got close() during a call; expected the call to end first")
        self.is_closed = True
        self.runs, self.states, self.weights = {}, {}, {}
        self.arena = None

    def __enter__(self):
        self.check_open()
        return self

    def __exit__(self, kind, value, trace):
        self.close()

    def __repr__(self):
        what = "closed" if self.is_closed else f"on {device_text(self.device)}"
        return f"<Session of {', '.join(self.program.functions)} {what}>"


@cython.final
@cython.internal
cdef class Entry:
    """A callable function of a session."""

    cdef Session session
    cdef str name

    def __cinit__(self, Session session, str name):
        self.session = session
        self.name = name

    def __call__(self, *args, **kwargs):
        return self.session.call(self.name, args, kwargs)

    def __repr__(self):
        return f"<function {self.name} of {self.session!r}>"
