# Formulas along rows: layout of the operands, choice of a kernel's variant, launch.

from libc.stdint cimport int64_t, uint32_t, uint64_t
from libc.string cimport memcpy, memset

from gputensor._arrays cimport DT_FLOAT64, Operand, dtype_itemsize
from gputensor._driver.registry cimport DEVICE_HOST, DeviceFacts, device_kind, known_facts
from gputensor._kernels.launch cimport (
    CallOperand, KernelTable, Launch, call_argument, host_call, kernel_of, launch_init,
    launch_kernel,
)

import itertools

from gputensor._kernels import formula as formula_module, row_program
from gputensor._kernels.calls import bind
from gputensor._kernels.host import formula as host_formula
from gputensor.errors import argument_error

include "plans.pxi"
include "rows.pxi"
include "choices.pxi"
