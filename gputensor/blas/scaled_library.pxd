# Scaled products by cuBLASLt itself.

from gputensor.blas.scaled cimport ScaledTask
from gputensor.blas.staging cimport Side

# Plans the product of `left` (a) and `right` (b transposed) and takes the memory for it; False when
# the library has no way to compute it, with nothing left behind.
cdef bint library_prepare(ScaledTask* task, Side* left, Side* right) except? False
