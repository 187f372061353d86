# The calls that compute: element-wise, reduction, gather and scatter, creation, folds over windows,
# random numbers. Each takes operands (address, type, shape, strides) and queues one kernel, or its
# twin on a host device.

from cpython.buffer cimport PyBUF_WRITABLE, PyBuffer_Release, PyObject_GetBuffer
from libc.stdint cimport int32_t, int64_t, uint32_t, uint64_t
from libc.stdlib cimport free, malloc
from libc.string cimport memcpy, memset

from gputensor._alloc.allocator cimport allocator_free, allocator_malloc, raise_for_malloc
from gputensor._alloc.core cimport Block
from gputensor._arrays cimport (
    DT_BFLOAT16, DT_BOOL, DT_COMPLEX128, DT_FLOAT16, DT_FLOAT32, DT_FLOAT64, DT_INT32, DT_INT64,
    DT_UINT16, DT_UINT32, DT_UINT64, DT_UINT8, KIND_BOOL, KIND_FLOAT, KIND_UINT, MAX_NDIM,
    OPERANDS, OUT, Axis, Layout, Operand, dtype_itemsize, dtype_kind, has_no_elements, layout_axes,
    layout_cut, layout_is_small, layout_merge, layout_size, layout_split, scalar_is_zero,
    scalar_pack,
)
from gputensor._driver.registry cimport (
    DEVICE_CUDA, DEVICE_HOST, DEVICE_KINDS, HOST_DEVICES, DeviceFacts, device_facts, device_kind,
    driver_get, known_facts,
)
from gputensor._driver.table cimport Driver, status_t
from gputensor._driver.tensor_maps cimport MappedTensor, has_tensor_maps, map_tiles
from gputensor._kernels.launch cimport (
    CallOperand, Kernel, KernelTable, Launch, call_argument, host_call, host_work, is_recorded,
    keep_error, kernel_of, launch_init, launch_kernel, raise_pending,
)
from gputensor._kernels.loops cimport (
    LOOP_BOOL, LOOP_DOUBLE, LOOP_FLOAT, LOOP_INT32, LOOP_INT64, LoopNumber, LoopOperand, LoopRow,
    QueuedLoop, find_loop, run_queued_loop,
)

import numpy as np

from gputensor._arrays.element_types import DTYPES, KINDS
from gputensor._kernels import programs
from gputensor._kernels.calls import CALLS, POOLINGS, bind
from gputensor._kernels.draw_facts import draw_facts
from gputensor._kernels.host import (
    elementwise as elementwise_on_host, index as index_on_host, reduction as reduction_on_host,
    window as window_on_host,
)
from gputensor._kernels.operations import ELEMENTWISE, REDUCTIONS
from gputensor.errors import Described, argument_error, raise_for_status

include "reduction_layout.pxi"
include "cuda_transpose.pxi"
include "cuda_elementwise.pxi"
include "elementwise.pxi"
include "host_moves.pxi"
include "cuda_index.pxi"
include "cuda_condition.pxi"
include "index.pxi"
include "cuda_reduction.pxi"
include "reduction.pxi"
include "creation.pxi"
include "window.pxi"
include "depthwise_boxes.pxi"
include "depthwise.pxi"
include "draw.pxi"
include "executors.pxi"
include "doors.pxi"
