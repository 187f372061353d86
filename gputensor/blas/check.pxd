# The checks of a product's operands; each raises before anything has changed.

from gputensor._kernels.operand cimport Operand

# Raises ValueError for a status of prepare.pxd.
cdef int raise_for_shapes(int status, const Operand* a, const Operand* b,
                          const Operand* out) except -1
# Raises ValueError when `out` shares memory with `other`, which the message calls `name`.
cdef int check_extents(const Operand* out, const Operand* other, str name) except -1
# Raises TypeError for element types that no product takes and gives.
cdef int check_types(const Operand* a, const Operand* b, const Operand* out) except -1
# Raises the TypeError of check_types.
cdef int raise_for_types(const Operand* a, const Operand* b, const Operand* out) except -1
