# Sorting, selection, search, counts, scans and choices by masks: calls on row-major operands.

from libc.stdint cimport int64_t, uint32_t, uint64_t
from libc.stdlib cimport free, malloc
from libc.string cimport memset

from gputensor._alloc.allocator cimport allocator_free, allocator_malloc, raise_for_malloc
from gputensor._alloc.core cimport Block
from gputensor._arrays cimport (
    DT_BFLOAT16, DT_BOOL, DT_FLOAT16, DT_INT64, KIND_BOOL, KIND_FLOAT, KIND_INT, KIND_UINT, Operand,
    dtype_itemsize, dtype_kind,
)
from gputensor._driver.registry cimport DEVICE_HOST, device_facts, device_kind, driver_get
from gputensor._driver.table cimport Driver, status_t
from gputensor._kernels.launch cimport (
    CallOperand, KernelTable, Launch, call_argument, host_call, host_work, keep_error, kernel_of,
    launch_init, launch_kernel, raise_pending,
)

from gputensor._kernels import order_programs
from gputensor._kernels.calls import bind
from gputensor._kernels.host import orders as host_orders
from gputensor._kernels.order_rules import SCANS
from gputensor.errors import Described, argument_error, raise_for_status

include "launching.pxi"
include "sorting.pxi"
include "counting.pxi"
include "scan.pxi"
include "choosing.pxi"
include "host_loops.pxi"
include "doors.pxi"
