# Tensors over memory of somebody else.

from libc.stdint cimport int64_t, uint64_t

from gputensor.tensor.tensor cimport Tensor

# A tensor over `owner`'s memory. `strides` are in elements, NULL for row-major. ValueError when
# the address is not a multiple of the element size.
cdef Tensor foreign_tensor(int device, uint64_t ptr, int dtype, int ndim, const int64_t* shape,
                           const int64_t* strides, object owner, bint is_readonly)
# The host device that imported host memory belongs to: the current one, or the embedded one.
cdef int host_home() except? -1000
# Order the coming use of a tensor by others, which may write unless the memory is read-only.
cdef int prepare_export(Tensor t, uint64_t stream) except -1
# Our handle of a stream number of DLPack and the CUDA array interface.
cdef uint64_t stream_of_protocol(object stream) except? 0xFFFFFFFF
