# A Plan is everything about a product that does not change from call to call: whether it is padded,
# which library, its descriptors, the algorithm, the workspace. Plans are found by an integer key; a
# hit builds nothing.

from libc.stdint cimport int64_t, uint64_t

from gputensor.blas.library cimport LtAlgo
from gputensor.blas.product cimport Product

cdef enum:
    KEY_WORDS = 14

cdef enum Backend:
    BACKEND_LT = 0
    BACKEND_CUBLAS = 1
    BACKEND_INTEGER = 2         # our own kernel
    BACKEND_TINY = 3            # our own, for tiny products; `handle` is its function
    BACKEND_SMALL_M = 4         # our own, for few columns of D
    BACKEND_PACKED = 5          # our own, for large unaligned products; `handle`: see packed.pyx
    BACKEND_DIRECT = 6          # our own, for small unaligned products; `handle` is its function

# The facts that a plan depends on, packed: sizes, leading dimensions, batch strides, then types,
# operations, compute type, device, epilogue, alignments and flags in two words.
cdef struct PlanKey:
    int64_t words[KEY_WORDS]

cdef struct Plan:
    PlanKey key
    uint64_t hash
    int backend
    int pad                     # PAD_* of pad.pxd; the rest describes the padded product
    void* handle                # the cuBLASLt handle
    void* desc
    void* layout_a
    void* layout_b
    void* layout_c
    void* layout_d
    LtAlgo algo
    size_t workspace_nbytes
    int is_transient            # not in the table: to be destroyed after its call

# The plan of a key, or NULL. No lock; `hash` is plan_hash(key).
cdef Plan* plan_find(const PlanKey* key, uint64_t hash) noexcept nogil
cdef uint64_t plan_hash(const PlanKey* key) noexcept nogil
# False when the table is full (it holds 65,536 plans); the plan stays the caller's then.
cdef bint plan_insert(Plan* plan) noexcept nogil
# The key of a product. `preference` is the library that was asked for.
cdef void plan_key(const Product* product, int preference, PlanKey* key) noexcept nogil
# The alignment in bytes (16 at least matters) of each matrix over all its repetitions.
cdef void product_alignments(const Product* product, int* a, int* b, int* c,
                             int* d) noexcept nogil
# A plan that needs a backend and its handle only; the caller's until plan_insert takes it.
cdef Plan* plan_make(const PlanKey* key, uint64_t hash, int backend, void* handle) except NULL
