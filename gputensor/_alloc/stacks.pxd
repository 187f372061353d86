# Interned call stacks. The model is described in stacks.pyx.

from libc.stdint cimport uint32_t

# The id of the caller's stack (> 0), or 0 when the table is full. The GIL must be held. No string
# and no line number is made. `native` adds the C frames.
cdef uint32_t stack_capture(bint native) noexcept
