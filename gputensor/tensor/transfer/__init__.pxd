# The functions of tensor/transfer that other rooms may call; each section is named after its part.

from libc.stdint cimport uint64_t

from gputensor.tensor.core cimport Tensor

# ---- host

# Copies between NumPy arrays and tensors, and between devices.

# A new tensor on `device` with the values of a NumPy array, which are first cast to the DType
# `dtype`. The array may change as soon as the call returns.
cdef Tensor upload(object array, int dtype, int device)
# A new NumPy array with the tensor's values; waits for the device.
cdef object download(Tensor source)
# A copy on another device.
cdef Tensor moved(Tensor source, int device)
