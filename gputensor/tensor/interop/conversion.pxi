"""Conversion of objects to tensors, and of tensors to another dtype or device.

`asarray` takes any array-like object. NumPy arrays, NumPy scalars and buffers keep their dtype,
also as parts of lists (nested.pxi); Python floats become float32, ints int64, complex numbers
complex64. Host memory is copied unless ``copy=False``; arrays already on a device are shared.
Python numbers must fit a requested integer dtype; the elements of arrays are converted as by
`astype`.
"""


def asarray(obj, /, dtype=None, *, device=None, copy=None):
    """Return a tensor with the values of `obj`.

    Parameters
    ----------
    obj : Tensor, numpy.ndarray, number, nested sequence, buffer or array of another library
        Arrays of other libraries are read through ``__dlpack__``, ``__cuda_array_interface__`` or
        ``__array__``, in this order.
    dtype : dtype, optional
        Default: that of `obj`; Python floats become float32, ints int64, complex numbers
        complex64. Arrays, tensors and NumPy scalars in a list have their dtypes, which are combined
        by NumPy's promotion; Python numbers beside them contribute their kind, not their width.
    device : str, int or Device, optional
        Default: the device of `obj` if it is on one, a host device if host memory is shared, and
        otherwise the current device.
    copy : bool, optional
        True: always new memory. False: share the memory, including that of host arrays and
        buffers; ValueError if that is impossible. None: share tensors and arrays on a device, and
        copy host arrays, which may change right after the call.

    Raises
    ------
    OverflowError
        A number, alone or in a sequence, is outside the integer `dtype`; without `dtype`, an int
        has more than 64 bits.

    >>> asarray([[1.5, 2]], device="host").dtype
    dtype('float32')
    >>> asarray(np.arange(3, dtype="int16"), device="host").numpy()
    array([0, 1, 2], dtype=int16)
    """
    cdef Tensor source
    copy = copy_argument(copy, "asarray")
    if type(obj) is Tensor:
        source = <Tensor> obj
    elif copy is False and isinstance(obj, np.ndarray):
        source = share_ndarray(obj, device)
    elif is_device_array(obj):
        source = from_dlpack(obj)
    elif hasattr(obj, "__cuda_array_interface__"):
        source = from_cuda_array(obj)
    elif copy is False:
        source = shared_host_memory(obj, device)
    else:
        return from_host(obj, dtype, device)
    return placed(source, dtype, device, copy)


cdef Tensor placed(Tensor source, object dtype, object device, object copy):
    """Return `source` with the requested dtype, on the requested device."""
    cdef int code = dtype_argument(dtype, source.dtype_code)
    cdef int target = source.storage.device if device is None else resolve_device(device)
    if copy is False and (code != source.dtype_code or target != source.storage.device):
        raise ValueError("asarray: copy: got False; expected True or None, because dtype "
                         f"{DTYPES[code].name} on {device_text(target)} cannot share the memory "
                         f"of {source.dtype} on {source.device}")
    if code != source.dtype_code:
        source = copied(source, code)
        copy = None
    if target != source.storage.device:
        return moved(source, target)
    return copied(source, code) if copy else source


cdef bint is_device_array(object obj):
    """Return whether `obj` exports memory by DLPack that is not host memory."""
    if isinstance(obj, np.ndarray) or not hasattr(obj, "__dlpack_device__"):
        return False
    return producer_device(obj)[0] != 1


cdef Tensor shared_host_memory(object obj, object device):
    """Return a tensor of a host device over the memory of an object with DLPack or a buffer."""
    if hasattr(obj, "__dlpack__"):
        if device is not None and device_kind(resolve_device(device)) != DEVICE_HOST:
            device = None       # `placed` raises the error for this device
        try:
            return from_dlpack(obj, device=device, copy=False)
        except BufferError as error:
            raise ValueError("asarray: copy: got False; expected True or None, because the memory "
                             f"of a {type(obj).__name__} cannot be shared: {error}") from error
    # A NumPy scalar has a buffer too, but it is a copy of its value.
    if PyObject_CheckBuffer(obj) and not isinstance(obj, np.generic):
        return share_ndarray(np.asarray(memoryview(obj)), device)
    raise ValueError("asarray: copy: got False; expected True or None, because the memory of a "
                     f"{type(obj).__name__} cannot be shared")


cdef Tensor from_host(object obj, object dtype, object device):
    cdef int target
    cdef int code
    # `owner` keeps the memory of the array alive until it has been copied.
    array, keeps_dtype, owner = as_ndarray(obj)
    if dtype is not None:
        code = dtype_argument(dtype, 0)
        if not keeps_dtype or number_kind(obj) >= 0 or isinstance(obj, (list, tuple)):
            array = fitting(array, owner, code)
    elif keeps_dtype:
        code = dtype_argument(array.dtype, 0)
    elif array.dtype.kind == "O":
        code = DT_INT64
        fitting(array, obj, code)       # raises: these are ints of more than 64 bits
    else:
        code = dtype_argument(array.dtype, 0)
        code = {DT_FLOAT64: DT_FLOAT32, DT_COMPLEX128: DT_COMPLEX64}.get(code, code)
    target = current_device() if device is None else resolve_device(device)
    return upload(array, code, target)


cdef tuple as_ndarray(object obj):
    """Return `obj` as a NumPy array, whether its dtype is to be kept, and the owner of its memory.

    For an array copied from sequences, the owner is a sequence of the same numbers.
    """
    cdef Tensor shared
    cdef Operand operand
    if isinstance(obj, (np.ndarray, np.generic)):
        base = obj.base
        while isinstance(base, np.ndarray):
            base = base.base
        if base is not None:
            check_mapped(obj)       # memory of a mapped file that is gone cannot be read
        return native(np.asarray(obj)), True, obj
    if isinstance(obj, (bytes, bytearray)):
        return np.frombuffer(obj, np.uint8), True, obj
    if hasattr(obj, "__dlpack__"):
        # Through our own import, because NumPy's does not support bfloat16.
        shared = from_dlpack(obj, device=HOST_DEVICE)
        shared.fill_operand(&operand)
        return host_view(&operand), True, shared
    if isinstance(obj, (list, tuple)) and holds_arrays(obj):
        array, parts = joined(obj)
        return array, True, parts
    is_plain = isinstance(obj, (int, float, complex, list, tuple, range))
    try:
        array = np.asarray(obj)
    except ValueError:
        if not is_plain:
            raise
        raise argument_error(ValueError, "asarray: obj", Described("sequences of unequal lengths"),
                             "nested sequences of one length at each level") from None
    if array.dtype.kind in "US":
        raise argument_error(TypeError, "asarray: obj", Described("text"),
                             "numbers, arrays, or nested sequences of them")
    if not is_plain:
        check_inside_buffer(array, "asarray")
    array = native(array)
    if array.dtype == object:
        # NumPy's dtype for ints of more than 64 bits, and for everything that it does not know.
        kinds = {number_kind(part) for part in array.flat if is_plain} or {-1}
        if -1 in kinds:
            raise TypeError(f"asarray: obj: got {type(obj).__name__} of unequal or unsupported "
                            "parts; expected numbers in nested sequences of equal lengths")
        if max(kinds) > 1:
            array = array.astype(np.complex128 if 3 in kinds else np.float64)
    if is_plain and array.size == 0:
        array = array.astype(np.float32)
    return array, not is_plain, obj


cdef object native(object array):
    """Return `array` in the byte order of this machine."""
    if array.dtype.isnative:
        return array
    return array.astype(array.dtype.newbyteorder("="))


cdef object fitting(object array, object obj, int code):
    """Return `array`, the numbers of `obj`; raise if dtype `code` cannot take one of them."""
    cdef int kind = dtype_kind(code)
    if array.dtype.kind == "c" and kind != KIND_COMPLEX and kind != KIND_BOOL:
        raise TypeError("asarray: obj: got complex numbers; expected numbers that "
                        f"{DTYPES[code].name} can hold")
    if kind != KIND_INT and kind != KIND_UINT:
        # Ints of more than 64 bits can be converted to bfloat16 and float8 only through floats.
        return array.astype(np.float64) if array.dtype == object and kind != KIND_BOOL else array
    if array.size == 0:
        return array
    if np.can_cast(array.dtype, DTYPES[code].numpy):
        return array
    low, high = array.min(), array.max()
    if array.dtype.kind == "f" and 2**53 <= max(-float(low), float(high)) < INFINITY:
        # NumPy also makes float64 of ints on both sides of 2**63, which rounds them.
        array = np.asarray(obj, dtype=object)
        low, high = array.min(), array.max()
    whole_number(low, code)
    whole_number(high, code)
    return array


def astype(x, dtype, /, *, copy=True, device=None):
    """Return `x` converted to `dtype`.

    Floats become integers by dropping the fraction; the result for a value outside the integer
    type is undefined, as in C. With ``copy=False`` a tensor that already has the dtype is returned
    itself. A scalar of NumPy counts as a tensor on the current device.

    >>> astype(asarray([1.7, -1.7], device="host"), "int32").numpy()
    array([ 1, -1], dtype=int32)
    """
    cdef Tensor a = asarray(x) if isinstance(x, np.generic) else tensor_argument(x, "astype")
    cdef int code = dtype_argument(dtype, a.dtype_code)
    cdef Tensor result = a
    if flag_argument(copy, "astype", "copy") or code != a.dtype_code:
        result = copied(a, code)
    if device is not None and resolve_device(device) != result.storage.device:
        result = moved(result, resolve_device(device))
    return result


def reinterpreted(x, dtype, /):
    """Return the bits of `x` as elements of another dtype; a view.

    If its size differs, the last axis must be contiguous, and its extent changes by the ratio.

    >>> reinterpreted(asarray([-0.0], device="host"), "int32").tolist()
    [-2147483648]
    >>> reinterpreted(asarray([[1, 2]], device="host"), "int32").shape
    (1, 4)
    """
    cdef Tensor a = tensor_argument(x, "reinterpreted")
    cdef int code = dtype_argument(dtype, a.dtype_code)
    cdef int64_t own = dtype_itemsize(a.dtype_code), other = dtype_itemsize(code)
    cdef int64_t[16] shape
    cdef int64_t[16] strides
    cdef int i, last = a.ndim_ - 1
    if own == other:
        return tensor_over(a.storage, a.ptr, code, a.ndim_, a.shape_, a.strides_)
    if a.ndim_ == 0 or a.shape_[last] > 1 and a.strides_[last] != 1 and a.size_ > 0:
        got = Described(f"{DTYPES[code].name} for shape {a.shape} and strides {a.strides}")
        raise argument_error(ValueError, "reinterpreted: dtype", got,
                             f"a dtype of {own} bytes, or a contiguous last axis")
    for i in range(a.ndim_):
        shape[i] = a.shape_[i]
        strides[i] = a.strides_[i] * own // other
        if i < last and shape[i] > 1 and a.strides_[i] * own % other != 0:
            other = 0
            break
    if other == 0 or shape[last] * own % other != 0 or a.size_ and a.ptr % <uint64_t> other != 0:
        got = Described(f"{DTYPES[code].name} for shape {a.shape} and strides {a.strides}")
        raise argument_error(ValueError, "reinterpreted: dtype", got,
                             "a dtype whose size divides the last axis and all strides")
    shape[last] = shape[last] * own // other
    strides[last] = 1
    return tensor_over(a.storage, a.ptr, code, a.ndim_, shape, strides)


def part_view(x, is_imaginary, /):
    """Return a view of the real or the imaginary parts of a complex tensor.

    >>> part_view(asarray([1 + 2j, 3 + 4j], device="host"), True).tolist()
    [2.0, 4.0]
    """
    cdef Tensor a = tensor_argument(x, "part_view")
    cdef int code = DT_FLOAT32 if a.dtype_code == DT_COMPLEX64 else DT_FLOAT64
    cdef int64_t[16] strides
    cdef int i
    if dtype_kind(a.dtype_code) != KIND_COMPLEX:
        raise argument_error(TypeError, "part_view: x", Described(a.dtype), "a complex dtype")
    for i in range(a.ndim_):
        strides[i] = 2 * a.strides_[i]
    return tensor_over(a.storage, a.ptr + (dtype_itemsize(code) if is_imaginary else 0), code,
                       a.ndim_, a.shape_, strides)


def copy(x, /):
    """Return a row-major copy of `x` on its device.

    >>> copy(asarray([1, 2], device="host")[::-1]).numpy()
    array([2, 1])
    """
    cdef Tensor a = tensor_argument(x, "copy")
    return copied(a, a.dtype_code)


def ascontiguous(x, /):
    """Return `x` itself if it is row-major without gaps, otherwise a copy.

    >>> ascontiguous(asarray([[1, 2], [3, 4]], device="host").T).is_contiguous
    True
    """
    cdef Tensor a = tensor_argument(x, "ascontiguous")
    return a if a.is_c_contiguous else copied(a, a.dtype_code)


def reduce(Tensor x):
    """Return what pickle stores: the values as a NumPy array, the device's name, and the shape.

    Along an axis that a broadcast has repeated (stride 0), only one element is stored.

    >>> import pickle
    >>> x = gt.asarray([[1], [2]], device="host")
    >>> pickle.loads(pickle.dumps(gt.broadcast_to(x, (2, 100000)))).shape
    (2, 100000)
    """
    cdef int64_t[16] shape
    cdef int i
    cdef bint is_repeated = False
    for i in range(x.ndim_):
        shape[i] = x.shape_[i]
        if x.strides_[i] == 0 and shape[i] > 1:
            shape[i] = 1
            is_repeated = True
    if not is_repeated:
        return rebuild, (download(x), device_text(x.storage.device))
    part = tensor_over(x.storage, x.ptr, x.dtype_code, x.ndim_, shape, x.strides_)
    return rebuild, (download(part), device_text(x.storage.device), x.shape)


def rebuild(array, device, shape=None):
    """Return a pickled tensor, on its device, or on the host device if that one is missing."""
    cdef Tensor values
    cdef int64_t[16] extents
    cdef int64_t[16] strides
    cdef int i
    try:
        values = asarray(array, device=device)
    except DeviceError:
        values = asarray(array, device="host")
    if shape is None or values.shape == tuple(shape):
        return values
    shape_argument(shape, extents)
    for i in range(values.ndim_):
        strides[i] = values.strides_[i] if extents[i] == values.shape_[i] else 0
    return tensor_over(values.storage, values.ptr, values.dtype_code, values.ndim_, extents,
                       strides)
