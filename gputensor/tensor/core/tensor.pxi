"""The Tensor type: its fields and properties; the files beside it compute.

A Tensor is a small value object over a shared Storage. Its creation makes no Python object besides
itself and, for new memory, its Storage; properties build tuples on demand. Operators are described
in operators.pxi. Instances do not take part in cyclic garbage collection because they only refer to
a Storage.
"""

cdef list NUMPY_DTYPES = [row.numpy for row in DTYPES]


@cython.final
@cython.no_gc
@cython.freelist(64)
cdef class Tensor:
    """An n-dimensional array of one element type on one device.

    Made by :func:`asarray`, :func:`empty` and the other creation functions. Slices, transposes
    and reshapes share memory with their source. Operations are queued on the current stream of the
    device and return at once; reading a value (``item``, ``numpy``, printing, a conversion to a
    Python number) waits for it.

    >>> import gputensor as gt
    >>> t = gt.asarray([[1, 2], [3, 4]], dtype="float32", device="host")
    >>> t.shape, t.ndim, t.size, t.nbytes
    ((2, 2), 2, 4, 16)
    """

    # Keeps NumPy's operators from converting tensors: ndarray + Tensor raises instead of silently
    # copying from the device.
    __array_ufunc__ = None

    def __init__(self, *args, **kwargs):
        raise TypeError("Tensor: got a call of its constructor; expected asarray, empty, zeros, "
                        "full or arange")

    cdef int fill_operand(self, Operand* out) except -1:
        if self.storage.device < closable:
            storage_check_open(self.storage)
        out.ptr = self.ptr
        out.dtype = self.dtype_code
        out.ndim = self.ndim_
        out.is_scalar = 0
        memcpy(out.shape, self.shape_, self.ndim_ * sizeof(int64_t))
        memcpy(out.strides, self.strides_, self.ndim_ * sizeof(int64_t))
        return 0

    cdef int prepare_read(self, uint64_t stream) except -1:
        cdef int status
        if self.storage.device < closable:
            storage_check_open(self.storage)
        status = order_read(&self.storage.uses, self.storage.block, stream)
        if status:
            raise_for_order(self.storage.device, stream, status)
        return 0

    cdef int prepare_write(self, uint64_t stream) except -1:
        cdef int status
        if self.storage.device < closable:
            storage_check_write(self.storage)
        if self.storage.is_readonly:
            raise ValueError("tensor: got read-only imported memory; expected memory that its "
                             "DLPack producer declares writable (copy it first, or see "
                             "assume_writable of from_dlpack)")
        status = order_write(&self.storage.uses, self.storage.block, stream)
        if status:
            raise_for_order(self.storage.device, stream, status)
        return 0

    # ---- properties

    @property
    def shape(self):
        """The extents, a tuple of int."""
        cdef tuple shape = ints(self.ndim_, self.shape_, 1)
        return shape if traces == 0 else extents_seen(self, shape)

    @property
    def strides(self):
        """The distance in bytes between neighbours along each axis, as NumPy counts it."""
        return ints(self.ndim_, self.strides_, dtype_itemsize(self.dtype_code))

    @property
    def ndim(self):
        """The number of axes."""
        return self.ndim_

    @property
    def size(self):
        """The number of elements."""
        return self.size_ if traces == 0 else extents_seen(self, (self.size_,))[0]

    @property
    def itemsize(self):
        """Bytes of one element."""
        return dtype_itemsize(self.dtype_code)

    @property
    def nbytes(self):
        """Bytes of all elements: ``size * itemsize``."""
        return self.size_ * dtype_itemsize(self.dtype_code)

    @property
    def dtype(self):
        """The element type, a NumPy dtype (of ``ml_dtypes`` for bfloat16 and float8)."""
        return NUMPY_DTYPES[self.dtype_code]

    @property
    def device(self):
        """The device that holds the memory."""
        return device_object(self.storage.device)

    @property
    def is_contiguous(self):
        """Whether the elements follow each other in row-major order."""
        return self.is_c_contiguous != 0

    @property
    def T(self):
        """A view with the axes in reverse order: the transpose of a matrix."""
        return operators.transpose(self)

    @property
    def mT(self):
        """A view with the last two axes exchanged."""
        return operators.matrix_transpose(self)

    def data_ptr(self):
        """Return the address of the first element; 0 if there is none."""
        if self.storage.device < closable:
            storage_check_open(self.storage)
            if is_tracing():
                refuse_value_of(self, "data_ptr()")
        return self.ptr if self.size_ else 0

    def storage_offset(self):
        """Return how many elements lie between the start of the memory and the first element."""
        if self.storage.device < closable:
            storage_check_open(self.storage)
        return (self.ptr - self.storage.ptr) // dtype_itemsize(self.dtype_code) if self.size_ else 0

    def _write_on(self, uint64_t stream):
        """Order a coming write on a stream, inside a section. Used by replays of graphs."""
        self.prepare_write(stream)

    def _is_used_on(self, streams):
        """Return whether work on one of these streams used the memory. Used by graphs."""
        return any(use_log_has(&self.storage.uses, stream) for stream in streams)

    # ---- values, which wait for the device

    def __repr__(self):
        return operators.represent(self)

    def __str__(self):
        return operators.text(self)

    def __len__(self):
        if self.ndim_ == 0:
            raise TypeError("len: got a tensor with 0 dimensions; expected 1 or more")
        if traces:
            length_seen(self)
        return self.shape_[0]

    def __iter__(self):
        if self.ndim_ == 0:
            raise TypeError("iter: got a tensor with 0 dimensions; expected 1 or more")
        return iter([operators.getitem(self, i) for i in range(self.shape_[0])])

    def item(self, *index):
        """Return an element as a Python number: the only one, or that at an index.

        One int counts the elements in row-major order, as in NumPy; several are an index for each
        axis. ValueError without an index if there are more elements or none.
        """
        cdef Tensor chosen = self
        if index:
            if len(index) == 1 and isinstance(index[0], tuple):
                index = index[0]
            chosen = <Tensor> (self.flat[index[0]] if len(index) == 1 else self[index])
        return number_of(chosen, "item")

    def __bool__(self):
        if self.size_ != 1:
            raise argument_error(
                ValueError, "bool", Described(f"a tensor of shape {self.shape}"),
                "one element; any() and all() tell whether some or every element is nonzero")
        return bool(number_of(self, "bool"))

    def __int__(self):
        return int(number_of(self, "int"))

    def __float__(self):
        return float(number_of(self, "float"))

    def __complex__(self):
        return complex(number_of(self, "complex"))

    def __contains__(self, value):
        return bool(operators.any(of_two(EQUAL, self, value, None)))

    def __index__(self):
        if not (self.ndim_ == 0 and NUMPY_DTYPES[self.dtype_code].kind in "iu"):
            raise TypeError(f"index: got a tensor of dtype {DTYPES[self.dtype_code].name} and "
                            f"shape {self.shape}; expected an integer dtype and 0 dimensions")
        return int(number_of(self, "index"))

    def __bytes__(self):
        return operators.numpy(self).tobytes()

    def __array__(self, dtype=None, copy=None):
        if copy is not None and copy is not True and copy is not False:
            raise TypeError(f"__array__: copy: got {copy!r:.60}; expected True, False or None")
        if copy is False:
            raise ValueError("__array__: copy: got False; expected True or None, because NumPy's "
                             "array is a copy from the device (numpy.from_dlpack shares memory of "
                             "the host device)")
        result = operators.numpy(self)
        return result if dtype is None else result.astype(dtype, copy=False)

    # ---- protocols

    def __array_namespace__(self, *, api_version=None):
        return operators.namespace(api_version)

    def __dlpack__(self, *, stream=None, max_version=None, dl_device=None, copy=None):
        return operators.dlpack(self, stream, max_version, dl_device, copy)

    def __dlpack_device__(self):
        return operators.dlpack_device(self)

    @property
    def __cuda_array_interface__(self):
        return operators.array_interface(self)

    def to_device(self, device, /, *, stream=None):
        """Return the tensor itself if it is on `device`, otherwise a copy on it.

        `stream` is the Stream of the source device on which the copy is ordered; default: the
        current one.
        """
        return operators.to_device(self, device, stream)

    def __reduce__(self):
        return operators.reduce(self)

    def __copy__(self):
        return operators.copy(self)

    def __deepcopy__(self, memo):
        result = operators.copy(self)
        memo[id(self)] = result
        return result

    # ---- operators

    def __getitem__(self, key):
        return operators.getitem(self, key)

    def __setitem__(self, key, value):
        operators.setitem(self, key, value)

    def __hash__(self):
        return <Py_hash_t> ((<size_t> <PyObject*> self) >> 4)

    def __eq__(self, other):
        if not is_operand(other):
            return NotImplemented
        return of_two(EQUAL, self, other, None)

    def __ne__(self, other):
        if not is_operand(other):
            return NotImplemented
        return of_two(NOT_EQUAL, self, other, None)

    def __lt__(self, other):
        return of_two(LESS, self, other, None)

    def __le__(self, other):
        return of_two(LESS_EQUAL, self, other, None)

    def __gt__(self, other):
        return of_two(GREATER, self, other, None)

    def __ge__(self, other):
        return of_two(GREATER_EQUAL, self, other, None)

    def __neg__(self):
        return of_one(NEGATIVE, self)

    def __pos__(self):
        return of_one(POSITIVE, self)

    def __abs__(self):
        return of_one(ABS, self)

    def __invert__(self):
        return of_one(BITWISE_INVERT, self)

    def __add__(self, other):
        return of_two(ADD, self, other, None)

    def __radd__(self, other):
        return of_two(ADD, other, self, None)

    def __iadd__(self, other):
        return of_two(ADD, self, other, self)

    def __sub__(self, other):
        return of_two(SUBTRACT, self, other, None)

    def __rsub__(self, other):
        return of_two(SUBTRACT, other, self, None)

    def __isub__(self, other):
        return of_two(SUBTRACT, self, other, self)

    def __mul__(self, other):
        return of_two(MULTIPLY, self, other, None)

    def __rmul__(self, other):
        return of_two(MULTIPLY, other, self, None)

    def __imul__(self, other):
        return of_two(MULTIPLY, self, other, self)

    def __truediv__(self, other):
        return of_two(DIVIDE, self, other, None)

    def __rtruediv__(self, other):
        return of_two(DIVIDE, other, self, None)

    def __itruediv__(self, other):
        return of_two(DIVIDE, self, other, self)

    def __floordiv__(self, other):
        return of_two(FLOOR_DIVIDE, self, other, None)

    def __rfloordiv__(self, other):
        return of_two(FLOOR_DIVIDE, other, self, None)

    def __ifloordiv__(self, other):
        return of_two(FLOOR_DIVIDE, self, other, self)

    def __mod__(self, other):
        return of_two(REMAINDER, self, other, None)

    def __rmod__(self, other):
        return of_two(REMAINDER, other, self, None)

    def __imod__(self, other):
        return of_two(REMAINDER, self, other, self)

    def __divmod__(self, other):
        return operators.divmod(self, other)

    def __rdivmod__(self, other):
        return operators.divmod(other, self)

    def __pow__(self, other):
        return of_two(POW, self, other, None)

    def __rpow__(self, other):
        return of_two(POW, other, self, None)

    def __ipow__(self, other):
        return of_two(POW, self, other, self)

    def __matmul__(self, other):
        return operators.matmul(self, other)

    def __rmatmul__(self, other):
        return operators.matmul(other, self)

    def __imatmul__(self, other):
        return operators.matmul_in_place(self, other)

    def __and__(self, other):
        return of_two(BITWISE_AND, self, other, None)

    def __rand__(self, other):
        return of_two(BITWISE_AND, other, self, None)

    def __iand__(self, other):
        return of_two(BITWISE_AND, self, other, self)

    def __or__(self, other):
        return of_two(BITWISE_OR, self, other, None)

    def __ror__(self, other):
        return of_two(BITWISE_OR, other, self, None)

    def __ior__(self, other):
        return of_two(BITWISE_OR, self, other, self)

    def __xor__(self, other):
        return of_two(BITWISE_XOR, self, other, None)

    def __rxor__(self, other):
        return of_two(BITWISE_XOR, other, self, None)

    def __ixor__(self, other):
        return of_two(BITWISE_XOR, self, other, self)

    def __lshift__(self, other):
        return of_two(BITWISE_LEFT_SHIFT, self, other, None)

    def __rlshift__(self, other):
        return of_two(BITWISE_LEFT_SHIFT, other, self, None)

    def __ilshift__(self, other):
        return of_two(BITWISE_LEFT_SHIFT, self, other, self)

    def __rshift__(self, other):
        return of_two(BITWISE_RIGHT_SHIFT, self, other, None)

    def __rrshift__(self, other):
        return of_two(BITWISE_RIGHT_SHIFT, other, self, None)

    def __irshift__(self, other):
        return of_two(BITWISE_RIGHT_SHIFT, self, other, self)


cdef tuple ints(int count, const int64_t* values, int64_t factor):
    cdef tuple made = PyTuple_New(count)
    cdef object value
    cdef int i
    for i in range(count):
        value = values[i] * factor
        Py_INCREF(value)
        PyTuple_SET_ITEM(made, i, value)
    return made


cdef bint is_operand(object value) noexcept:
    """Return whether a comparison with `value` is element-wise; with others ``==`` is False.

    For a list or tuple the comparison raises, because in NumPy it would be element-wise.
    """
    return type(value) is Tensor or isinstance(
        value, (int, float, complex, list, tuple)) or hasattr(value, "dtype")


cdef object number_of(Tensor a, str name):
    """Return the only element as a Python number; ValueError names the calling function."""
    if a.size_ != 1:
        raise argument_error(ValueError, name, Described(f"a tensor of shape {a.shape}"),
                             "one element")
    if is_tracing():
        refuse_value_of(a, name + "()")
    return operators.numpy(a).item()


cdef void tensor_span(Tensor a, uint64_t* first, uint64_t* last) noexcept:
    cdef int i
    cdef int64_t nbytes = dtype_itemsize(a.dtype_code)
    cdef int64_t below = 0
    cdef int64_t above = 0
    first[0] = last[0] = a.ptr
    if a.size_ == 0:
        return
    for i in range(a.ndim_):
        if a.strides_[i] < 0:
            below += (a.shape_[i] - 1) * a.strides_[i]
        else:
            above += (a.shape_[i] - 1) * a.strides_[i]
    first[0] = a.ptr + <uint64_t> (below * nbytes)
    last[0] = a.ptr + <uint64_t> ((above + 1) * nbytes)
