# The tensor, its memory, and element-wise calls on it.

from cpython.number cimport PyNumber_Index
from cpython.long cimport PyLong_AsLongAndOverflow
from cpython.object cimport PyObject
from cpython.ref cimport Py_INCREF
from cpython.tuple cimport PyTuple_New, PyTuple_SET_ITEM
cimport cython
from libc.math cimport INFINITY
from libc.stdint cimport int64_t, uint64_t
from libc.string cimport memcmp, memcpy

import functools
import importlib
import sys
import types

import numpy as np
from numpy.exceptions import AxisError

from gputensor._alloc.allocator cimport allocator_free, allocator_malloc, raise_for_malloc
from gputensor._arrays cimport (
    DTYPE_COUNT, DT_BOOL, DT_COMPLEX128, DT_COMPLEX64, DT_FLOAT32, DT_FLOAT64, DT_INT64, DT_UINT8,
    DT_UINT64, KIND_BOOL, KIND_COMPLEX, KIND_FLOAT, KIND_INT, KIND_SMALL, KIND_UINT, MAX_NDIM,
    Operand, dtype_itemsize, dtype_kind,
)
from gputensor._driver.host cimport section_end
from gputensor._driver.registry cimport (
    Slot, device_generation, driver_get, register_slot, stream_captures,
)
from gputensor._driver.table cimport (
    HOST_DEVICE, HOST_DEVICES, MAX_DEVICES, STATUS_OK, Driver, status_t,
)
from gputensor._kernels.faces cimport (
    OP_COPY, OP_POW, elementwise, elementwise_check, fill as fill_kernel,
)
from gputensor._kernels.launch cimport raise_pending
from gputensor.streams.order cimport (
    UseLog, current_device, current_handle, current_tracer, device_text, event_return, event_take,
    graph_stream_give, is_tracing, order_read, order_write, raise_closed, raise_for_order,
    resolve_device, use_log_drop, use_log_has, use_log_init,
)
from gputensor.streams.queue cimport device_object

from gputensor._arrays import dtypes, promotion
from gputensor._arrays.element_types import DTYPES
from gputensor._kernels.operations import ELEMENTWISE, RULES
from gputensor.errors import Described, OutOfMemoryError, argument_error, raise_for_status

include "storage.pxi"
include "operators.pxi"
include "tensor.pxi"
include "construction.pxi"
include "tracing.pxi"
include "section.pxi"
include "arguments.pxi"
include "call.pxi"
include "spelling.pxi"
include "array_likes.pxi"
