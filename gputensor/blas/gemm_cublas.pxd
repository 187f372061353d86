# Products by cuBLAS, for what cuBLASLt does not do and for who prefers it. C and D are one matrix.

from libc.stdint cimport uint64_t

from gputensor.blas.product cimport Product

# Loads the library; with the GIL, before anything else here.
cdef int bind_cublas() except -1
# Queues the product on `stream`; a cuBLAS status.
cdef int cublas_run(const Product* product, uint64_t workspace, size_t workspace_nbytes,
                    uint64_t stream) noexcept nogil
