# Recorded traces, replayed on the allocator of any device.

from libc.stdint cimport int16_t, int32_t, int64_t, int8_t, uint64_t, uintptr_t
from libc.stdlib cimport calloc, free

import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from gputensor._alloc.allocator cimport allocator_free, allocator_malloc, raise_for_malloc
from gputensor._alloc.core cimport Block, stream_own
from gputensor._driver.registry cimport driver_open
from gputensor._driver.table cimport Driver, status_t

from gputensor._alloc.allocator import close_allocator, open_allocator
from gputensor._alloc.observe import empty_cache, peak_nbytes, reset_peak
from gputensor._driver.registry import counts, modelled_seconds, reset_counts
from gputensor.errors import raise_for_status

include "replay.pxi"
