# The public functions of products.

cimport cython
from libc.stdint cimport int64_t, uint64_t
from libc.stdlib cimport calloc, free

import operator

from gputensor._arrays cimport (
    DT_BFLOAT16, DT_BOOL, DT_FLOAT16, DT_FLOAT32, DT_FLOAT8_E4M3, DT_FLOAT8_E5M2, DT_INT32,
    DT_INT64, DT_INT8, DT_UINT8, KIND_BOOL, KIND_FLOAT, KIND_INT, KIND_SMALL, KIND_UINT, MAX_NDIM,
    Operand, dtype_is_complex, dtype_itemsize, dtype_kind,
)
from gputensor._kernels.faces cimport OP_CLIP, fill
from gputensor.blas.libraries.gemm cimport split_integer
from gputensor.blas.plan cimport (
    ACT_GELU, ACT_GELU_TANH, ACT_NONE, ACT_RELU, ACT_SILU, check_out, matmul_shape,
    precision_current, precision_for,
)
from gputensor.blas.product cimport (
    GroupedTask, Options, Pairs, QuantizedProduct, QuantizedTask, ScaledProduct, ScaledTask, Task,
    check_extents, check_grouped_extents, grouped_launch, grouped_prepare, grouped_release,
    offsets_check, offsets_launch, options_init, quantized_launch, quantized_prepare,
    quantized_release, raise_for_shapes, scale_fits, scaled_launch, scaled_prepare, scaled_release,
    task_launch, task_prepare, task_release,
)
from gputensor.streams.order cimport current_handle
from gputensor.tensor.core cimport (
    RULE_SAME, Tensor, axis_argument, broadcast_operand, broadcast_shape, contiguous, copied,
    dtype_argument, elementwise_tensor, empty_tensor, flag_argument, number_kind, on_one_device,
    promote_codes, tensor_argument, view_tensor, without_lists, work_begin, work_end,
    written_argument,
)

from gputensor._arrays.element_types import DTYPES
from gputensor.blas.host import int4_layout
from gputensor.tensor.core import spellings
from gputensor.tensor.manipulation import ones

include "product_call.pxi"
include "scaled.pxi"
include "products.pxi"
include "grouped.pxi"
include "quantized.pxi"
