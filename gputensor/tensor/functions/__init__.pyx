# Public element-wise functions and reductions. Several have the names of builtins (`all`, `max`,
# `sum`): code that needs Python's belongs in another room.

from libc.stdint cimport int64_t, uint64_t

from gputensor._arrays cimport (
    DT_BOOL, DT_COMPLEX128, DT_FLOAT32, DT_FLOAT64, DT_INT64, DT_UINT64, KIND_BOOL, KIND_COMPLEX,
    KIND_FLOAT, KIND_INT, KIND_SMALL, KIND_UINT, Operand, dtype_kind,
)
from gputensor._kernels.faces cimport (
    OP_CLIP, OP_COPY, OP_GELU, OP_GELU_TANH, OP_MAXIMUM, OP_MINIMUM, OP_MUL, OP_WHERE,
    RED_ALL, RED_ANY, RED_ARGMAX, RED_ARGMIN, RED_MAX, RED_MEAN, RED_MIN, RED_PROD, RED_SUM,
    RED_VAR, reduce as reduce_kernel, reduction_check,
)
from gputensor.streams.order cimport current_handle
from gputensor.tensor.core cimport (
    RULE_CLASSIFY, RULE_COMPARE, RULE_FLOAT, RULE_LOGICAL, RULE_SAME, RULE_WHERE, Tensor,
    axes_mask, axis_argument, check_distinct, copied, copy_into, dtype_argument,
    elementwise_tensor, empty_tensor, flag_argument, number_kind, on_one_device, overlaps,
    tensor_argument, tensor_over, without_lists, work_begin, work_end, written_argument,
)

import functools

import numpy as np

from gputensor._arrays import promotion
from gputensor._arrays.dtypes import iinfo
from gputensor._arrays.element_types import DTYPES
from gputensor._kernels.operations import ELEMENTWISE, REDUCTIONS
from gputensor.errors import Described, argument_error
from gputensor.tensor.core import out_argument, spellings, type_name

# setup.py makes this file from the table of operations, in the build folder.
include "numbers.pxi"
include "elementwise_functions.pxi"
include "selection.pxi"
include "reduction.pxi"

__all__ = [
    *dict.fromkeys(
        row.public_name for row in ELEMENTWISE if row.name != "copy" and not row.is_special),
    *(row.public_name for row in REDUCTIONS), "amax", "amin", "count_nonzero", "std",
]
