# The products that tensors call: one matrix product, groups, scaled fp8 products.

cimport cython
from libc.stdint cimport int64_t, uint32_t, uint64_t
from libc.stdio cimport snprintf
from libc.stdlib cimport calloc, free, qsort
from libc.string cimport memcpy, memset

from gputensor._alloc.allocator cimport allocator_free, allocator_malloc, raise_for_malloc
from gputensor._arrays cimport (
    DT_BFLOAT16, DT_FLOAT16, DT_FLOAT32, DT_FLOAT64, DT_INT32, DT_INT64, DT_INT8, DT_UINT8,
    MAX_NDIM, Operand, dtype_is_complex, dtype_is_half, dtype_itemsize,
    has_no_elements,
)
from gputensor._driver.registry cimport (
    DEVICE_HOST, device_kind, known_facts, stream_captures,
)
from gputensor._driver.table cimport HOST_DEVICES, MAX_DEVICES, STATUS_OK, status_t
from gputensor._kernels.faces cimport OP_CONJ, OP_COPY, OP_MUL, elementwise, fill
from gputensor._kernels.launch cimport (
    CallOperand, KernelTable, Launch, call_argument, host_call, kernel_load, kernel_of,
    launch_init, launch_kernel,
)
from gputensor.blas.backends cimport (
    DOES_ACTIVATION, DOES_ADDEND, DOES_BIAS, FORM_INT4, FORM_INT8, FORM_PLAIN, PAIRS_GATED,
    PAIRS_NONE, PAIRS_ROTATED, PLAN_PLAIN, SKINNY_MAX_ROWS, STAGE_DONE, STAGE_LIBRARY, Outcome,
    PanelProduct, SkinnyFusion, Wanted, Work, backend_of, grouped_plan, grouped_table_nbytes,
    is_integer, is_own, load_for_planning, panel_run, plan_drop, plan_known,
    plan_of, pointer_batch_ready, pointer_batch_wins, pointers_are_aligned, raise_for_outcome,
    raise_for_plan, scratch_nbytes, skinny_fusion_fits, skinny_half_wins, skinny_product_fits,
    skinny_product_run, wanted_init, work_init, work_queue,
)
from gputensor.blas.kernels cimport (
    PAD_A, PAD_B, PAD_D, Epilogue, along_last_axis, epilogue_init, epilogue_run, pad_bind,
    pad_nbytes, relayout_launch,
)
from gputensor.blas.libraries cimport (
    BLAS_ARCH_MISMATCH, BLAS_INVALID_VALUE, BLAS_NOT_SUPPORTED, COMPUTE_32F, COMPUTE_32I,
    LIBRARY_AUTO, OP_C, OP_N, OP_T, SCALE_BLOCK_128, SCALE_OUTER_VECTOR, SCALE_TENSOR,
    SCALE_VECTOR_128, Temporaries, give_back, preferred_library, take_memory, take_memory_if_any,
    take_operand, temporaries_init, temporaries_release, workspace_ask, workspace_nbytes,
)
from gputensor.blas.libraries.gemm cimport factor_object, integer_factor, split_integer
from gputensor.blas.plan cimport (
    ACT_GELU_TANH, ACT_NONE, ACT_RELU, COPY_A, COPY_ADDEND, COPY_B, COPY_OUT, DETERMINISTIC,
    FP16_ACCUMULATION, PREPARE_BATCH, PREPARE_INNER, PREPARE_NO_DIMENSION, PREPARE_OUT_REPEATS,
    PREPARE_OUT_SHAPE, PRODUCT_AS_IT_IS, PRODUCT_DETERMINISTIC, PRODUCT_FACTORS,
    PRODUCT_FAST_ACCUMULATION, PRODUCT_POINTERS, Plan, Product, compact, extent_of, prepare,
    product_alignments, product_fill,
)

import math

from gputensor._arrays.element_types import DTYPES
from gputensor._arrays.overlap import may_overlap
from gputensor._kernels.calls import ACTIVATIONS as ACTIVATION_NAMES, bind, bound_row
from gputensor._kernels.formula import formula as formula_of
from gputensor.blas.host import (
    fused as fused_host, gemm as gemm_host, quantized as quantized_host,
)
from gputensor.blas.host.grouped import offset_products
from gputensor.blas.kernels import brief_programs, programs, quantized_programs
from gputensor.errors import Described, DeviceError, argument_error

include "check.pxi"
include "matmul.pxi"
include "../kernels/quantized/quantized.pxi"
include "../kernels/quantized/tile.pxi"
include "quantized.pxi"
include "grouped.pxi"
include "grouped_offsets.pxi"
include "fp8_copies.pxi"
include "scaled.pxi"
include "scaled_library.pxi"
include "doors.pxi"
include "fused.pxi"
include "../kernels/brief/brief.pxi"
include "inside.pxi"
