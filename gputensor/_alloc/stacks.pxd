# Interned call stacks. The model is described in stacks.pyx.

from libc.stdint cimport uint32_t

# The id of the caller's stack (> 0), or 0 when there is none or the table is full. The thread must
# hold the GIL ("nogil" says only that callers without Python objects may call it). No string and
# no line number is made. `native` adds the C frames.
cdef uint32_t stack_capture(bint native) noexcept nogil

# Turns ids into lists of frame dicts for one snapshot; equal stacks share one list.
cdef class StackFormatter:
    cdef list _lists            # by id: the list of a stack already formatted, or None
    cdef dict _frames           # (code address, offset) -> frame dict
    cdef list _empty            # what id 0 gets
    cdef list frames_of(self, uint32_t stack)
