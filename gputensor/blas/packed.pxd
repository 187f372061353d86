# Large products of matrices that are not aligned, on Hopper, by our own kernel: both operands are
# packed into tiles, and the product is written straight into its place.

from libc.stdint cimport uint64_t

from gputensor.blas.plan cimport Plan, PlanKey
from gputensor.blas.product cimport Product

# The plan of a product for which this is expected to be the quickest way; NULL for any other, and
# where nothing compiles kernels. The plan is the caller's until plan_insert takes it. Needs the
# GIL; compiles on first use.
cdef Plan* packed_plan(const Product* product, const PlanKey* key,
                       uint64_t hash_value) except? NULL
# The scratch memory of one run, which repetitions share.
cdef size_t packed_nbytes(const Product* product) noexcept nogil
# Queues one repetition: two launches for each matrix of the batch.
cdef int packed_run(const Plan* plan, const Product* product, uint64_t scratch,
                    uint64_t stream) except -1
