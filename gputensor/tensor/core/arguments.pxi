"""Parsing of arguments that many functions share, with one wording for each mistake."""

cdef dict CODES = dtypes.CODES
cdef object look_up = dtypes.dtype_code


cdef int shape_argument(object shape, int64_t* out) except -1:
    cdef int ndim = 0
    cdef int64_t size = 1
    cdef int is_beyond
    cdef object extent
    if isinstance(shape, int):
        shape = (shape,)
    elif not isinstance(shape, (tuple, list)):
        # An array without axes has __iter__, but is one number.
        is_several = hasattr(shape, "__iter__") and getattr(shape, "ndim", 1)
        shape = tuple(shape) if is_several else (shape,)
    if len(shape) > MAX_NDIM:
        raise ValueError(f"shape: got {len(shape)} dimensions; expected at most {MAX_NDIM}")
    for extent in shape:
        if type(extent) is int:
            out[ndim] = PyLong_AsLongAndOverflow(extent, &is_beyond)
            if not is_beyond and out[ndim] > 0 and (size | out[ndim]) < 1 << 29:
                size *= out[ndim]       # at most 2**58
                ndim += 1
                continue
        try:
            out[ndim] = PyNumber_Index(extent)
        except TypeError:
            raise TypeError(f"shape: got {extent!r:.60} as an extent; expected an int") from None
        except OverflowError:
            if extent < 0:
                raise ValueError(f"shape: got the extent {extent}; expected 0 or more") from None
            raise ValueError(f"shape: got the extent {extent}; expected at most 63 bits") from None
        if out[ndim] < 0:
            raise ValueError(f"shape: got the extent {out[ndim]}; expected 0 or more")
        if out[ndim] and size > MAX_SIZE // out[ndim]:
            text = (f"shape: got {tuple(shape)}; expected at most 2**58 elements, counted "
                    "without the axes of extent 0")
            if 0 in shape:      # it needs no memory
                raise ValueError(text)
            raise OutOfMemoryError(f"out of memory: {text}")
        size *= out[ndim] or 1      # a view or a sum may lose the axis of extent 0
        ndim += 1
    return ndim


cdef int64_t count_argument(object count, str name, str argument) except -1:
    cdef object value
    try:
        value = PyNumber_Index(count)
    except TypeError:
        raise TypeError(f"{name}: {argument}: got {type(count).__name__}; expected an int"
                        ) from None
    if value < 0:
        raise ValueError(f"{name}: {argument}: got {value}; expected 0 or more")
    if value > MAX_SIZE:
        raise ValueError(f"{name}: {argument}: got {value}; expected at most 2**58 elements")
    return value


cdef int64_t diagonal_argument(object k, str name) except? -1:
    cdef object value
    try:
        value = PyNumber_Index(k)
    except TypeError:
        raise TypeError(f"{name}: k: got {type(k).__name__}; expected an int") from None
    # All diagonals beyond the longest axis are empty.
    return max(-MAX_SIZE, min(value, MAX_SIZE))


cdef int dtype_argument(object dtype, int default) except -1:
    cdef object code
    if dtype is None:
        return default
    try:
        code = CODES.get(dtype)
    except TypeError:
        code = None
    return look_up(dtype) if code is None else code


cdef int device_argument(object device) except? -1000:
    return current_device() if device is None else resolve_device(device)


cpdef int axis_argument(object axis, int ndim, str name) except -1:
    cdef int64_t value
    cdef int is_beyond = 1
    if type(axis) is int:
        value = PyLong_AsLongAndOverflow(axis, &is_beyond)
        if not is_beyond and -ndim <= value < ndim:
            return <int> (value + ndim if value < 0 else value)
    try:
        value = PyNumber_Index(axis)
    except TypeError:
        raise TypeError(f"{name}: axis: got {type(axis).__name__}; expected an int") from None
    except OverflowError:
        raise AxisError(f"{name}: axis: got {axis}; expected an axis of {ndim} dimensions"
                        ) from None
    if value < -ndim or value >= ndim:
        raise AxisError(f"{name}: axis: got {value}; expected an axis of {ndim} dimensions")
    return <int> (value + ndim if value < 0 else value)


cdef int axes_mask(object axis, int ndim, str name) except -1:
    cdef int mask = 0
    cdef int bit
    if axis is None:
        return (1 << ndim) - 1
    if type(axis) is int:
        if ndim == 0 and -1 <= axis <= 0:       # NumPy and PyTorch reduce numbers along it, too
            return 0
        return 1 << axis_argument(axis, ndim, name)
    for one in axis if isinstance(axis, (tuple, list)) else (axis,):
        bit = 1 << axis_argument(one, ndim, name)
        if mask & bit:
            raise ValueError(f"{name}: axis: got {axis}; expected axis {one} once")
        mask |= bit
    return mask


cdef bint flag_argument(object value, str name, str argument) except -1:
    if value is True or value is False:
        return value is True
    if isinstance(value, np.bool_) or (
            argument == "keepdims" and isinstance(value, (int, np.integer))):
        return bool(value)      # NumPy takes any truth value for keepdims; 1 and 0 are common
    raise TypeError(f"{name}: {argument}: got {value!r:.60}; expected True or False")


cdef object copy_argument(object value, str name):
    if value is None:
        return None
    if value is not True and value is not False and not isinstance(value, np.bool_):
        raise TypeError(f"{name}: copy: got {value!r:.60}; expected True, False or None")
    return bool(value)


def type_name(value):
    """Return the name of a value's type, with its module if it is another library's Tensor.

    >>> type_name(3)
    'int'
    """
    cdef str name = type(value).__name__
    return f"{type(value).__module__}.{name}" if name == "Tensor" else name


cpdef Tensor tensor_argument(object value, str name):
    if type(value) is not Tensor:
        # Functions that `spellings` and `named` return make a tensor of it (array_likes.pxi).
        raise refusal(f"{name}: argument: got {type_name(value)}; expected a Tensor "
                      "(asarray makes one of an array or a number)", value)
    return <Tensor> value


cpdef Tensor written_argument(object value, str name, str argument="out"):
    if type(value) is not Tensor:
        raise TypeError(f"{name}: {argument}: got {type_name(value)}; expected a Tensor, to which "
                        "the result is written")
    return <Tensor> value


def out_argument(out, Tensor like, tuple shape, dtype, str name):
    """Return `out` if it can take a result of `shape` and `dtype` on the device of `like`.

    >>> out_argument(gt.zeros(2, device="host"), gt.zeros(3, device="host"), (3,), "int8", "roll")
    Traceback (most recent call last):
        ...
    ValueError: roll: out: got shape (2,); expected (3,), that of the result
    """
    cdef int64_t[16] extents
    cdef int ndim = shape_argument(shape, extents)
    if type(out) is Tensor and (<Tensor> out).storage.device != like.storage.device:
        on_one_device(name, (like,), out)
    return checked_out(name, out, ndim, extents, dtype_argument(dtype, 0))


def may_share(Tensor target, Tensor source):
    """Return whether the two may share bytes, so that a write to one may change the other.

    >>> x = gt.zeros(4, device="host")
    >>> may_share(x[:2], x[2:]), may_share(x[1:], x[:2])
    (False, True)
    """
    cdef uint64_t first, last, source_first, source_last
    tensor_span(target, &first, &last)
    tensor_span(source, &source_first, &source_last)
    return source_first < last and first < source_last
