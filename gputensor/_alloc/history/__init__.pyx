# The history of memory: a ring of events with the stacks of the requests behind them. Recording is
# off by default and then costs one branch.

from cpython.object cimport PyObject
from libc.stdint cimport int64_t, uint32_t, uint64_t, uintptr_t
from libc.stdlib cimport free
from libcpp.vector cimport vector

import numpy as np

from gputensor._alloc.model cimport Block, DeviceAllocator, Segment, gt_load, gt_store, linked
from gputensor._driver.registry cimport Slot, device_slot, register_slot, request_delivery
from gputensor._driver.table cimport HOST_DEVICES, MAX_DEVICES

from gputensor._alloc.config import settings as _settings
from gputensor._alloc.history.pool_names import pool_pair
from gputensor._driver.registry import deliver, on_delivery, tell

include "stacks.pxi"
include "history.pxi"
include "listen.pxi"
include "block_events.pxi"
