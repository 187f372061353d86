# Gather and scatter by integer index arrays (see index.pxd).


cdef tuple index_arguments(int device, tuple first, int count, Operand* indices):
    """`first` and the index operands."""
    return first + tuple([call_argument(device, &indices[i]) for i in range(count)])


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
    extents = tuple([whole.shape[first_axis + i] for i in range(count)])
    return host_call(device, stream, CHECK_CALL,
                     index_arguments(device, (extents,), count, indices))


cdef int gather(int device, uint64_t stream, Operand* out, Operand* source, int first_axis,
                int count, Operand* indices) except -1:
    check_extents(source, first_axis, count)
    if not is_host(device):
        return cuda_gather(device, stream, out, source, first_axis, count, indices)
    first = (first_axis, call_argument(device, out), call_argument(device, source))
    return host_call(device, stream, GATHER_CALL, index_arguments(device, first, count, indices))


cdef int scatter(int device, uint64_t stream, Operand* target, int first_axis, int count,
                 Operand* indices, Operand* values) except -1:
    check_extents(target, first_axis, count)
    if not is_host(device):
        return cuda_scatter(device, stream, target, first_axis, count, indices, values)
    first = (first_axis, call_argument(device, target), call_argument(device, values))
    return host_call(device, stream, SCATTER_CALL, index_arguments(device, first, count, indices))
