# Products of fp8 matrices with scales:
#
#   out = activation((a * scale_a) @ (b * scale_b) + bias) * result_scale
#
# In three steps like every task (task.pxd); the caller holds the GIL throughout.

from libc.stdint cimport int64_t, uint32_t, uint64_t

from gputensor._kernels.operand cimport Operand
from gputensor.blas.epilogue cimport Epilogue
from gputensor.blas.staging cimport Side, Steps
from gputensor.blas.task cimport Options, Task
from gputensor.blas.temporaries cimport Temporaries

# The operands must outlive the task.
cdef struct ScaledProduct:
    const Operand* a            # m x k
    const Operand* b            # k x n
    const Operand* scale_a      # float32: 1, m or m / 128 by 1 or k / 128; NULL with scale_b
    const Operand* scale_b      # 1 or k / 128 by 1, n or n / 128
    const Operand* bias         # n values of the type of out, of float32 where that is fp8; or NULL
    const Operand* result_scale     # one float32; or NULL
    int activation              # ACT_* of product.pxd
    int is_fast                 # partial sums may stay in the tensor core's accumulator
    uint32_t precision          # flags of precision.pxd

cdef struct ScaledTask:
    const ScaledProduct* given
    Operand out
    int kind                    # SCALED_* of scaled.pyx
    Temporaries temporaries
    Steps steps                 # before the product
    Task task                   # the library's product, or that of plain values
    Options options
    Operand left                # plain values
    Operand right
    Operand result              # where the product goes, with the shape of out
    int has_epilogue            # from result into out
    int has_copy
    Epilogue epilogue
    Operand bias                # broadcast to out, as the next two are
    Operand row_scale
    Operand column_scale

cdef int scaled_prepare(ScaledTask* task, int device, uint64_t stream, const ScaledProduct* given,
                        const Operand* out) except -1
cdef int scaled_launch(ScaledTask* task) except -1
cdef void scaled_release(ScaledTask* task) noexcept nogil
