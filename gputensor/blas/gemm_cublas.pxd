# Products by cuBLAS, for what cuBLASLt does not do and for who prefers it. C and D are one matrix.

from libc.stdint cimport int64_t, uint64_t

from gputensor.blas.product cimport Product

# Loads the library; with the GIL, before anything else here.
cdef int bind_cublas() except -1
# Queues the product on `stream`; a cuBLAS status.
cdef int cublas_run(const Product* product, uint64_t workspace, size_t workspace_nbytes,
                    uint64_t stream) noexcept nogil
# The same for `total` products of one geometry whose addresses are on the device: `total` of A,
# then of B, then of D.
cdef int cublas_run_pointers(const Product* product, int64_t total, uint64_t table,
                             uint64_t workspace, size_t workspace_nbytes,
                             uint64_t stream) noexcept nogil
# The same for `total` products of one type and precision, each of its own geometry.
# BLAS_NOT_SUPPORTED when the library does not have it.
cdef int cublas_run_grouped(const Product* products, int64_t total, uint64_t table,
                            uint64_t workspace, size_t workspace_nbytes,
                            uint64_t stream) noexcept nogil
