# Tiny products by a kernel of our own: see tiny.pyx for which and why.

from libc.stdint cimport uint64_t

from gputensor.blas.plan cimport Plan, PlanKey
from gputensor.blas.product cimport Product

# The plan of a product that is tiny; NULL for any other, and where nothing compiles kernels. The
# plan is the caller's until plan_insert takes it. Needs the GIL; compiles on first use.
cdef Plan* tiny_plan(const Product* product, const PlanKey* key,
                     uint64_t hash_value) except? NULL
# Queues one repetition: one launch, nothing allocated, no object made.
cdef int tiny_run(const Plan* plan, const Product* product, uint64_t stream) except -1
