# Memory of other libraries and processes: DLPack, array interfaces, NumPy, nested lists, shared
# pages.

from cpython.buffer cimport PyObject_CheckBuffer
from cpython.exc cimport PyErr_SetObject
from cpython.number cimport PyNumber_Index
from cpython.pycapsule cimport (
    PyCapsule_CheckExact, PyCapsule_GetPointer, PyCapsule_IsValid, PyCapsule_New, PyCapsule_SetName,
)
from cpython.ref cimport Py_DECREF, Py_INCREF
from cpython.sequence cimport PySequence_Check
from libc.math cimport INFINITY
from libc.stdint cimport (
    INT64_MAX, INT64_MIN, int32_t, int64_t, uint16_t, uint32_t, uint64_t, uint8_t,
)
from libc.stdlib cimport free, malloc
from libc.string cimport memcpy

import numpy as np

from gputensor._arrays cimport (
    DT_BFLOAT16, DT_COMPLEX128, DT_COMPLEX64, DT_FLOAT32, DT_FLOAT64, DT_INT64, KIND_BOOL,
    KIND_COMPLEX, KIND_INT, KIND_SMALL, KIND_UINT, MAX_NDIM, Operand, dtype_itemsize,
    dtype_kind,
)
from gputensor._driver.registry cimport (
    DEVICE_HOST, device_generation, device_kind, driver_get, driver_open,
)
from gputensor._driver.table cimport (
    HOST_DEVICE, STATUS_OK, STATUS_OUT_OF_MEMORY, Driver, status_t,
)
from gputensor._kernels.launch cimport host_view, raise_pending
from gputensor.streams.order cimport (
    current_device, current_handle, device_text, is_tracing, raise_for_order, resolve_device,
    stream_wait_stream,
)
from gputensor.streams.queue cimport resolve_stream
from gputensor.tensor.core cimport (
    MAX_SIZE, Tensor, copied, copy_argument, dtype_argument, empty_tensor, flag_argument,
    number_kind, refuse_value_of, shape_argument, storage_foreign, tensor_argument, tensor_over,
    tensor_span, whole_number, work_begin, work_end,
)
from gputensor.tensor.transfer cimport download, moved, upload

from gputensor._arrays.element_types import DTYPES
from gputensor._arrays.file_mapping import check_mapped
from gputensor.errors import (
    Described, DeviceError, OutOfMemoryError, amount, argument_error, raise_for_status,
)

include "foreign.pxi"
include "cuda_interface.pxi"
include "dlpack.pxi"
include "exchange.pxi"
include "nested.pxi"
include "conversion.pxi"
include "shared_pages.pxi"
