# Gather and scatter by integer index arrays (see index.pxd).

cdef object host_gather = host_index.run_gather
cdef object host_scatter = host_index.run_scatter
cdef object host_check = host_index.run_check


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
    check_extents(source, first_axis, count)
    if not is_host(device):
        return cuda_gather(device, stream, out, source, first_axis, count, indices)
    views = tuple([host_view(&indices[i]) for i in range(count)])
    return host_call(device, stream, host_gather,
                     (host_view(out), host_view(source), first_axis, views))


cdef int scatter(int device, uint64_t stream, Operand* target, int first_axis, int count,
                 Operand* indices, Operand* values) except -1:
    cdef int i
    check_extents(target, first_axis, count)
    if not is_host(device):
        return cuda_scatter(device, stream, target, first_axis, count, indices, values)
    views = tuple([host_view(&indices[i]) for i in range(count)])
    return host_call(device, stream, host_scatter,
                     (host_view(target), first_axis, views, host_view(values)))
