# Skinny products by our own kernel (small_m_source.py): y = alpha * x w^T + beta * addend + bias
# for at most 16 rows of x, reading the weights once at the speed of memory.

from libc.stdint cimport int64_t, uint64_t

from gputensor.blas.plan cimport Plan, PlanKey
from gputensor.blas.product cimport Product

cdef enum:
    SMALL_M = 16                # rows of x at most
    SMALL_M_TILE_K = 64         # k of one tile of INT4 weights

cdef enum Form:                 # how the weights lie, as in small_m_source.py
    FORM_ROWS = 0               # [n, k]
    FORM_COLUMNS = 1            # [k, n]
    FORM_INT8 = 2               # [n, k], with scales
    FORM_INT4 = 3               # tiles of 16 x 64, with scales

cdef struct SmallProduct:
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

# Whether the kernel can do the product: types, sizes and alignments.
cdef bint small_product_fits(const SmallProduct* product) noexcept nogil
# Queues it on the stream. Needs the GIL; raises DriverError when the launch is refused.
cdef int small_product_run(const SmallProduct* product, uint64_t stream) except -1

# The same for a product in the libraries' terms, whose D has at most 16 columns.
cdef bint small_m_fits(const Product* product) noexcept nogil
# The plan of a product for which it is expected to be the quickest way; NULL for any other, and
# where nothing compiles kernels. The plan is the caller's until plan_insert takes it. Needs the
# GIL.
cdef Plan* small_m_plan(const Product* product, const PlanKey* key,
                        uint64_t hash_value) except? NULL
cdef int small_m_run(const Product* product, uint64_t stream) except -1
