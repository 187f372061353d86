# What other rooms may call of blas/backends; each section is named after its part.

from libc.stdint cimport uint64_t

from gputensor._arrays cimport KIND_INT, KIND_UINT, dtype_kind
from gputensor.blas.libraries cimport Workspace
from gputensor.blas.plan cimport Choice, Plan, PlanKey, Product

# ---- dispatch

# Between a Product and the libraries: who plans it, who runs it. Nothing but dispatch_load needs
# the GIL; the device's context must be current.

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


# ---- own_kernels

# Plans of products that go to kernels of our own. Needs the GIL; compiles kernels on first use.

# Whether a Backend of plan.pxd is a kernel of ours that competes with the libraries.
cdef bint is_own(int backend) noexcept nogil
# The plan by one of our kernels; NULL when that is not expected to be the quickest way, and where
# nothing compiles kernels. The plan is the caller's until plan_insert takes it.
cdef Plan* own_plan(int backend, const Product* product, const PlanKey* key,
                    uint64_t hash_value) except? NULL
# Scratch memory of one run of a plan.
cdef size_t own_scratch_nbytes(const Plan* plan, const Product* product) noexcept nogil


# ---- repetition

# A planned product on its stream, once or for each index tuple of its outer dimensions.

# Queue the product; a cuBLAS status. `workspace` may be NULL for kernels of our own; `scratch` is
# the table of a pointer-array call, or the tiles of a packed product.
cdef int repeat_product(Plan* plan, Product* product, const Workspace* workspace, uint64_t stream,
                        uint64_t scratch) except -1


# ---- plan_build

# Planning on a miss of the plan table: with the GIL, where tuning has its say.

# Builds the plan of a product by what tuning knows of it, else by model and heuristic, and puts it
# into the table. `stream` is where the product will run.
cdef Plan* plan_now(const Product* product, const PlanKey* key, uint64_t hash_value,
                    int preference, uint64_t stream) except NULL
# A product in words, for messages.
cdef str product_facts(const Product* product)
