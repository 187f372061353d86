# Indexing with arrays: gather, scatter, and index tensors of masks.

from gputensor.tensor.tensor cimport Tensor

# The elements of `a` that index tensors pick on consecutive axes from `first_axis` on.
cdef Tensor gather_tensor(Tensor a, int first_axis, list indices)
# The same elements of `target` take `values`, which broadcast to the shape of that selection.
cdef int scatter_tensor(Tensor target, int first_axis, list indices, Tensor values) except -1
# One int64 tensor for each axis of a mask: where it is true, in row-major order. Waits.
# `values` without leading axes of extent 1 beyond `ndim`, which NumPy lets go in assignments.
cdef Tensor without_leading(Tensor values, int ndim)

cdef list mask_indices(Tensor mask)
# IndexError unless the tensor is of integers.
cdef int check_index_dtype(Tensor index) except -1
