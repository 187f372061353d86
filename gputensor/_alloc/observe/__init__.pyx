# The allocator as users see it: statistics, snapshots and summaries. Apart from empty_cache,
# nothing here changes memory.

from libc.stdint cimport SIZE_MAX, int32_t, int64_t, uint8_t, uint32_t, uint64_t, uintptr_t
from libc.string cimport memcpy, memset
from libcpp.vector cimport vector

import gc
import pickle
from operator import itemgetter

import numpy as np

from gputensor._alloc.allocator cimport allocator_empty, allocator_find, round_size, scope_pools
from gputensor._alloc.config cimport BACKEND_NATIVE
from gputensor._alloc.core cimport *
from gputensor._alloc.grow cimport Request, growth_need, miss_refuses, request_for
from gputensor._alloc.history cimport (
    HISTORY_SNAPSHOT, HISTORY_STACK_ALLOC, HISTORY_STACK_FREE, StackFormatter, history_entries,
    history_record, stack_capture_if, stack_for_request,
)
from gputensor._alloc.model cimport *
from gputensor._alloc.pinned cimport CallTimes, PinnedPool, pinned_pool_peek
from gputensor._driver.registry cimport device_generation

from gputensor._alloc.config import settings as _settings
from gputensor._alloc.history.pool_names import pool_pair
from gputensor._alloc.observe.statistics_names import STATISTICS_KEYS, TYPES
from gputensor._alloc.pinned import pinned_devices
from gputensor.atomic_file import write_whole

include "snapshot.pxi"
include "report.pxi"
include "failure_facts.pxi"
