# Row functions of neural networks (softmax, norms), attention, and element-wise formulas. A row
# function or a formula is one kernel.

import numpy as np

from cpython.object cimport PyObject
from libc.math cimport sqrt
from libc.stdint cimport int64_t, uint64_t

from gputensor._arrays cimport (
    DT_BOOL, DT_FLOAT32, KIND_COMPLEX, KIND_FLOAT, KIND_INT, KIND_SMALL, KIND_UINT, Operand,
    dtype_is_half, dtype_kind,
)
from gputensor._kernels.formulas cimport RowFormula, run_formula
from gputensor._kernels.launch cimport CallOperand
from gputensor.blas.attention cimport Attention, attend
from gputensor.blas.plan cimport precision_current
from gputensor.streams.order cimport current_handle, is_tracing
from gputensor.tensor.core cimport (
    Tensor, axes_mask, broadcast_operand, broadcast_shape, count_argument, dtype_argument,
    empty_tensor, fill_with, flag_argument, on_one_device, tensor_argument, tensor_over,
    work_begin, work_end,
)

from gputensor._arrays.dtypes import finfo as _finfo
from gputensor._arrays.element_types import DTYPES
from gputensor._kernels.calls import bound_row
from gputensor.errors import Described, argument_error, plain_int
from gputensor.errors import float_argument as _float_argument
from gputensor.tensor import manipulation
from gputensor.tensor.core import spellings as _spellings

include "rows.pxi"
include "norms.pxi"
include "attention.pxi"
include "windows.pxi"
