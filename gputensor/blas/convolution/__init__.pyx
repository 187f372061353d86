# Convolution: a product, a fold over windows, tiles on tensor cores, or plain arithmetic.

from libc.stdint cimport int16_t, int32_t, int64_t, uint32_t, uint64_t
from libc.string cimport memcmp, memset

from gputensor._arrays cimport (
    DT_BFLOAT16, DT_FLOAT32, Operand, dtype_is_half, dtype_itemsize,
)
from gputensor._driver.registry cimport DEVICE_HOST, DeviceFacts, device_facts, device_kind
from gputensor._driver.tensor_maps cimport MappedTensor, has_tensor_maps, map_pixels, map_tiles
from gputensor._kernels.faces cimport (
    OP_COPY, POOL_WEIGHTED, WindowFold, elementwise, fill, read_axes, window_launch,
)
from gputensor._kernels.launch cimport (
    CallOperand, KernelTable, Launch, call_argument, host_call, kernel_of, launch_init,
    launch_kernel,
)
from gputensor.blas.libraries cimport (
    Temporaries, take_memory, take_memory_if_any, take_operand, temporaries_init,
    temporaries_release,
)
from gputensor.blas.plan cimport (
    ACT_GELU_TANH, ACT_NONE, ACT_SILU, FP32_BF16, FP32_MASK, FP32_TF32,
)
from gputensor.blas.product cimport (
    Options, Task, options_init, task_launch, task_prepare, task_release,
)

from gputensor._kernels.calls import CALLS, CONVOLUTION_ACTIVATIONS, bind
from gputensor.blas.host import convolution as convolution_host
from gputensor.blas.kernels import convolution_programs

include "pointwise.pxi"
include "plain.pxi"
include "shifted.pxi"
include "mapped.pxi"
include "few.pxi"
include "tile.pxi"
include "convolve.pxi"
