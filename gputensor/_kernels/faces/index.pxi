# Gather and scatter by integer index arrays.


cdef tuple index_arguments(int device, tuple first, int count, Operand* indices):
    """`first`, followed by the index operands."""
    return first + tuple([call_argument(device, &indices[i]) for i in range(count)])


cdef int check_extents(Operand* whole, int first_axis, int count) except -1 nogil:
    cdef int i
    for i in range(count):
        if whole.shape[first_axis + i] == 0:
            with gil:
                raise IndexError(f"axis {first_axis + i} has no elements to index")
    return 0


cdef int check_unused(int device, uint64_t stream, Operand* whole, int first_axis, int count,
                      Operand* indices) except -1 nogil:
    if has_no_elements(&indices[0]):
        return 0
    check_extents(whole, first_axis, count)
    return executors[device_kind(device)].check_unused(device, stream, whole, first_axis, count,
                                                       indices)


cdef int gather(int device, uint64_t stream, Operand* out, Operand* source, int first_axis,
                int count, Operand* indices) except -1 nogil:
    check_extents(source, first_axis, count)
    return executors[device_kind(device)].gather(device, stream, out, source, first_axis, count,
                                                 indices)


cdef int scatter(int device, uint64_t stream, Operand* target, int first_axis, int count,
                 Operand* indices, Operand* values) except -1 nogil:
    check_extents(target, first_axis, count)
    return executors[device_kind(device)].scatter(device, stream, target, first_axis, count,
                                                  indices, values)


# A CUDA kernel cannot raise, so there is no check.
cdef int cuda_check_unused(int device, uint64_t stream, Operand* whole, int first_axis, int count,
                           Operand* indices) except -1 nogil:
    return 0


cdef int host_check_unused(int device, uint64_t stream, Operand* whole, int first_axis, int count,
                           Operand* indices) except -1 with gil:
    extents = tuple([whole.shape[first_axis + i] for i in range(count)])
    return host_call(device, stream, CHECK_CALL,
                     index_arguments(device, (extents,), count, indices))


cdef int host_gather(int device, uint64_t stream, Operand* out, Operand* source, int first_axis,
                     int count, Operand* indices) except -1 with gil:
    if host_gathered(device, stream, out, source, first_axis, count, indices):
        return 0
    first = (first_axis, call_argument(device, out), call_argument(device, source))
    return host_call(device, stream, GATHER_CALL, index_arguments(device, first, count, indices))


cdef int host_scatter(int device, uint64_t stream, Operand* target, int first_axis, int count,
                      Operand* indices, Operand* values) except -1 with gil:
    first = (first_axis, call_argument(device, target), call_argument(device, values))
    return host_call(device, stream, SCATTER_CALL, index_arguments(device, first, count, indices))
