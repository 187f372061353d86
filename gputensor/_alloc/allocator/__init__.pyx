# The allocator of each open device: malloc and free, private pools, opening and closing.

from libc.stdint cimport SIZE_MAX, uint32_t, uint64_t
from libc.stdlib cimport calloc, free
from libcpp.vector cimport vector

from gputensor._alloc.config cimport (
    BACKEND_NATIVE, AllocatorConfig, config_of_device, config_roundup, settings_to_struct,
)
from gputensor._alloc.core cimport *
from gputensor._alloc.grow cimport (
    collect_for_capture, miss_serve, pool_is_retired, release_all, retired_pool_drop,
    retired_pools_settle, synchronize_all, uncached_free, uncached_malloc, uncached_release,
)
from gputensor._alloc.history cimport (
    HISTORY_STACK_ALLOC, HISTORY_STACK_FREE, block_event_alloc, block_event_free, history_enabled,
    stack_for_request,
)
from gputensor._alloc.model cimport *
from gputensor._alloc.order cimport (
    block_return, capture_reuse_collect, pending_add, pending_poll, pending_resume, use_add,
)
from gputensor._driver.registry cimport Slot, device_slot, driver_get, driver_open, register_slot
from gputensor._driver.table cimport (
    HOST_DEVICES, MAX_DEVICES, STATUS_CAPTURE_UNSUPPORTED, STATUS_INVALID_DEVICE,
    STATUS_INVALID_VALUE, STATUS_NOT_FOUND, STATUS_OK, STATUS_OUT_OF_MEMORY, Driver, status_t,
)

from gputensor._alloc.config import settings as _settings
from gputensor._driver.environment import switch
from gputensor.errors import raise_for_status

include "devices.pxi"
include "private_pool.pxi"
include "central.pxi"
include "allocator.pxi"
include "checkpoint.pxi"
