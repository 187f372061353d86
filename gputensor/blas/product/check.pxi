"""The checks that every product passes before memory is allocated, with one wording for each."""

cdef str shape_text(const Operand* operand):
    return str(tuple([operand.shape[axis] for axis in range(operand.ndim)]))


cdef int raise_for_shapes(int status, const Operand* a, const Operand* b,
                          const Operand* out) except -1 with gil:
    shapes = f"{shape_text(a)} @ {shape_text(b)}"
    if status == PREPARE_NO_DIMENSION:
        raise ValueError(f"operands: got shapes {shapes}; expected one dimension or more")
    if status == PREPARE_INNER:
        raise ValueError(f"operands: got shapes {shapes}; expected equal inner dimensions")
    if status == PREPARE_BATCH:
        raise ValueError(f"operands: got shapes {shapes}; expected batch dimensions that broadcast")
    if status == PREPARE_OUT_SHAPE:
        raise ValueError(f"out: got shape {shape_text(out)}; expected that of {shapes}")
    if status == PREPARE_OUT_REPEATS:
        raise ValueError("out: got elements with more than one index (a stride of 0); expected a "
                         "separate place in memory for each")
    raise ValueError(f"operands: got shapes {shapes}; expected a result of at most {MAX_NDIM} "
                     "dimensions")


cdef bint views_overlap(const Operand* one, const Operand* other) except -1 with gil:
    return may_overlap(view_of(one), view_of(other))


cdef int raise_for_overlap(const char* name) except -1 with gil:
    shared = Described(f"memory that it shares with {name.decode()}")
    raise argument_error(ValueError, "out", shared, "memory that no operand uses")


cdef int check_extents(const Operand* out, const Operand* other,
                       const char* name) except -1 nogil:
    cdef uint64_t low, high, other_low, other_high
    extent_of(out, &low, &high)
    extent_of(other, &other_low, &other_high)
    if low < other_high and other_low < high and views_overlap(out, other):
        raise_for_overlap(name)
    return 0


cdef tuple view_of(const Operand* operand):
    cdef int axis
    cdef int64_t itemsize = dtype_itemsize(operand.dtype)
    return (
        operand.ptr,
        itemsize,
        tuple([operand.shape[axis] for axis in range(operand.ndim)]),
        tuple([operand.strides[axis] * itemsize for axis in range(operand.ndim)]),
    )


# Raises the TypeError of check_types.
cdef int raise_for_types(const Operand* a, const Operand* b, const Operand* out) except -1 with gil:
    names = ", ".join(DTYPES[code].name for code in (a.dtype, b.dtype, out.dtype))
    raise TypeError(f"dtypes (a, b, out): got {names}; expected element types that a product "
                    "supports")


# Raises TypeError for element types that no product supports.
cdef int check_types(const Operand* a, const Operand* b, const Operand* out) except -1 nogil:
    """Allow floats, complex and integers; 16-bit floats also into float32; int8 into int32."""
    cdef int dtype = a.dtype
    if dtype != b.dtype:
        raise_for_types(a, b, out)
    if out.dtype == dtype:
        if dtype_is_half(dtype) or dtype == DT_FLOAT32 or dtype == DT_FLOAT64:
            return 0
        if dtype_is_complex(dtype) or is_integer(dtype):
            return 0
    elif out.dtype == DT_FLOAT32 and dtype_is_half(dtype):
        return 0
    elif out.dtype == DT_INT32 and dtype == DT_INT8:
        return 0
    return raise_for_types(a, b, out)
