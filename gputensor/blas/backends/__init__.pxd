# The parts of blas/backends that other rooms may call; each section is named after its file.

from libc.stdint cimport int64_t, uint64_t

from gputensor._arrays cimport KIND_INT, KIND_UINT, dtype_kind
from gputensor._driver.registry cimport DeviceFacts
from gputensor.blas.libraries cimport Workspace
from gputensor.blas.plan cimport Choice, Plan, PlanKey, Product

# ---- work

# Planned work on its way to a stream. `products` is one product, or the `count` of a grouped call.
cdef struct Work:
    Plan* plan
    Product* products
    int64_t count
    uint64_t stream
    uint64_t scratch            # memory of `scratch_nbytes(plan, product)`; 0: none
    Workspace workspace         # of library calls; work_queue fills it

# Which step failed, with a status of cuBLAS for STAGE_LIBRARY and of the driver for the others.
cdef enum Stage:
    STAGE_DONE = 0
    STAGE_WORKSPACE = 1
    STAGE_CONTEXT = 2
    STAGE_LIBRARY = 3

cdef struct Outcome:
    Stage stage
    int status

cdef void work_init(Work* work, Plan* plan, Product* products, uint64_t stream) noexcept nogil
# Takes a workspace where the plan needs one, and queues the work: once, or for each index tuple of
# the product's outer dimensions. Raises the errors of our own kernels' launches.
cdef int work_queue(Work* work, Outcome* outcome) except -1 nogil
# The same in the current context, with the workspace of `work`; returns a cuBLAS status.
cdef int work_launch(Work* work) except -1 nogil
# Raises for an outcome that is not STAGE_DONE.
cdef int raise_for_outcome(const Work* work, const Outcome* outcome) except -1 with gil

cdef inline bint is_integer(int dtype) noexcept nogil:
    return dtype_kind(dtype) == KIND_INT or dtype_kind(dtype) == KIND_UINT


# ---- table

# A backend is one way to compute products: a library's call or a kernel of ours. table.pxi has a
# row for each. Every function may be called without the GIL.

cdef enum:                      # steps of an epilogue that a launch does, besides alpha and beta
    DOES_BIAS = 1
    DOES_ACTIVATION = 2
    DOES_ADDEND = 4             # beta multiplies a C that is not D
    DOES_ALL = 7

cdef enum Role:
    ROLE_LIBRARY = 0            # computes the other products, in a context, with a workspace
    ROLE_OWN = 1                # a kernel of ours that competes with the libraries
    ROLE_OWN_FIRST = 2          # the same, preferred to the algorithms measured on the device
    ROLE_GROUP = 3              # for many products at once; planned by its caller

cdef struct Backend:
    const char* name
    const char* call            # the call that errors name
    int number                  # in plans and in files of tuned results; never reassigned
    Role role
    int epilogues               # DOES_*
    # `can`: whether the launch computes this product at all. `wins`: whether it is expected to be
    # the quickest way. Each model compares with the libraries for its own products, and not with
    # other models, so planning takes the first row that wins.
    bint (*can)(const Product* product) except -1 nogil
    bint (*wins)(const Product* product) except -1 nogil
    # Completes the plan: descriptors, algorithm or kernel. Returns a cuBLAS status,
    # BLAS_NOT_SUPPORTED where there is no algorithm or the kernel cannot be compiled.
    int (*build)(const Product* product, const Choice* choice, Plan* plan) except -1 nogil
    size_t (*scratch)(const Plan* plan, const Product* product) noexcept nogil
    int (*launch)(const Work* work) except -1 nogil     # one repetition; returns a cuBLAS status

# The row with this number, or NULL.
cdef const Backend* backend_of(int number) noexcept nogil
cdef bint is_own(int number) noexcept nogil
# Scratch memory of one run of a plan.
cdef size_t scratch_nbytes(const Plan* plan, const Product* product) noexcept nogil


# ---- planning

cdef enum:
    # The product without padding, by a library: no kernel is compiled, and tuning is not consulted.
    # The keys of such plans have this bit in their preference, which keeps them apart from others.
    PLAN_PLAIN = 8

# The request for a plan: wanted_init fills the first four fields, plan_known the rest.
cdef struct Wanted:
    Product* product
    int preference              # a Library
    int limits                  # PLAN_PLAIN or 0
    # The result of tuning, or, with PLAN_PLAIN, a pinned algorithm; NULL: models decide.
    const Choice* choice
    PlanKey key
    uint64_t hash

cdef void wanted_init(Wanted* wanted, Product* product, int preference,
                      int limits) noexcept nogil
# The plan of a product, from the table; if it is not there, it is made by the results of tuning, or
# by models and heuristics, and put into the table. Returns NULL, and an outcome, where no library
# plans it. `stream` is the stream on which the product will run. Takes the GIL to load libraries,
# to compile a kernel, and where tuning has to measure or note the product. A compute type that the
# library lacks becomes float32's.
cdef Plan* plan_of(Wanted* wanted, uint64_t stream, Outcome* outcome) except? NULL nogil
cdef int raise_for_plan(const Product* product, const Outcome* outcome) except -1 with gil
# The plan in the table, or NULL. If there is one, the device's libraries are loaded.
cdef Plan* plan_known(Wanted* wanted) noexcept nogil
# Builds the plan of a product with the libraries, and does not put it into the table. Returns NULL,
# and an outcome, on failure.
cdef Plan* plan_build(const Wanted* wanted, Outcome* outcome) except? NULL nogil
# The same with one of our kernels; NULL where it is not expected to be the quickest way, and where
# it cannot be compiled.
cdef Plan* own_plan(int number, const Wanted* wanted) except? NULL nogil
cdef void plan_destroy(Plan* plan) noexcept nogil
# Called when a call is done with its plan: destroys a plan that found no place in the table.
cdef void plan_drop(Plan* plan) noexcept nogil
# A product in words, for messages.
cdef str product_facts(const Product* product)

# Loads both libraries and settles the device's workspace size, once. The second takes the GIL.
cdef int libraries_load(int device) except -1
cdef int load_for_planning(int device) except -1 with gil
cdef bint libraries_are_loaded(int device) noexcept nogil


# ---- described

# Products that a phantom GPU kept: `Product`s of one repetition, without a device.

# Whether the types, operations and extents of one from a file are valid.
cdef bint described_is_sound(const Product* given) noexcept nogil
# Plans it with the libraries, unless its plan is known, and queues it.
cdef int described_queue(int device, uint64_t stream, const Product* given) except -1 nogil


# ---- pointers

# Batches that no single stride describes, as one call with arrays of addresses on the device.

# Whether the repetitions of a product (its `outer` dimensions) should be one pointer-array call.
# Pure arithmetic.
cdef bint pointer_batch_wins(const Product* product) noexcept nogil
# Whether the library takes matrices at these addresses by pointer.
cdef bint pointers_are_aligned(const Product* product, int a, int b, int d) noexcept nogil
# Compiles the kernel that writes the table; False where no kernel can be compiled.
cdef bint pointer_batch_ready(int device) except -1 nogil
# A plan for the grouped call of `work`, whose scratch is a table of this size.
cdef void grouped_plan(const Product* products, Plan* plan) noexcept nogil
cdef size_t grouped_table_nbytes(int64_t count) noexcept nogil


# ---- skinny

# A skinny product as our own kernels take it: y = alpha * x w^T + beta * addend + bias for at most
# 16 rows of x. The weights may be quantized.

cdef enum:
    SKINNY_MAX_ROWS = 16        # rows of x at most

cdef enum Form:                 # how the weights lie, as in skinny_mma.cuh
    FORM_PLAIN = 0              # [n, k], of the type of x
    FORM_INT8 = 1               # [n, k], with scales
    FORM_INT4 = 2               # tiles of 16 x 64 (int4_layout.py), with scales

cdef enum Pairs:                # how two features belong together, as in pairs.cuh
    PAIRS_NONE = 0
    PAIRS_GATED = 1
    PAIRS_ROTATED = 2

# The steps before and after a product; all zeros: none.
cdef struct SkinnyFusion:
    uint64_t gain               # [k] of type_x, if x is normalized first; else 0
    uint64_t shift              # [k], added to normalized rows; or 0
    float epsilon
    int is_centered             # the mean of a row is subtracted first
    int pairs
    int gate                    # ACT_* applied to the result, or to the first feature of a pair
    int64_t pair_count
    uint64_t second_w           # the second features begin here
    uint64_t second_scales
    uint64_t second_bias
    int64_t scales_pitch        # features in a row of scales
    int64_t last                # last row of the weights, counted from w or second_w
    int64_t half                # half the size of a head
    uint64_t cosines            # [m, half] of float32
    uint64_t sines
    uint64_t places             # [m], int32 or int64: rows of keys and values to write to
    uint64_t keys               # [kept, length, 2 half] of type_y, with pitches in elements
    uint64_t values
    int64_t key_head, key_row, value_head, value_row
    int64_t length
    int heads, kept, long_places

cdef struct SkinnyProduct:
    int device
    int form
    int type_x                  # DType codes
    int type_y                  # also of bias and addend
    int group                   # k that share a scale; 0: all
    int64_t m, n, k
    uint64_t x, w, y
    int64_t x_pitch             # elements from row to row
    int64_t w_pitch             # elements; for INT4 tiles from tile row to tile row
    int64_t y_pitch
    int64_t addend_pitch
    uint64_t scales             # [groups, n] of type_x; 0 for plain weights
    uint64_t bias               # [n], or 0
    uint64_t addend             # [m, n]; read when beta is not 0
    float alpha, beta
    int is_turned               # y and addend are [n, m], bias is [m]; float32 only
    int is_steady               # weights and scales may be read before earlier work ends
    SkinnyFusion fused

# Whether a kernel can do the product: types, sizes and alignments.
cdef bint skinny_product_fits(const SkinnyProduct* product) noexcept nogil
# Whether a kernel can do the product together with its fusion.
cdef bint skinny_fusion_fits(const SkinnyProduct* product) noexcept nogil
# Whether our kernel is faster than a library for plain 16-bit weights.
cpdef bint skinny_half_wins(int64_t m, int64_t n, int64_t k) noexcept nogil
# Queues it on the stream; raises DriverError when the launch is refused.
cdef int skinny_product_run(const SkinnyProduct* product, uint64_t stream) except -1 nogil


# ---- panel

# y = activation(r w^T + bias + addend) in 16-bit floats; r is x, normalized if there is a gain.
cdef struct PanelProduct:
    int device
    int type                    # DType code of all operands
    int along_terms             # rows of w are along k, else along n
    int is_steady               # w, gain and shift may be read before earlier work ends
    int is_centered             # the mean of a row is subtracted first
    int gate                    # ACT_* applied to the result
    float epsilon
    int64_t m, n, k
    int64_t x_pitch             # elements from row to row
    int64_t w_pitch
    int64_t y_pitch
    int64_t addend_pitch
    uint64_t x, w, y
    uint64_t gain               # [k], or 0
    uint64_t shift              # the same
    uint64_t bias               # [n], or 0
    uint64_t addend             # [m, n], or 0
    uint64_t normed             # [m, k]: receives the normalized rows, without gaps; or 0

# Queues it on the stream, or returns False where the kernel cannot compute it; raises DriverError
# when the launch is refused.
cdef bint panel_run(const PanelProduct* product, uint64_t stream) except -1 nogil


# ---- doors of the tests' extension

include "../kernels/tiny/door.pxi"
include "../kernels/unaligned/door.pxi"
include "../kernels/packed/door.pxi"
include "../kernels/skinny/door.pxi"
include "../kernels/narrow/door.pxi"
include "../kernels/held/door.pxi"
include "../kernels/panel/door.pxi"
