# Odd products of small and middle size by a kernel of our own that takes matrices of any alignment
# as they are: see direct.pyx for which and why.

from libc.stdint cimport uint64_t

from gputensor.blas.plan cimport Plan, PlanKey
from gputensor.blas.product cimport Product

# The plan of an odd product that the kernel is expected to be quickest with; NULL for any other,
# and where nothing compiles it. The plan is the caller's until plan_insert takes it. Needs the GIL;
# compiles on first use.
cdef Plan* direct_plan(const Product* product, const PlanKey* key,
                       uint64_t hash_value) except? NULL
# Queues one repetition: one launch, nothing allocated, no object made.
cdef int direct_run(const Plan* plan, const Product* product, uint64_t stream) except -1
