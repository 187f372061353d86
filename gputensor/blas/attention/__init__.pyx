# Attention: one kernel on tensor cores, or two products and a formula.

from libc.stdint cimport int32_t, int64_t, uint32_t, uint64_t
from libc.string cimport memcpy, memset

from gputensor._arrays cimport (
    DT_BFLOAT16, DT_BOOL, DT_FLOAT32, DT_INT32, DT_INT64, KIND_FLOAT, Axis, Layout, Operand,
    dtype_is_half, dtype_kind, layout_axes,
)
from gputensor._driver.registry cimport DEVICE_HOST, DeviceFacts, device_facts, device_kind
from gputensor._driver.tensor_maps cimport MappedTensor, has_tensor_maps, map_tiles
from gputensor._kernels.faces cimport OP_COPY, elementwise
from gputensor._kernels.formulas cimport RowFormula, run_formula
from gputensor._kernels.launch cimport (
    KernelTable, Launch, call_argument, host_call, kernel_of, launch_init, launch_kernel,
)
from gputensor.blas.libraries cimport (
    Temporaries, take_memory_if_any, take_operand, temporaries_init,
    temporaries_release,
)
from gputensor.blas.product cimport (
    Options, Task, operand_or_null, options_init, task_launch, task_prepare, task_release,
)

from gputensor._arrays.element_types import DTYPES
from gputensor._kernels.calls import bind
from gputensor.blas.attention.weights import weight_trees
from gputensor.blas.host import attention as attention_host
from gputensor.blas.kernels import attention_programs as programs

include "fused.pxi"
include "few.pxi"
include "plain.pxi"
include "attend.pxi"
