# Searching cuBLASLt's algorithms for the tuner. Everything here needs the GIL.

from gputensor.blas.plan cimport Plan
from gputensor.blas.product cimport Product

# The configurations, as tuples, that the library proposes with much, little and no workspace, its
# best first.
cdef list lt_proposals(Plan* plan, const Product* product, size_t workspace_nbytes)
# The configurations of every algorithm with every tile, stage count and split that fits the
# product, as far as the time until `deadline` (of time.monotonic) goes.
cdef list lt_enumerate(Plan* plan, const Product* product, size_t workspace_nbytes,
                       double deadline)
# Those that differ from a configuration in one attribute and fit.
cdef list lt_neighbours(Plan* plan, const Product* product, size_t workspace_nbytes, tuple config,
                        double deadline)
