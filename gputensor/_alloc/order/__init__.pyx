# Freed blocks: how they go back to their pools, and when, if other streams use them or a capture
# frees them.

from libc.stdint cimport uint64_t, uint8_t
from libc.stdlib cimport calloc, free, malloc, realloc

from gputensor._alloc.core cimport *
from gputensor._alloc.history cimport block_event_completed, history_enabled, view_event_close
from gputensor._alloc.model cimport *
from gputensor._driver.table cimport STATUS_OK, STATUS_OUT_OF_MEMORY, Driver, status_t

include "returns.pxi"
include "capture_reuse.pxi"
include "deferred_free.pxi"
