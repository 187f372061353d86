# The allocator of each open device: malloc and free, private pools, opening and closing.

from libc.stdint cimport SIZE_MAX, uint32_t, uint64_t
from libc.stdlib cimport calloc, free
from libcpp.vector cimport vector

from gputensor._alloc.config cimport (
    BACKEND_NATIVE, AllocatorConfig, config_of_device, config_roundup, settings_to_struct,
)
from gputensor._alloc.core cimport (
    GT_IS_CHECKED, account_give, account_take, block_map_insert, block_map_remove,
    cache_mine, cache_put, cache_take, caches_drain, caches_forget, check_after,
    checks_resume, checks_stop, device_hold, device_lock, device_lock_counted, device_unlock,
    pool_clear, pool_cut, pool_gather, pool_init, pool_take, progress_synchronize,
    pthread_mutex_init, segment_drop, stat_change,
)
from gputensor._alloc.grow cimport (
    collect_for_capture, miss_serve, pool_is_retired, release_all, retired_pool_drop,
    retired_pools_settle, synchronize_all, uncached_free, uncached_malloc, uncached_release,
)
from gputensor._alloc.history cimport (
    HISTORY_STACK_FREE, block_event_alloc, block_event_free, history_enabled, stack_capture_if,
    stack_capture_if_enabled,
)
from gputensor._alloc.model cimport *
from gputensor._alloc.order cimport (
    block_return, pending_add, pending_poll, pending_resume, use_add,
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
