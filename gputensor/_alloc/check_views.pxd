# The check of views, after tiles_check.

from gputensor._alloc.check_tiles cimport Walk
from gputensor._alloc.model cimport DeviceAllocator

# Invariants 7 and 8 of DESIGN.md. Adds the blocks in views to the sums.
cdef void views_check(DeviceAllocator* a, Walk* walk) noexcept nogil
