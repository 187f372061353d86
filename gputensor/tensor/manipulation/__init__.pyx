# Public functions that make, view, rearrange, gather and index tensors.

from cpython.long cimport PyLong_AsLongAndOverflow
from cpython.slice cimport PySlice_AdjustIndices, PySlice_Unpack
from libc.stdint cimport int64_t, uint64_t

import math

from numpy import generic
import numpy as np

from gputensor._arrays cimport (
    DT_BOOL, DT_COMPLEX128, DT_COMPLEX64, DT_FLOAT32, DT_INT64, KIND_BOOL, KIND_COMPLEX, KIND_FLOAT,
    MAX_NDIM, Operand, dtype_itemsize, dtype_kind,
)
from gputensor._kernels.faces cimport (
    arange as arange_kernel, check_unused as check_unused_kernel, gather as gather_kernel,
    scatter as scatter_kernel,
)
from gputensor._driver.registry cimport DEVICE_HOST, device_kind, stream_captures
from gputensor.streams.order cimport current_handle, is_tracing
from gputensor.tensor.core cimport (
    MAX_SIZE, Tensor, axes_mask, axis_argument, broadcast_operand, broadcast_shape, check_distinct,
    closable, copied, copy_argument, copy_into, count_argument, device_argument,
    diagonal_argument, dtype_argument, empty_tensor, fill_with, flag_argument, number_kind,
    on_one_device, overlaps, refuse_value_of, shape_argument, storage_check_write,
    tensor_argument, view_tensor, whole_number, work_begin, work_end,
)
from gputensor.tensor.transfer cimport download, moved, upload

from gputensor._arrays.element_types import DTYPES
from gputensor._driver.environment import switch
from gputensor.errors import argument_error, float_argument
from gputensor.tensor.core import sized, spellings
from gputensor.tensor.functions import max as greatest, min as least, where
from gputensor.tensor.interop import asarray

include "creation.pxi"
include "shape.pxi"
include "gathering.pxi"
include "indexing.pxi"
