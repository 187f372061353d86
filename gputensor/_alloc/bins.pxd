# Free blocks by size: a bitmap of rows, a bitmap of columns for each row, a list for each column.

from gputensor._alloc.model cimport Block, Bins

cdef void bins_insert(Bins* bins, Block* block) noexcept nogil
cdef void bins_remove(Bins* bins, Block* block) noexcept nogil
# The smallest block of at least `nbytes` (a multiple of UNIT), or NULL. Stays in the bins.
cdef Block* bins_best_fit(Bins* bins, size_t nbytes) noexcept nogil
# The first block of the largest non-empty column, or NULL.
cdef Block* bins_largest(Bins* bins) noexcept nogil
# The column after the one of `block` (downwards in size), for walks over large blocks.
cdef Block* bins_below(Bins* bins, Block* block) noexcept nogil
