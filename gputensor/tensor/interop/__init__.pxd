# The functions of tensor/interop that other rooms may call; each section is named after its part.

from libc.stdint cimport int64_t, uint64_t

from gputensor.tensor.core cimport Tensor

# ---- foreign

# Tensors over memory of other libraries.

# A producer's description of its memory. No field is trusted before `foreign_tensor` or
# `layout_check` has accepted it.
cdef struct Layout:
    uint64_t ptr            # address of element [0, ..., 0]
    int dtype               # a DType of _arrays/__init__.pxd
    int ndim                # 0 to MAX_NDIM
    bint has_strides        # False: row-major
    int64_t[16] shape
    int64_t[16] strides     # in elements
