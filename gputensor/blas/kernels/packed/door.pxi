# For the tests' extension: rules that need no device, and settings that its tests force. No other
# room of the library calls or changes these.

cdef enum Packing:
    PACKING_AUTO = 0
    PACKING_NEVER = 1
    PACKING_ALWAYS = 2          # even for products that are small or aligned

cdef Packing packed_mode

# How a product is cut; D here is row-major, m x n; packed.h and work.cuh explain the words.
cdef struct Schedule:
    int columns                 # of a tile: 256 or 128
    int steps                   # tiles along K that hold elements
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

cdef void schedule_choose(int64_t m, int64_t n, int64_t k, int itemsize, int clusters,
                          Schedule* schedule) noexcept nogil
cdef bint packed_can(const Product* product) except -1 nogil
cdef bint packed_is_worthwhile(const Product* product, int clusters) noexcept nogil
