# Tensors over memory of somebody else.

from libc.stdint cimport int64_t, uint64_t

from gputensor.tensor.tensor cimport Tensor

# What a producer says of its memory. Nothing in it is trusted before `foreign_tensor` or
# `layout_check` has passed it.
cdef struct Layout:
    uint64_t ptr            # address of element [0, ..., 0]
    int dtype               # a DType of _kernels/operand.pxd
    int ndim                # 0 to MAX_NDIM
    bint has_strides        # False: row-major
    int64_t[16] shape
    int64_t[16] strides     # in elements

# Read a tuple or list of extents, or of strides in bytes (None: row-major; call it after the
# shape). `source` names the protocol in messages: TypeError for what is no sequence of ints,
# ValueError for wrong lengths, negative extents and strides that split elements.
cdef int layout_shape(Layout* layout, object shape, str source) except -1
cdef int layout_strides(Layout* layout, object strides, str source) except -1
# ValueError when the layout has negative extents, more elements than there are addresses, memory
# outside the address space, or an address that is no multiple of the element size. Empty layouts
# get address 0; strides of axes with fewer than two elements say nothing and are replaced.
cdef int layout_check(Layout* layout, str source) except -1
# A tensor over `owner`'s memory, after `layout_check`.
cdef Tensor foreign_tensor(int device, Layout* layout, object owner, bint is_readonly, str source)
# ValueError when an array that NumPy made of an object leaves the buffer that it lies in.
cdef int check_inside_buffer(object array, str source) except -1
# The host device that imported host memory belongs to: the current one, or the embedded one.
cdef int host_home() except? -1000
# Order the coming use of a tensor by others, which may write unless the memory is read-only.
cdef int prepare_export(Tensor t, uint64_t stream) except -1
# Our handle of a stream number of DLPack and the CUDA array interface.
cdef uint64_t stream_of_protocol(object stream, str source) except? 0xFFFFFFFF
