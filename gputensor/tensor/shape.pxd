# Views: other shapes and strides over the same memory.

from libc.stdint cimport int64_t

from gputensor.tensor.tensor cimport Tensor

# A view with the axes in another order; `order` holds each axis once.
cdef Tensor permuted(Tensor a, const int* order)
# A view broadcast to a shape that admits it.
cdef Tensor broadcast_view(Tensor a, int ndim, const int64_t* shape)
