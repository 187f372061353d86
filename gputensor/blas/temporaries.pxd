# Memory that a call needs until its work is done: taken before anything is queued, given back in
# stream order once all of it is.

from libc.stdint cimport uint64_t

from gputensor._alloc.block cimport Block
from gputensor._kernels.operand cimport Operand

cdef enum:
    MAX_TEMPORARIES = 8

cdef struct Temporaries:
    int device
    int count
    uint64_t stream
    Block* blocks[MAX_TEMPORARIES]

cdef void temporaries_init(Temporaries* temporaries, int device, uint64_t stream) noexcept nogil
# Raises OutOfMemoryError; what was taken before stays to be released.
cdef int take_memory(Temporaries* temporaries, size_t nbytes, uint64_t* ptr) except -1
# The same for memory that the call can do without: false when there is none. Raises for any other
# failure.
cdef bint take_memory_if_any(Temporaries* temporaries, size_t nbytes, uint64_t* ptr) except -1
# Gives back at once what was taken since there were `count` blocks; nothing may use it yet.
cdef void give_back(Temporaries* temporaries, int count) noexcept nogil
# A row-major operand of the shape of `like`.
cdef int take_operand(Temporaries* temporaries, const Operand* like, int dtype,
                      Operand* out) except -1
# In stream order: the memory may be reused by what is queued from here on.
cdef void temporaries_release(Temporaries* temporaries) noexcept nogil
