# A planned product on its stream, once or for each index tuple of its outer dimensions.

from libc.stdint cimport uint64_t

from gputensor.blas.plan cimport Plan
from gputensor.blas.product cimport Product
from gputensor.blas.workspace cimport Workspace

# Queue the product; a cuBLAS status. `workspace` may be NULL for kernels of our own; `scratch` is
# the table of a pointer-array call, or the tiles of a packed product.
cdef int repeat_product(Plan* plan, Product* product, const Workspace* workspace, uint64_t stream,
                        uint64_t scratch) except -1
