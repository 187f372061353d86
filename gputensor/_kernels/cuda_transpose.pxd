# The tiled transposition: a copy whose input is contiguous along another axis than its output.

from libc.stdint cimport uint64_t

from gputensor._kernels.layout cimport Layout

cdef bint is_transposition(const Layout* layout) noexcept nogil
# `layout` is small (32-bit indices), and is_transposition() said yes.
cdef int transpose(int device, uint64_t stream, int out_dtype, int in_dtype,
                   const Layout* layout) except -1
