# One product from operands to queued work, in two steps, so that a caller can put its stream
# ordering between them:
#
#   task_prepare   checks, plans, and takes temporary memory; may raise, has queued nothing
#   task_launch    queues the work; raises only what a library or a driver refuses
#   task_release   gives the temporary memory back, in stream order; always to be called
#
# The caller holds the GIL throughout.

from libc.stdint cimport int64_t, uint32_t, uint64_t

from gputensor._kernels.operand cimport Operand
from gputensor.blas.pad cimport Relayout
from gputensor.blas.plan cimport Plan
from gputensor.blas.product cimport Product
from gputensor.blas.temporaries cimport Temporaries

cdef struct Options:
    double alpha, alpha_imag, beta, beta_imag
    uint32_t precision          # flags of precision.pxd
    int activation              # ACT_* of product.pxd
    int conj_a, conj_b
    const Operand* addend       # what beta multiplies; NULL: out itself
    const Operand* bias         # added to every row: one dimension of out's last extent; or NULL
    const Operand* scale        # float32 factor of the product, broadcast to out; or NULL
    const Operand* residual     # added after the activation, broadcast to out; or NULL
    # The last two only where beta is 0.

cdef struct Copy:
    int operation               # an ElementwiseOp of one input
    Operand source
    Operand target

cdef struct Task:
    int device
    int kind                    # TASK_* of task.pyx
    uint64_t stream
    const Operand* a            # the caller's operands
    const Operand* b
    Operand* out
    const Options* options
    Temporaries temporaries
    int copy_count              # to run before the product
    Copy copies[4]
    int has_copy_back           # `result` is a temporary, to be brought into out afterwards
    int has_late_bias           # the bias and the activation that the library does not do
    int late_activation
    Operand result              # what the product is written to
    int has_padding             # `padding` runs before the product, `unpadding` after it
    int has_unpadding
    Relayout padding
    Relayout unpadding
    Plan* plan
    uint64_t scratch            # see repetition.pxd; 0: none
    Product product

cdef void options_init(Options* options, uint32_t precision) noexcept nogil
cdef int task_prepare(Task* task, int device, uint64_t stream, const Operand* a, const Operand* b,
                      Operand* out, const Options* options) except -1
cdef int task_launch(Task* task) except -1
# The library's call alone, for who plans a product otherwise: by device, stream, plan and product.
cdef int task_run_library(Task* task) except -1
cdef void task_release(Task* task) noexcept nogil
