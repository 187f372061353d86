# Plans of products that go to kernels of our own. Needs the GIL; compiles kernels on first use.

from libc.stdint cimport uint64_t

from gputensor.blas.plan cimport Plan, PlanKey
from gputensor.blas.product cimport Product

# Whether a Backend of plan.pxd is a kernel of ours that competes with the libraries.
cdef bint is_own(int backend) noexcept nogil
# The plan by one of our kernels; NULL when that is not expected to be the quickest way, and where
# nothing compiles kernels. The plan is the caller's until plan_insert takes it.
cdef Plan* own_plan(int backend, const Product* product, const PlanKey* key,
                    uint64_t hash_value) except? NULL
# Scratch memory of one run of a plan.
cdef size_t own_scratch_nbytes(const Plan* plan, const Product* product) noexcept nogil
