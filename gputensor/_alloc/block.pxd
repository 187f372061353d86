# Block records: where they come from, how they are found by address, how tiles split and join.
# The struct is in model.pxd; callers outside _alloc read ptr, nbytes, requested, stream, device.

from libc.stdint cimport uint64_t

from gputensor._alloc.model cimport Block

# Records come from a slab shared by all devices and go back to it. NULL: no host memory left.
cdef Block* block_new() noexcept nogil
cdef void block_drop(Block* block) noexcept nogil
# Cuts the tile at `nbytes`; gives the new tail, which has the same state and is in no list.
cdef Block* block_split(Block* block, size_t nbytes) noexcept nogil
# Joins `block` with the tile after it, which is in no list; the tail's record is dropped.
cdef void block_join_next(Block* block) noexcept nogil

# The block that starts at an address, for callers that hold only the address. Lookups need no
# lock. insert answers False when there is no host memory for the table.
cdef bint block_map_insert(Block* block) noexcept nogil
cdef void block_map_remove(uint64_t ptr) noexcept nogil
cdef Block* block_map_find(uint64_t ptr) noexcept nogil
