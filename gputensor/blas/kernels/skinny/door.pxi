# For the tests' extension: rules that need no device, and settings that its tests force. No other
# room of the library calls or changes these.

# Forced parts of the shape of a skinny product's blocks; 0: the rules decide.
cdef struct SkinnyForced:
    int tiles
    int warps                   # side by side along the rows of the weights
    int k_warps                 # skinny_mma only
    int stages
    int splits

cdef SkinnyForced skinny_forced
cdef SkinnyForced skinny_mma_forced
# Sets skinny_mma_forced, and forgets the shapes that were chosen before.
cdef void skinny_mma_force(const SkinnyForced* forced) noexcept

ctypedef DeviceFacts SkinnyDevice  # the shape of blocks depends on it

cdef struct SkinnyBlockShape:
    int tokens
    int tiles
    int warps
    int stages
    int splits
    int64_t slice
    int span
    int ring_nbytes
    int x_row
    int shared_nbytes

cdef struct SkinnyMmaBlockShape:
    int tokens
    int tiles
    int step
    int row_warps
    int k_warps
    int stages
    int splits
    int span
    int x_offset
    int sums_offset
    int norm_offset
    int norm                    # chunks of a row of x that each thread holds; 0: no norm
    int shared_nbytes
    double cost

cdef void skinny_choose_shape(const SkinnyProduct* product, const SkinnyDevice* device,
                              SkinnyBlockShape* shape) noexcept nogil
cdef int skinny_mma_shape(const SkinnyProduct* product, const SkinnyDevice* device,
                          SkinnyMmaBlockShape* shape) except -1 nogil
