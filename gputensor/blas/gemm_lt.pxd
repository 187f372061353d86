# Products by cuBLASLt. None of these needs the GIL; load_libraries() came first.

from libc.stdint cimport uint64_t

from gputensor.blas.library cimport LtHeuristic
from gputensor.blas.plan cimport Plan
from gputensor.blas.product cimport Product

# Loads the library; with the GIL, before anything else here.
cdef int bind_table() except -1
# Builds the descriptors of `plan` and picks the library's first algorithm; a cuBLAS status. On
# failure nothing is left.
cdef int lt_plan_build(const Product* product, size_t workspace_nbytes, Plan* plan) noexcept nogil
# Frees what lt_plan_build made.
cdef void lt_plan_destroy(Plan* plan) noexcept nogil
# Queues the product on `stream` with the plan.
cdef int lt_run(Plan* plan, const Product* product, uint64_t workspace, size_t workspace_nbytes,
                uint64_t stream) noexcept nogil
# Up to `capacity` algorithms that the library proposes, best first.
cdef int lt_propose(Plan* plan, const Product* product, size_t workspace_nbytes, int capacity,
                    LtHeuristic* results, int* count) noexcept nogil
