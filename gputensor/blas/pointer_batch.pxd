# Batches that no single stride describes, as one call with arrays of addresses on the device.

from libc.stdint cimport int64_t, uint64_t

from gputensor.blas.product cimport Product
from gputensor.blas.workspace cimport Workspace

# Whether the repetitions of a product (its `outer` dimensions) are to go as one pointer-array call:
# pure arithmetic.
cdef bint pointer_batch_wins(const Product* product) noexcept nogil
# Whether the library takes matrices at these addresses by pointer.
cdef bint pointers_are_aligned(const Product* product, int a, int b, int d) noexcept nogil
# Compile what writes the table; False where nothing compiles kernels.
cdef bint pointer_batch_ready(int device) except -1
# The bytes of the table.
cdef size_t pointer_batch_nbytes(const Product* product) noexcept nogil
# Write the table and make the call; a cuBLAS status.
cdef int pointer_batch_run(const Product* product, uint64_t table, const Workspace* workspace,
                           uint64_t stream) except -1
# Write a table of `total` products whose addresses are `products[i].a`, `.b`, `.d`.
cdef int pointer_table_write(int device, uint64_t stream, uint64_t table, int64_t total,
                             const Product* products) except -1
