# Operands of calls as Python objects, for recorders and doors.

cdef dict DTYPE_CODES = {row.name: row.code for row in DTYPES}
cdef tuple DTYPE_NAMES = tuple([row.name for row in DTYPES])


@cython.final
@cython.freelist(16)
cdef class CallOperand:
    """Memory with a shape, or a number, as an operand of a call. Immutable; owns no memory.

    Parameters
    ----------
    address : int
        The address of element [0, ..., 0].
    dtype : str
        The name of the dtype: ``"float32"``.
    shape, strides : sequence of int
        Strides are in elements; row-major by default.

    Attributes
    ----------
    address : int
    dtype : str
    shape, strides : tuple of int, or None
        None for a number.
    value : bool, int, float, complex or None
        The number; None for memory.

    Examples
    --------
    >>> row = CallOperand(4096, "float32", (2, 3))
    >>> row.strides, row.at(8192)
    ((3, 1), CallOperand(8192, 'float32', (2, 3), (3, 1)))
    >>> CallOperand.number("int16", -1).value
    -1
    """

    def __init__(self, address, str dtype not None, shape, strides=None):
        cdef int axis
        cdef int64_t step = 1
        self.c.ptr = address
        self.c.dtype = code_of(dtype)
        self.c.is_scalar = 0
        self.c.real = self.c.imag = 0
        self.c.integer = 0
        if len(shape) > MAX_NDIM or (strides is not None and len(strides) != len(shape)):
            raise argument_error(ValueError, "shape", tuple(shape),
                                 "at most 16 extents, and as many strides")
        self.c.ndim = len(shape)
        for axis in range(self.c.ndim - 1, -1, -1):
            self.c.shape[axis] = shape[axis]
            self.c.strides[axis] = step if strides is None else strides[axis]
            step *= self.c.shape[axis]

    @staticmethod
    def number(str dtype not None, value):
        """Return a number of a dtype; raise OverflowError for an integer outside its range."""
        cdef CallOperand made = CallOperand.__new__(CallOperand)
        cdef int code = code_of(dtype)
        cdef int kind = dtype_kind(code)
        made.c.is_scalar = 1
        made.c.dtype = code
        if kind == KIND_COMPLEX:
            value = complex(value)
            made.c.real, made.c.imag = value.real, value.imag
        elif kind == KIND_FLOAT or kind == KIND_SMALL:
            made.c.real = value
        else:
            number = int(np.asarray(value, numpy_dtypes[code]))
            made.c.integer = <int64_t><uint64_t>(number & 0xFFFFFFFFFFFFFFFF)
            made.c.real = <double>number
        return made

    def at(self, uint64_t address):
        """Return the same operand at another address."""
        cdef CallOperand made = call_operand(&self.c)
        made.c.ptr = address
        return made

    def memory(self):
        """Return (address, dtype, shape, strides) for memory, None for a number."""
        if self.c.is_scalar:
            return None
        return (self.c.ptr, DTYPE_NAMES[self.c.dtype], ints(self.c.ndim, self.c.shape),
                ints(self.c.ndim, self.c.strides))

    def covers(self, uint64_t start, int64_t nbytes):
        """Return whether the operand has each byte of the given memory exactly once."""
        cdef int64_t[16] strides, shape
        cdef int64_t size, stride, low = 0, width = dtype_itemsize(self.c.dtype)
        cdef int axis, at, count = 0
        for axis in range(self.c.ndim):
            if self.c.shape[axis] == 1:
                continue
            stride = self.c.strides[axis]
            if stride < 0:
                low += stride * (self.c.shape[axis] - 1)
                stride = -stride
            at = count
            while at > 0 and strides[at - 1] > stride:
                strides[at], shape[at] = strides[at - 1], shape[at - 1]
                at -= 1
            strides[at], shape[at] = stride, self.c.shape[axis]
            count += 1
        size = 1
        for at in range(count):
            if strides[at] != size:
                return False
            size *= shape[at]
        return size * width == nbytes and self.c.ptr + low * width == start

    @property
    def address(self):
        return self.c.ptr

    @property
    def dtype(self):
        return DTYPE_NAMES[self.c.dtype]

    @property
    def shape(self):
        return None if self.c.is_scalar else ints(self.c.ndim, self.c.shape)

    @property
    def strides(self):
        return None if self.c.is_scalar else ints(self.c.ndim, self.c.strides)

    @property
    def value(self):
        cdef int kind = dtype_kind(self.c.dtype)
        if not self.c.is_scalar:
            return None
        if kind == KIND_BOOL:
            return self.c.integer != 0
        if kind == KIND_INT:
            return self.c.integer
        if kind == KIND_UINT:
            return <uint64_t>self.c.integer
        return complex(self.c.real, self.c.imag) if kind == KIND_COMPLEX else self.c.real

    def __repr__(self):
        if self.c.is_scalar:
            return f"CallOperand.number({self.dtype!r}, {self.value!r})"
        return f"CallOperand({self.address}, {self.dtype!r}, {self.shape}, {self.strides})"


def by_name(tuple names not None, tuple values not None):
    """Return a dict of the first values by names, in a quarter of the time of dict(zip)."""
    cdef dict made = {}
    cdef Py_ssize_t i
    for i in range(len(names)):
        made[names[i]] = values[i]
    return made


cdef tuple ints(int count, const int64_t* values):
    cdef tuple made = PyTuple_New(count)
    cdef object value
    cdef int i
    for i in range(count):
        value = values[i]
        Py_INCREF(value)
        PyTuple_SET_ITEM(made, i, value)
    return made


cdef int code_of(str dtype) except -1:
    if dtype not in DTYPE_CODES:
        raise argument_error(ValueError, "dtype", dtype, "the name of a dtype")
    return DTYPE_CODES[dtype]


cdef CallOperand call_operand(const Operand* operand):
    cdef CallOperand made = CallOperand.__new__(CallOperand)
    made.c = operand[0]
    return made


# ---- recorders

cdef bint is_recorded(int device) noexcept nogil:
    cdef HostCalls* calls = calls_of(device)
    return calls != NULL and calls.recorder != NULL


cdef object recorder_of(int device):
    return <object>calls_of(device).recorder if is_recorded(device) else None


cdef object call_argument(int device, const Operand* operand):
    if operand == NULL:
        return None
    if is_recorded(device):
        return call_operand(operand)
    return host_view(<Operand*>operand)


def set_recorder(int device, recorder):
    """Make a host device record its calls instead of running them; None ends that.

    A recorder is an object with these methods. The operation raises their exceptions.

    ``call(row, stream, arguments)``
        A call: a row of ``calls.CALLS``, the handle of the stream, and the arguments in the row's
        order, with a `CallOperand` for each operand and None for an absent operand.
    ``upload(operand, array)``
        A copy of a NumPy array, which may change afterwards, to memory of the device.
    ``download(operand)``
        A request for the values of an operand; returns them as a NumPy array, or raises.
    ``refuse(problem, way_out)``
        Raises for work that is not a call of the registry.

    Parameters
    ----------
    device : int
        The number of an open host device.
    recorder : object or None
    """
    if not -HOST_DEVICES <= device < MAX_DEVICES - HOST_DEVICES or (
            device_kind(device) != DEVICE_HOST):
        raise argument_error(ValueError, "device", device, "the number of a host device")
    driver_open(device)
    cdef HostCalls* calls = calls_of(device)
    Py_CLEAR(calls.recorder)
    if recorder is not None:
        Py_INCREF(recorder)
        calls.recorder = <PyObject*>recorder
