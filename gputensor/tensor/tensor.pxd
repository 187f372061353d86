# The Tensor type as the rest of the library sees it: a Storage, the address of the first element,
# an element type, a shape and strides. Everything that computes builds Operands from Tensors.

from libc.stdint cimport int64_t, uint64_t

from gputensor._kernels.operand cimport Operand
from gputensor.tensor.storage cimport Storage

# The most elements a tensor may have: the widest has 16 bytes, and more have no addresses.
cdef extern from *:
    """
    #include <cstdint>
    static const int64_t gt_max_size = (int64_t)1 << 58;
    """
    const int64_t MAX_SIZE "gt_max_size"


cdef class Tensor:
    cdef Storage storage
    cdef uint64_t ptr               # address of element [0, ..., 0]
    cdef int dtype_code             # a DType of _kernels/operand.pxd
    cdef int ndim_                  # <= MAX_NDIM
    cdef int is_c_contiguous        # 1 when elements follow each other in row-major order
    cdef int64_t size_              # number of elements
    cdef int64_t shape_[16]
    cdef int64_t strides_[16]       # in elements; 0 or negative in views
    cdef object __weakref__

    # What kernels and products take. The operand is valid while the tensor lives.
    cdef int fill_operand(self, Operand* out) except -1
    # Order the coming read or write on `stream` after earlier uses of the storage on other
    # streams, and tell the allocator of the use. To call before the work is launched; the write
    # form raises ValueError for read-only foreign memory.
    cdef int prepare_read(self, uint64_t stream) except -1
    cdef int prepare_write(self, uint64_t stream) except -1

# A new row-major tensor with undefined contents, on the device's current stream.
cdef Tensor empty_tensor(int dtype, int ndim, const int64_t* shape, int device)
# A tensor over the same storage; strides in elements.
cdef Tensor view_tensor(Tensor base, uint64_t ptr, int ndim, const int64_t* shape,
                        const int64_t* strides)
# The same for any storage and dtype (imported memory, reinterpreted memory).
cdef Tensor tensor_over(Storage storage, uint64_t ptr, int dtype, int ndim, const int64_t* shape,
                        const int64_t* strides)
# The device that two operands share: raises ValueError naming both devices when they do not.
cdef int common_device(Tensor a, Tensor b, str function) except? -1000
# The bytes that a tensor can touch, as [first, last); (ptr, ptr) for an empty one.
cdef void tensor_span(Tensor a, uint64_t* first, uint64_t* last) noexcept
