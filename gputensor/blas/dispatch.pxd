# Between a Product and the libraries: who plans it, who runs it. Nothing but dispatch_load needs
# the GIL; the device's context must be current.

from libc.stdint cimport uint64_t

from gputensor._kernels.dtypes cimport KIND_INT, KIND_UINT, dtype_kind
from gputensor.blas.choice cimport Choice
from gputensor.blas.plan cimport Plan, PlanKey
from gputensor.blas.product cimport Product
from gputensor.blas.workspace cimport Workspace

# Loads both libraries and settles the device's workspace size, once.
cdef int dispatch_load(int device) except -1
cdef bint dispatch_is_loaded(int device) noexcept nogil
# Whether the library knows float32 emulated by bfloat16; loads it. Needs the GIL.
cdef bint dispatch_emulates(int device) except -1
# The same once the libraries are loaded.
cdef bint library_emulates() noexcept nogil
# Builds the plan of a product. `choice` may be NULL. NULL and a cuBLAS status on failure. The plan
# is the caller's until plan_insert takes it.
cdef Plan* plan_build(const Product* product, const PlanKey* key, uint64_t hash_value,
                      int preference, const Choice* choice, int* status) noexcept nogil
cdef void plan_destroy(Plan* plan) noexcept nogil
# Queues one repetition of the product by the plan's library; a cuBLAS status.
cdef int plan_run(Plan* plan, const Product* product, const Workspace* workspace,
                  uint64_t stream) noexcept nogil
# To call when a call is done with its plan: destroys one that found no place in the table.
cdef void plan_drop(Plan* plan) noexcept nogil

cdef inline bint is_integer(int dtype) noexcept nogil:
    return dtype_kind(dtype) == KIND_INT or dtype_kind(dtype) == KIND_UINT
