# Library handles: one cuBLASLt handle for each device (it has no state, so threads share it), one
# cuBLAS handle for each (device, thread).

from libc.stdint cimport uint64_t

# A cuBLAS handle with what it was last told. set_stream drops the workspace, so it comes first.
cdef struct CublasHandle:
    void* handle
    uint64_t stream
    uint64_t workspace
    int math
    int is_bound                # stream and workspace were set at least once

# The device's cuBLASLt handle, made at the first call. NULL and a cuBLAS status when that fails.
cdef void* lt_handle(int device, int* status) noexcept nogil
# This thread's cuBLAS handle for the device, bound to the stream, workspace and math mode.
cdef CublasHandle* cublas_handle(int device, uint64_t stream, uint64_t workspace, size_t nbytes,
                                 int math, int* status) noexcept nogil
# Both tables must have been loaded before: this does so, with the GIL.
cdef int load_libraries(bint with_cublas) except -1
