# Gather and scatter by integer index arrays (see index.pxd).

cdef object host_gather = host_index.run_gather
cdef object host_scatter = host_index.run_scatter
cdef object host_check = host_index.run_check


cdef int check(Operand* small, Operand* whole, int first_axis, int count,
               Operand* indices) except -1:
    # `small` has the shape whole[:first] + indices + whole[first + count:]. Returns 1 when it has
    # elements.
    cdef int axis, i, ndim = indices[0].ndim
    cdef int has_elements = 1
    cdef int64_t expected
    if count < 1 or first_axis < 0 or first_axis + count > whole.ndim:
        raise ValueError(f"{count} index arrays from axis {first_axis} on do not fit an array of "
                         f"{whole.ndim} axes")
    if small.dtype != whole.dtype:
        raise TypeError("both sides of gather and scatter have one dtype")
    if small.ndim != whole.ndim - count + ndim:
        raise ValueError(f"the indexed side has {small.ndim} axes instead of "
                         f"{whole.ndim - count + ndim}")
    for i in range(count):
        if dtype_kind(indices[i].dtype) != KIND_INT and dtype_kind(indices[i].dtype) != KIND_UINT:
            raise TypeError("index arrays have an integer dtype")
        if indices[i].ndim != ndim:
            raise ValueError("index arrays have one common shape")
        for axis in range(ndim):
            if indices[i].shape[axis] != indices[0].shape[axis]:
                raise ValueError("index arrays have one common shape")
    for axis in range(small.ndim):
        if axis < first_axis:
            expected = whole.shape[axis]
        elif axis < first_axis + ndim:
            expected = indices[0].shape[axis - first_axis]
        else:
            expected = whole.shape[axis - ndim + count]
        if small.shape[axis] != expected:
            raise ValueError(f"the indexed side has length {small.shape[axis]} along axis {axis} "
                             f"instead of {expected}")
        if expected == 0:
            has_elements = 0
    if has_elements:
        check_extents(whole, first_axis, count)
    return has_elements


cdef int check_extents(Operand* whole, int first_axis, int count) except -1:
    cdef int i
    for i in range(count):
        if whole.shape[first_axis + i] == 0:
            raise IndexError(f"axis {first_axis + i} has no elements to index")
    return 0


cdef int check_unused(int device, uint64_t stream, Operand* whole, int first_axis, int count,
                      Operand* indices) except -1:
    cdef int i
    for i in range(indices[0].ndim):
        if indices[0].shape[i] == 0:
            return 0
    check_extents(whole, first_axis, count)
    if not is_host(device):
        return 0
    views = tuple([host_view(&indices[i]) for i in range(count)])
    extents = tuple([whole.shape[first_axis + i] for i in range(count)])
    return host_call(device, stream, host_check, (extents, views))


cdef int gather(int device, uint64_t stream, Operand* out, Operand* source, int first_axis,
                int count, Operand* indices) except -1:
    cdef int i
    if not check(out, source, first_axis, count, indices):
        return 0
    if not is_host(device):
        return cuda_gather(device, stream, out, source, first_axis, count, indices)
    views = tuple([host_view(&indices[i]) for i in range(count)])
    return host_call(device, stream, host_gather,
                     (host_view(out), host_view(source), first_axis, views))


cdef int scatter(int device, uint64_t stream, Operand* target, int first_axis, int count,
                 Operand* indices, Operand* values) except -1:
    cdef int i
    if not check(values, target, first_axis, count, indices):
        return 0
    if not is_host(device):
        return cuda_scatter(device, stream, target, first_axis, count, indices, values)
    views = tuple([host_view(&indices[i]) for i in range(count)])
    return host_call(device, stream, host_scatter,
                     (host_view(target), first_axis, views, host_view(values)))
