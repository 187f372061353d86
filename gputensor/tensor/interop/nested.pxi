"""Nested lists and tuples with arrays, tensors and NumPy scalars among their parts.

Their dtypes promote as in NumPy, so no value is narrowed; bfloat16 and float8 count as float32
beside a dtype that does not promote to them. Python numbers are weak: a number of a higher kind
contributes the default dtype of its kind (int64, float32, complex64); other numbers take the dtype
of the arrays. Lists that contain only Python numbers are converted in conversion.pxi.
"""

cdef object numpy_arrays = (np.ndarray, np.generic)
cdef object texts = (str, bytes, bytearray)
# The ranks of dtype kinds, and the default dtype of Python numbers of each rank.
cdef dict RANK = {"b": 0, "i": 1, "u": 1, "f": 2, "c": 3}
cdef tuple DEFAULT = tuple(
    np.dtype(name) for name in ("bool", "int64", "float32", "complex64"))
cdef enum:
    MOST_LEVELS = 17            # one more than a tensor has axes


# Whether a list or tuple contains anything with a dtype of its own.
cdef bint holds_arrays(object obj, int depth=0) except -1:
    cdef object part, kind
    if depth == MOST_LEVELS:
        return False
    for part in obj:
        kind = type(part)
        if kind is float or kind is int or kind is bool or kind is complex:
            continue
        if isinstance(part, (list, tuple)):
            if holds_arrays(part, depth + 1):
                return True
        elif is_array(part):
            return True
    return False


cdef bint is_array(object part) except -1:
    if type(part) is Tensor or isinstance(part, numpy_arrays):
        return True
    if isinstance(part, texts):
        return False
    return (PyObject_CheckBuffer(part) or hasattr(part, "__dlpack__")
            or hasattr(part, "__array__") or hasattr(part, "__array_interface__")
            or hasattr(part, "__cuda_array_interface__"))


cdef object array_of(object part):
    """Return the values of an array, a tensor or a NumPy scalar as a NumPy array."""
    if type(part) is Tensor:
        return download(<Tensor> part)
    if isinstance(part, numpy_arrays):
        return np.asarray(part)
    if hasattr(part, "__dlpack__"):
        return download(from_dlpack(part))   # NumPy's own import lacks bfloat16
    if hasattr(part, "__cuda_array_interface__"):
        return download(from_cuda_array(part))
    return np.asarray(part)


cdef object gathered(object part, set dtypes, list numbers, int depth=0):
    """Return the parts as nested lists; collect their dtypes and the Python numbers."""
    if depth > MOST_LEVELS:
        raise ValueError(f"asarray: obj: got sequences in more than {MOST_LEVELS} levels; expected "
                         "at most 16 dimensions")
    if isinstance(part, (list, tuple)):
        return [gathered(one, dtypes, numbers, depth + 1) for one in part]
    if is_array(part):
        array = array_of(part)
        if not array.dtype.isnative:
            array = array.astype(array.dtype.newbyteorder("="))
        dtype_argument(array.dtype, 0)      # raises for dtypes that no tensor has
        dtypes.add(array.dtype)
        return array
    if number_kind(part) >= 0:
        numbers.append(part)
        return part
    if PySequence_Check(part) and not isinstance(part, texts):
        return [gathered(one, dtypes, numbers, depth + 1) for one in list(part)]
    raise TypeError(f"asarray: obj: got a {type(part).__name__} in a sequence; expected numbers, "
                    "arrays and tensors")


cdef bint takes(object dtype, object other) except -1:
    try:
        return np.promote_types(dtype, other) == dtype
    except TypeError:
        return False


cdef object promoted(object dtypes):
    # NumPy's result for extension types depends on their order.
    for dtype in dtypes:
        if dtype.isbuiltin != 1 and all([takes(dtype, other) for other in dtypes]):
            return dtype
    return np.result_type(*[one if one.isbuiltin == 1 else np.float32 for one in dtypes])


cdef object common_dtype(set dtypes, set kinds):
    dtype = promoted(dtypes)
    rank = RANK.get(dtype.kind, 2)          # 2: bfloat16 and float8
    weakest = max(kinds, default=0)
    return dtype if weakest <= rank else promoted([dtype, DEFAULT[weakest]])


# Returns (array, parts): the parts as one NumPy array of their common dtype, and as nested lists of
# numbers and NumPy arrays. TypeError for parts that are neither.
cdef tuple joined(object obj):
    cdef set dtypes = set()
    cdef list numbers = []
    parts = gathered(obj, dtypes, numbers)
    dtype = common_dtype(dtypes, {number_kind(one) for one in numbers})
    if dtype.kind in "iu" and numbers:
        whole_number(min(numbers), dtype_argument(dtype, 0))
        whole_number(max(numbers), dtype_argument(dtype, 0))
    return np.array(parts, dtype=dtype), parts
