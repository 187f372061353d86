# A request that no pool can serve: how pools get more memory (new pages and segments, pages that
# move between pools, views that map free pages of several places side by side), and the ways memory
# goes back to the driver. miss.pxi orders the steps by their cost.

from libc.stdint cimport INT64_MAX, SIZE_MAX, int64_t, uint64_t
from libc.stdlib cimport calloc, free, realloc

from gputensor._alloc.config cimport BACKEND_ASYNC
from gputensor._alloc.core cimport *
from gputensor._alloc.history cimport (
    HISTORY_SEGMENT_ALLOC, HISTORY_SEGMENT_FREE, HISTORY_SEGMENT_MAP, HISTORY_SEGMENT_UNMAP,
    history_enabled, history_record, history_segment, stack_of_request, view_event_open,
)
from gputensor._alloc.model cimport *
from gputensor._alloc.order cimport pending_poll, pending_wait_one, view_is_done, view_show
from gputensor._driver.table cimport (
    STATUS_MISALIGNED, STATUS_OK, STATUS_OUT_OF_MEMORY, Driver, status_t,
)

include "page_pool.pxi"
include "plain_growth.pxi"
include "growth.pxi"
include "page_moves.pxi"
include "view_plan.pxi"
include "view.pxi"
include "release.pxi"
include "uncached.pxi"
include "retired_pool.pxi"
include "miss.pxi"
