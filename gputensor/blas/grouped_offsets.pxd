# Grouped products whose row offsets are on the device; nothing waits for them.

from libc.stdint cimport uint64_t

from gputensor._kernels.operand cimport Operand

# out[o[g - 1]:o[g]] = a[o[g - 1]:o[g]] @ b[g] for int32 offsets o, rows after the last: 0. Shapes
# (tokens, k), (groups, k, n), (tokens, n), (groups,). Raises for shapes, types and overlap.
cdef int offsets_check(const Operand* a, const Operand* b, const Operand* out,
                       const Operand* offsets) except -1
# Queues the work. `offsets` is contiguous.
cdef int offsets_launch(int device, uint64_t stream, Operand* a, Operand* b, Operand* out,
                        Operand* offsets) except -1
