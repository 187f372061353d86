# The check of thread caches, pending frees and statistics, after tiles_check and views_check.

from gputensor._alloc.check_tiles cimport Walk
from gputensor._alloc.model cimport DeviceAllocator

# What lies in caches, waits for streams, bypasses the pools or backs nothing: invariant 3.
cdef void lists_check(DeviceAllocator* a, Walk* walk) noexcept nogil
# The sums of the walk are the statistics, and no peak can be passed unseen: invariants 5 and 6.
cdef void statistics_check(DeviceAllocator* a, Walk* walk) noexcept nogil
