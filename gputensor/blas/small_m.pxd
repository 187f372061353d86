# Skinny products by our own kernels (skinny.cuh, skinny_mma.cuh): at most 16 rows of
# x, the weights read once at the speed of memory.

from libc.stdint cimport uint64_t

from gputensor.blas.plan cimport Plan, PlanKey
from gputensor.blas.product cimport Product
from gputensor.blas.small_product cimport SmallProduct

# Whether a kernel can do the product: types, sizes and alignments.
cdef bint small_product_fits(const SmallProduct* product) noexcept nogil
# Queues it on the stream. Needs the GIL; raises DriverError when the launch is refused.
cdef int small_product_run(const SmallProduct* product, uint64_t stream) except -1

# The same for a product in the libraries' terms, whose D has at most 16 columns.
cdef bint small_m_fits(const Product* product) noexcept nogil
# The plan of a product for which it is expected to be the quickest way; NULL for any other, and
# where nothing compiles kernels. The plan is the caller's until plan_insert takes it. Needs the
# GIL.
cdef Plan* small_m_plan(const Product* product, const PlanKey* key,
                        uint64_t hash_value) except? NULL
cdef int small_m_run(const Product* product, uint64_t stream) except -1
