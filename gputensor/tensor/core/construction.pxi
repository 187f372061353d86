"""Tensors from a shape and strides, over new or existing memory."""

cdef int describe(Tensor result, int dtype, int ndim, const int64_t* shape,
                  const int64_t* strides) except -1:
    """Set shape, strides and the fields derived from them; NULL strides mean row-major."""
    cdef int i
    cdef int64_t expected = 1
    cdef int64_t most = 1       # elements, counted without the axes of extent 0
    cdef int contiguous = 1
    result.dtype_code = dtype
    result.ndim_ = ndim
    for i in range(ndim - 1, -1, -1):
        result.shape_[i] = shape[i]
        result.strides_[i] = expected if strides is NULL else strides[i]
        if shape[i] != 1 and result.strides_[i] != expected:
            contiguous = 0
        if shape[i] > 0:
            if (most | shape[i]) >> 29 and most > MAX_SIZE // shape[i]:     # divides rarely
                raise ValueError(f"shape: got {tuple([shape[k] for k in range(ndim)])}; expected "
                                 "at most 2**58 elements, counted without the axes of extent 0")
            most *= shape[i]
        expected *= shape[i]
    result.size_ = expected
    result.is_c_contiguous = contiguous or expected == 0
    return 0


cdef Tensor empty_tensor(int dtype, int ndim, const int64_t* shape, int device):
    return empty_on(current_handle(device), dtype, ndim, shape, device)


cdef Tensor empty_on(uint64_t stream, int dtype, int ndim, const int64_t* shape, int device):
    cdef Tensor result = Tensor.__new__(Tensor)
    describe(result, dtype, ndim, shape, NULL)
    result.storage = storage_new(device, <size_t> (result.size_ * dtype_itemsize(dtype)), stream)
    result.ptr = result.storage.ptr
    return result


cdef Tensor tensor_over(Storage storage, uint64_t ptr, int dtype, int ndim, const int64_t* shape,
                        const int64_t* strides):
    cdef Tensor result = Tensor.__new__(Tensor)
    describe(result, dtype, ndim, shape, strides)
    result.storage = storage
    result.ptr = ptr
    return result


cdef Tensor view_tensor(Tensor base, uint64_t ptr, int ndim, const int64_t* shape,
                        const int64_t* strides):
    return tensor_over(base.storage, ptr, base.dtype_code, ndim, shape, strides)
