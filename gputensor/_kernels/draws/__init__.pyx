# Random numbers: one call, whose state of seed and counter is memory of the device.

from libc.stdint cimport int64_t, uint32_t, uint64_t
from libc.string cimport memset

from gputensor._arrays cimport Operand
from gputensor._driver.registry cimport DEVICE_HOST, device_facts, device_kind
from gputensor._kernels.launch cimport (
    CallOperand, KernelTable, Launch, call_argument, host_call, kernel_of, launch_init,
    launch_kernel,
)

import numpy as np

from gputensor._arrays.element_types import DTYPES
from gputensor._kernels import programs
from gputensor._kernels.calls import bind
from gputensor._kernels.draw_facts import draw_facts
from gputensor.errors import Described, argument_error

include "draw.pxi"
