# Products by cuBLASLt. None of these needs the GIL; load_libraries() came first.

from libc.stdint cimport uint64_t

from gputensor.blas.choice cimport Choice
from gputensor.blas.library cimport LtAlgo, LtHeuristic
from gputensor.blas.plan cimport Plan
from gputensor.blas.product cimport Product

# Loads the library; with the GIL, before anything else here.
cdef int bind_table() except -1
# The library's version as it counts: 120900 is 12.9.
cdef size_t lt_version() noexcept nogil
# Builds the descriptors of `plan` and takes the algorithm of `choice`, or the library's first one
# when there is no choice or it does not fit; a cuBLAS status. On failure nothing is left.
cdef int lt_plan_build(const Product* product, size_t workspace_nbytes, const Choice* choice,
                       Plan* plan) noexcept nogil
# The algorithm that a choice names for a plan's product, with its workspace; a cuBLAS status.
cdef int lt_algo_of(Plan* plan, const Product* product, const Choice* choice,
                    LtHeuristic* result) noexcept nogil
# Writes the configuration of an algorithm into a choice.
cdef int lt_config_of(const LtAlgo* algo, Choice* choice) noexcept nogil
# Frees what lt_plan_build made.
cdef void lt_plan_destroy(Plan* plan) noexcept nogil
# Queues the product on `stream` with the plan.
cdef int lt_run(Plan* plan, const Product* product, uint64_t workspace, size_t workspace_nbytes,
                uint64_t stream) noexcept nogil
# Up to `capacity` algorithms that the library proposes, best first.
cdef int lt_propose(Plan* plan, const Product* product, size_t workspace_nbytes, int capacity,
                    LtHeuristic* results, int* count) noexcept nogil
