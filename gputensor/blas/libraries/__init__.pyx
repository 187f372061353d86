# cuBLAS and cuBLASLt: functions by name, handles, workspaces, and memory for one call.

from libc.stdint cimport int64_t, uint64_t

import contextlib
import os
from posix.dlfcn cimport RTLD_LOCAL, RTLD_NOW, dlerror, dlopen, dlsym
import re

from gputensor._alloc.allocator cimport (
    allocator_find, allocator_free, allocator_malloc, raise_for_malloc,
)
from gputensor._alloc.core cimport Block
from gputensor._arrays cimport Operand, dtype_itemsize
from gputensor._alloc.model cimport DeviceAllocator, gt_load, gt_store
from gputensor._driver.registry cimport (
    Slot, device_facts, device_slot, driver_open, register_slot, stream_captures,
)
from gputensor._driver.table cimport (
    HOST_DEVICES, STATUS_OK, STATUS_OUT_OF_MEMORY, status_t,
)

from gputensor.errors import DeviceError
from gputensor.streams.queue import device_number

include "library.pxi"
include "preference.pxi"
include "handle.pxi"
include "workspace.pxi"
include "temporaries.pxi"
