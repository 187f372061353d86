"""Launches a function call by call on a GPU (running/device.py): sections, and flags read back."""


@cython.final
@cython.internal
cdef class Sections:
    """The sections of one call. The first one orders the call; inputs are held until it ends."""

    cdef Bound bound
    cdef int device
    cdef uint64_t stream
    cdef Tensor arena
    cdef tuple inputs
    cdef list outputs
    cdef bint is_ordered
    cdef bint is_capturing

    def queue(self, list calls):
        """Launch rows with their arguments."""
        work_begin()
        try:
            if not self.is_ordered:
                self.bound.order(self.stream, self.arena, self.inputs, self.outputs)
                self.is_ordered = True
                for one in self.inputs:
                    use_log_hold(&(<Tensor>one).storage.uses)
            door_calls(self.device, self.stream, calls)
        finally:
            work_end(self.device)

    def alone(self, row, tuple arguments):
        """Execute a call that may wait, after the work so far and outside a section."""
        if self.is_capturing:
            raise RuntimeError(f"program: got the call {row.name} in a graph capture; expected a "
                               "function without calls that other libraries compute and wait for")
        self.queue([])
        row.door(self.device, self.stream, arguments)

    def wait(self):
        """Wait for the work so far; raise an exception of that work."""
        self.read_bytes(NULL, 0, 0)

    def elements(self, CallOperand operand not None):
        """Wait for the work so far, and return the elements of an operand as a NumPy array."""
        cdef int axis, itemsize = DTYPES[operand.c.dtype].itemsize
        cdef int64_t reach, low = 0, high = itemsize
        cdef list strides = []
        cdef const unsigned char[::1] buffer
        for axis in range(operand.c.ndim):
            reach = (operand.c.shape[axis] - 1) * operand.c.strides[axis] * itemsize
            low, high = low + min(reach, 0), high + max(reach, 0)
            strides.append(operand.c.strides[axis] * itemsize)
        held = bytearray(high - low)
        buffer = held
        self.read_bytes(<void*>&buffer[0], operand.c.ptr + low, high - low)
        return np.ndarray(operand.shape, DTYPES[operand.c.dtype].numpy, held, -low, strides)

    def read_flag(self, uint64_t address):
        """Wait for the work so far, and return the bool at an address."""
        cdef uint8_t flag = 0
        if self.is_capturing:
            raise RuntimeError("program: got a call with a condition in a graph capture; expected "
                               "a function without cond and while_loop, or one that was not "
                               "compiled ahead of time")
        self.read_bytes(&flag, address, 1)
        return flag != 0

    cdef int read_bytes(self, void* target, uint64_t address, size_t nbytes) except -1:
        """Copy bytes to host memory after the work so far, and wait for both."""
        cdef Driver* driver = driver_get(self.device)
        cdef status_t status = STATUS_OK
        with nogil:
            if nbytes:
                status = driver.copy_async(driver.self, <uint64_t>target, address, nbytes,
                                           self.stream)
            if status == STATUS_OK:
                status = driver.stream_synchronize(driver.self, self.stream)
        if status != STATUS_OK:
            raise_for_status(status, "stream_synchronize", f"on {device_text(self.device)}")
        return raise_pending(self.device)

    cdef int release(self) except -1:
        if self.is_ordered:
            for one in self.inputs:
                use_log_release(&(<Tensor>one).storage.uses)
        return 0


cdef int launch_calls(Bound bound, Sections sections) except -1:
    cdef tuple addresses = bound.addresses_of(sections.arena, sections.inputs, sections.outputs)
    cdef object conditions = None
    if sections.is_capturing and bound.binding.has_bodies:
        conditions = Conditions(stream_argument(None, sections.device), bound.bodies)
    try:
        if bound.is_checked:
            launches = bound.program.checked(sections)
        else:
            launches = bound.run(sections.queue, sections.read_flag, conditions, sections.alone)
        launches.run(bound.binding, addresses, bound.weights)
        launches.flush()
        if not sections.is_ordered:
            sections.queue([])
    finally:
        sections.release()
    return 0
