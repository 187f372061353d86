# A Block is a tile of a segment and the unit of use. Callers outside _alloc read only the fields
# of the first group.

from libc.stdint cimport uint64_t

cdef struct Block:
    uint64_t ptr            # device address of the first byte
    size_t nbytes           # size of the tile, a multiple of 512
    size_t requested        # what the caller asked for
    uint64_t stream         # the stream it was allocated on
    int device
