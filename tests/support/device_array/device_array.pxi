# Plain arrays on a device and the kernels as Python functions, for tests and benchmarks of this
# layer. A library user has gputensor.Tensor, which adds promotion, stream order and indexing; an
# array here is memory, dtype, shape and strides, and every call names its stream.

cdef class Memory:
    """One block of the allocator, freed with the last array over it."""

    cdef Block* block
    cdef int generation         # of the device

    def __dealloc__(self):
        if self.block != NULL and self.generation == device_generation(self.block.device):
            allocator_free(self.block)


cdef class DeviceArray:
    """A strided array in device memory; views share the memory.

    Attributes
    ----------
    device : int
    shape, strides : tuple of int
        Strides are in elements.
    dtype : int
        The dtype's code.
    ptr : int
        Address of element [0, ..., 0].
    """

    cdef readonly int device
    cdef readonly int dtype
    cdef readonly uint64_t ptr
    cdef readonly tuple shape
    cdef readonly tuple strides
    cdef Memory memory

    @staticmethod
    def empty(nbytes, device, stream=0, poison=0xCB):
        """Return `nbytes` of uint8 on a device, every byte `poison`."""
        cdef DeviceArray array = DeviceArray.__new__(DeviceArray)
        cdef status_t status = 0
        cdef Driver* driver = driver_open(device)
        cdef Block* block = allocator_malloc(device, max(nbytes, 1), stream, &status)
        if block == NULL:
            raise_for_malloc(device, nbytes, stream, status)
        array.memory = Memory.__new__(Memory)
        array.memory.block = block
        array.memory.generation = device_generation(device)
        array.device = device
        array.dtype = CODE_OF[np.dtype(np.uint8)]
        array.ptr = block.ptr
        array.shape = (nbytes,)
        array.strides = (1,)
        if nbytes:
            status = driver.fill_async(driver.self, block.ptr, poison, 1, nbytes, stream)
            raise_for_status(status, "fill_async")
        return array

    @staticmethod
    def from_numpy(values, device, stream=0, offset=0):
        """Return a C-ordered copy of a NumPy array, `offset` bytes into fresh memory."""
        values = np.ascontiguousarray(values).reshape(np.shape(values))
        cdef DeviceArray memory = DeviceArray.empty(values.nbytes + offset, device, stream)
        cdef Driver* driver = driver_open(device)
        cdef status_t status
        if values.nbytes:
            status = driver.copy_async(driver.self, memory.ptr + <uint64_t>offset,
                                       values.ctypes.data, values.nbytes, stream)
            raise_for_status(status, "copy_async")
            synchronize(device, stream)
        strides = tuple([step // values.itemsize for step in values.strides])
        return memory.view(CODE_OF[values.dtype], values.shape, strides, offset)

    def view(self, dtype, shape, strides, offset=0):
        """Return an array over the same memory, from `offset` bytes after this one's first."""
        cdef DeviceArray array = DeviceArray.__new__(DeviceArray)
        array.memory = self.memory
        array.device = self.device
        array.dtype = dtype
        array.ptr = self.ptr + <uint64_t><int64_t>offset
        array.shape = tuple(shape)
        array.strides = tuple(strides)
        return array

    def numpy(self, stream=0):
        """Return the elements as a NumPy array, after all work queued on `stream`."""
        cdef Driver* driver = driver_open(self.device)
        cdef status_t status
        dtype = DTYPES[self.dtype].numpy
        if 0 in self.shape:
            return np.empty(self.shape, dtype)
        steps = [(length - 1) * stride
                 for length, stride in zip(self.shape, self.strides, strict=True)]
        low = sum(min(step, 0) for step in steps)
        high = sum(max(step, 0) for step in steps)
        span = np.empty((high - low + 1) * dtype.itemsize, np.uint8)
        cdef uint64_t target = span.ctypes.data
        cdef uint64_t start = self.ptr + <uint64_t><int64_t>(low * dtype.itemsize)
        cdef size_t nbytes = span.nbytes
        status = driver.copy_async(driver.self, target, start, nbytes, stream)
        raise_for_status(status, "copy_async")
        synchronize(self.device, stream)
        strides = [stride * dtype.itemsize for stride in self.strides]
        return np.ndarray(self.shape, dtype, span, -low * dtype.itemsize, strides).copy()


cdef int fill_operand(object value, Operand* operand) except -1:
    cdef DeviceArray array
    cdef int axis
    if isinstance(value, DeviceArray):
        array = value
        if len(array.shape) > MAX_NDIM:
            raise ValueError(f"an array has at most {MAX_NDIM} axes")
        operand.ptr = array.ptr
        operand.dtype = array.dtype
        operand.is_scalar = 0
        operand.ndim = len(array.shape)
        for axis in range(operand.ndim):
            operand.shape[axis] = array.shape[axis]
            operand.strides[axis] = array.strides[axis]
        return 0
    operand.is_scalar = 1
    operand.ndim = 0
    operand.ptr = 0
    operand.real = operand.imag = 0
    operand.integer = 0
    if isinstance(value, bool):
        operand.dtype = DT_BOOL
        operand.integer = value
    elif isinstance(value, int):
        operand.dtype = DT_INT64
        operand.integer = value
    elif isinstance(value, complex):
        operand.dtype = DT_COMPLEX128
        operand.real = value.real
        operand.imag = value.imag
    else:
        operand.dtype = DT_FLOAT64
        operand.real = value
    return 0


cdef int check_shapes(Operand* out, int count, Operand* inputs) except -1:
    cdef int i, axis
    for i in range(count):
        if inputs[i].is_scalar:
            continue
        if inputs[i].ndim != out.ndim:
            raise ValueError(f"input {i} has {inputs[i].ndim} axes, the output {out.ndim}")
        for axis in range(out.ndim):
            if inputs[i].shape[axis] != out.shape[axis]:
                raise ValueError(f"input {i} has length {inputs[i].shape[axis]} along axis {axis}, "
                                 f"the output {out.shape[axis]}")
    return 0


def elementwise(int op, int compute, DeviceArray out, inputs, stream=0):
    """Run one element-wise operation; inputs are arrays of the shape of `out`, or scalars."""
    cdef Operand target
    cdef Operand[3] sources
    cdef int i
    row = ELEMENTWISE[op]
    if len(inputs) != row.arity:
        raise ValueError(f"{row.public_name} takes {row.arity} inputs; got {len(inputs)}")
    fill_operand(out, &target)
    for i, value in enumerate(inputs):
        fill_operand(value, &sources[i])
    elementwise_check(op, out.dtype if row.name == "copy" else compute)
    check_shapes(&target, len(inputs), sources)
    c_elementwise(op, out.device, stream, compute, &target, len(inputs), sources)


def reduce(int op, int compute, DeviceArray out, DeviceArray array, axes, stream=0):
    """Reduce `array` over `axes` into `out`."""
    cdef Operand target, origin
    cdef uint32_t mask = 0
    kept = [n for axis, n in enumerate(array.shape) if axis not in axes]
    name = REDUCTIONS[op].name
    reduction_check(op, compute)
    if len(kept) != len(array.shape) - len(axes) or list(out.shape) != kept:
        raise ValueError(f"the output has shape {out.shape}; the kept axes have {tuple(kept)}")
    if 0 in out.shape:
        return
    if name in ("max", "min", "argmax", "argmin") and 0 in array.shape:
        raise ValueError(f"zero-size array to reduction {name}, which has no identity")
    for axis in axes:
        mask |= <uint32_t>1 << <int>axis
    fill_operand(out, &target)
    fill_operand(array, &origin)
    c_reduce(op, out.device, stream, compute, &target, &origin, mask)


def fill(DeviceArray out, value, stream=0):
    """Write a scalar to every element."""
    cdef Operand target, scalar
    fill_operand(out, &target)
    fill_operand(value, &scalar)
    c_fill(out.device, stream, &target, &scalar)


def arange(DeviceArray out, double start, double step, int64_t integer_start,
           int64_t integer_step, stream=0):
    """Write a progression; integer dtypes read the integer pair."""
    cdef Operand target
    fill_operand(out, &target)
    c_arange(out.device, stream, &target, start, step, integer_start, integer_step)


cdef int check_selection(DeviceArray small, DeviceArray whole, int first_axis,
                         list indices) except -1:
    """Whether the selection has elements; TypeError or ValueError where the arrays do not fit."""
    common = indices[0].shape
    expected = (*whole.shape[:first_axis], *common, *whole.shape[first_axis + len(indices):])
    if any([DTYPES[index.dtype].kind not in ("int", "uint") for index in indices]):
        raise TypeError("index arrays have an integer dtype")
    if any([index.shape != common for index in indices]) or (small.dtype, small.shape) != (
            whole.dtype, expected):
        raise ValueError(f"got a selection of shape {small.shape}; expected {expected}")
    return 0 not in expected


def gather(DeviceArray out, DeviceArray source, int first_axis, indices, stream=0):
    """Write ``source[..., indices, ...]`` to `out`."""
    cdef Operand target, origin
    cdef Operand[16] arrays
    cdef int i
    if not check_selection(out, source, first_axis, list(indices)):
        return
    fill_operand(out, &target)
    fill_operand(source, &origin)
    for i, index in enumerate(indices):
        fill_operand(index, &arrays[i])
    c_gather(out.device, stream, &target, &origin, first_axis, len(indices), arrays)


def scatter(DeviceArray target, int first_axis, indices, DeviceArray values, stream=0):
    """Write `values` to ``target[..., indices, ...]``."""
    cdef Operand destination, origin
    cdef Operand[16] arrays
    cdef int i
    if not check_selection(values, target, first_axis, list(indices)):
        return
    fill_operand(target, &destination)
    fill_operand(values, &origin)
    for i, index in enumerate(indices):
        fill_operand(index, &arrays[i])
    c_scatter(target.device, stream, &destination, first_axis, len(indices), arrays, &origin)


def synchronize(int device, uint64_t stream=0):
    """Wait for a stream and raise what its host calls left."""
    cdef Driver* driver = driver_open(device)
    cdef status_t status
    with nogil:
        status = driver.stream_synchronize(driver.self, stream)
    raise_for_status(status, "stream_synchronize")
    raise_pending(device)


def dtype_facts(int dtype):
    """Return what the C table says of a dtype's code: bytes of an element, number of the kind."""
    return dtype_itemsize(dtype), dtype_kind(dtype)
