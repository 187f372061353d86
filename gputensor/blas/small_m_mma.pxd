# Skinny products with 16-bit x on tensor cores (skinny_mma.cuh): plain, int8 or int4
# weights.

from libc.stdint cimport uint64_t

from gputensor.blas.small_product cimport SmallDevice, SmallProduct

# Compiles the kernel for a product; 0 with an exception where nothing compiles kernels. Needs the
# GIL, as does the next.
cdef int mma_prepare(const SmallProduct* product, const SmallDevice* device) except -1
# Queues a product that small_product_fits on the stream.
cdef int mma_run(const SmallProduct* product, const SmallDevice* device, uint64_t stream) except -1
