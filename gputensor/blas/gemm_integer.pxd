# Integer products by a kernel of our own.

from libc.stdint cimport uint64_t

from gputensor.blas.product cimport Product

# Queues the product (without its outer repetitions) on the stream. Needs the GIL.
cdef int integer_run(const Product* product, uint64_t stream) except -1
