# The checker: derives every invariant of ../model.pxd again. It shares no code with the allocator
# and changes nothing, so a check cannot hide the fault it looks for.

from libc.stdint cimport int64_t, uint64_t
from libc.string cimport memset
from libcpp.memory cimport make_unique, unique_ptr

import os

from gputensor._alloc.allocator cimport allocator_find
from gputensor._alloc.core cimport *
from gputensor._alloc.model cimport *
from gputensor._alloc.pinned cimport pinned_pool_peek

from gputensor._alloc.observe.statistics_names import TYPES

include "tiles.pxi"
include "counts.pxi"
include "views.pxi"
include "checker.pxi"
