# Which library products go to, as the process wants it.

cdef enum Library:
    LIBRARY_AUTO = 0
    LIBRARY_CUBLAS = 1
    LIBRARY_LT = 2

cdef int preferred_library() noexcept nogil
