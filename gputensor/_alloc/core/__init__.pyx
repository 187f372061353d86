# Blocks, segments, pages and pools of one device, with the locks and counts that guard them. This
# room finds and returns free memory; when to get more from the driver is decided in grow, and when
# to wait, in miss. The structs and their equations are in ../model.pxd.

from libc.stdint cimport int32_t, int64_t, uint32_t, uint64_t
from libc.stdlib cimport calloc, free, realloc
from libc.string cimport memset

from gputensor._alloc.history cimport stack_of_request
from gputensor._alloc.model cimport *
from gputensor._driver.registry cimport Slot, device_slot, register_slot
from gputensor._driver.table cimport HOST_DEVICES, STATUS_OK, status_t

include "check_hook.pxi"
include "in_flight.pxi"
include "statistics.pxi"
include "progress.pxi"
include "bins.pxi"
include "block.pxi"
include "segment.pxi"
include "pool.pxi"
include "thread_cache.pxi"
include "owned_streams.pxi"
