# How a packed product is cut into tiles, and the tiles into shares of the clusters; arithmetic.

from libc.stdint cimport int64_t

# D here is row-major, m x n; see packed.cuh for the words.
cdef struct Schedule:
    int columns                 # of a tile: 256 or 128
    int steps                   # tiles along K that hold any of it
    int line                    # tiles along K in memory; strips read them in pairs
    int main_m, main_n
    int edge_m, edge_n
    int whole, divided
    int strips_n, strips_m
    int strips_from
    int weight_tile, weight_strip
    int64_t units_tiles, units
    int64_t tiles_a, tiles_b    # packed tiles of the operands
    double cost                 # estimated, in microseconds

# The schedule of least estimated cost on a device of so many clusters.
cdef void schedule_choose(int64_t m, int64_t n, int64_t k, int itemsize, int clusters,
                          Schedule* schedule) noexcept nogil
