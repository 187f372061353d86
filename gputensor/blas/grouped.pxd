# Many products of different shapes as one piece of work, in the steps of task.pxd: prepare (may
# raise, has queued nothing), launch, release. The caller holds the GIL throughout.

from libc.stdint cimport int64_t, uint64_t

from gputensor._alloc.block cimport Block
from gputensor._kernels.operand cimport Operand
from gputensor.blas.product cimport Product
from gputensor.blas.task cimport Options, Task

cdef struct GroupedTask:
    int device
    uint64_t stream
    const Options* options
    Task* singles               # products that go alone
    int64_t single_count
    Product* products           # products of one grouped call
    int64_t product_count
    uint64_t table              # their addresses, on the device
    Block* block                # that holds the table

# The operands and the options must stay where they are until the release. Without alpha, beta,
# bias, activation and conjugation; `out` arrays share nothing with each other.
cdef int grouped_prepare(GroupedTask* task, int device, uint64_t stream, int64_t count,
                         const Operand* a, const Operand* b, Operand* out,
                         const Options* options) except -1
cdef int grouped_launch(GroupedTask* task) except -1
cdef void grouped_release(GroupedTask* task) noexcept nogil
# Raises ValueError when a result shares memory with another or with an operand of any pair.
cdef int check_grouped_extents(int64_t count, const Operand* a, const Operand* b,
                               const Operand* out) except -1
