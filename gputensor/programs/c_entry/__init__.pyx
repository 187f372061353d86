# Programs for C callers in a Python process (gputensor_program.h has the contract).

import os
import threading

cimport cython
from cpython.ref cimport Py_DECREF, Py_INCREF
from libc.stdint cimport int32_t, int64_t, uint16_t, uint64_t, uint8_t
from libc.string cimport strcmp
from libcpp.vector cimport vector

from gputensor._arrays cimport DT_UINT8
from gputensor._driver.registry cimport driver_get
from gputensor._driver.table cimport (
    STATUS_GRAPH_UPDATE_FAILED, STATUS_INVALID_VALUE, STATUS_NOT_SUPPORTED, STATUS_OK, Driver,
    status_t,
)
from gputensor.programs.ahead.launches cimport PRODUCT_FAILED, StepLaunches, product_problem
from gputensor.programs.session cimport captured_bound, queue_captured
from gputensor.tensor.core cimport Tensor, empty_tensor

from gputensor.errors import (
    Described, OutOfMemoryError, ProgramError, argument_error, raise_for_status,
)
from gputensor.programs.ahead.ahead_file import described
from gputensor.programs.ahead.steps import fixed_of, launches_of
from gputensor.programs.program import load_program

include "session.pxi"
include "entry.pxi"
