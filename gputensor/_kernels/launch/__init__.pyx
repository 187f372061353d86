# Compiled kernels and queued host calls: the way of an operation to the queue.

cimport cython
from cpython.memoryview cimport PyMemoryView_FromMemory
from cpython.ref cimport PyObject, Py_CLEAR, Py_DECREF, Py_INCREF
from cpython.tuple cimport PyTuple_New, PyTuple_SET_ITEM
from libc.stdint cimport int64_t, uint32_t, uint64_t
from libc.stdlib cimport free, malloc

import contextvars
import threading

import numpy as np

from gputensor._arrays cimport (
    KIND_BOOL, KIND_COMPLEX, KIND_FLOAT, KIND_INT, KIND_SMALL, KIND_UINT, MAX_NDIM, Operand,
    dtype_itemsize, dtype_kind,
)
from gputensor._driver.host cimport section_entered
from gputensor._driver.registry cimport (
    DEVICE_HOST, Slot, device_facts, device_kind, device_slot, driver_get, driver_open,
    register_slot,
)
from gputensor._driver.table cimport HOST_DEVICES, MAX_DEVICES, STATUS_OK, Driver, status_t
from gputensor.streams.order cimport device_text

from gputensor._arrays.element_types import DTYPES
from gputensor._kernels.launch import images, nvrtc
from gputensor.errors import DeviceError, argument_error, raise_for_status

include "module_cache.pxi"
include "host_call.pxi"
include "call_operand.pxi"
