# Formulas along rows: layout of the operands, choice of a kernel's variant, launch.

from cython.operator cimport dereference
from libc.stdint cimport int64_t, uint32_t, uint64_t
from libc.string cimport memset
from libcpp.string cimport string

from gputensor._arrays cimport DT_FLOAT64, Operand, dtype_itemsize
from gputensor._driver.registry cimport DEVICE_HOST, device_facts, device_kind
from gputensor._kernels.launch cimport (
    CallOperand, Kernel, Launch, call_argument, host_call, launch_init, launch_kernel,
)

from gputensor._kernels import formula as formula_module, row_program
from gputensor._kernels.calls import bind
from gputensor._kernels.host import formula as host_formula

include "rows.pxi"
