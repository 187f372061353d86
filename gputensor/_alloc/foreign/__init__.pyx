# The allocator for foreign callers: C symbols for pluggable allocators, raw addresses for Python.

from libc.stdint cimport uint64_t
from libcpp.vector cimport vector

from operator import index

from gputensor._alloc.allocator cimport (
    LiveBlock, allocator_find, allocator_free, allocator_malloc, allocator_record_stream,
    explain_failure, pool_live, pool_new_id, pool_take_at, pool_use_count,
)
from gputensor._alloc.core cimport block_map_find, device_lock, device_unlock
from gputensor._alloc.model cimport *
from gputensor._driver.registry cimport driver_open
from gputensor._driver.table cimport STATUS_INVALID_VALUE, Driver, status_t

from gputensor._alloc.history import StackFormatter
from gputensor.errors import raise_for_status

include "c_interface.pxi"
include "raw_memory.pxi"
