"""Memory of the allocator for the duration of one call."""

cdef void temporaries_init(Temporaries* temporaries, int device, uint64_t stream) noexcept nogil:
    temporaries.device = device
    temporaries.stream = stream
    temporaries.count = 0


cdef status_t take_block(Temporaries* temporaries, size_t nbytes, uint64_t* ptr) noexcept nogil:
    cdef status_t status = STATUS_OK
    cdef Block* block = allocator_malloc(temporaries.device, nbytes, temporaries.stream, &status)
    if block is NULL:
        return status
    temporaries.blocks[temporaries.count] = block
    temporaries.count += 1
    ptr[0] = block.ptr
    return STATUS_OK


cdef int take_memory(Temporaries* temporaries, size_t nbytes, uint64_t* ptr) except -1 nogil:
    cdef status_t status = take_block(temporaries, nbytes, ptr)
    if status != STATUS_OK:
        raise_for_malloc(temporaries.device, nbytes, temporaries.stream, status)
    return 0


cdef bint take_memory_if_any(Temporaries* temporaries, size_t nbytes,
                             uint64_t* ptr) except -1 nogil:
    cdef status_t status = take_block(temporaries, nbytes, ptr)
    if status != STATUS_OK and status != STATUS_OUT_OF_MEMORY:
        raise_for_malloc(temporaries.device, nbytes, temporaries.stream, status)
    return status == STATUS_OK


cdef int take_operand(Temporaries* temporaries, const Operand* like, int dtype,
                      Operand* out) except -1 nogil:
    cdef int64_t size = 1
    cdef int axis
    out.dtype, out.ndim, out.is_scalar = dtype, like.ndim, 0
    for axis in range(like.ndim - 1, -1, -1):
        out.shape[axis] = like.shape[axis]
        out.strides[axis] = size
        size *= like.shape[axis]
    return take_memory(temporaries, <size_t>(size * dtype_itemsize(dtype)), &out.ptr)


cdef void give_back(Temporaries* temporaries, int count) noexcept nogil:
    while temporaries.count > count:
        temporaries.count -= 1
        allocator_free(temporaries.blocks[temporaries.count])


cdef void temporaries_release(Temporaries* temporaries) noexcept nogil:
    give_back(temporaries, 0)
