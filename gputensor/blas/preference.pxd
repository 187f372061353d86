# Which library products go to, as the process wants it.
cdef int preferred_library() noexcept nogil
