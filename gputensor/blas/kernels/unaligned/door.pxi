# For the tests' extension: a rule that needs no device, and launches with a forced split. No other
# room of the library calls these.

cdef int unaligned_split(int dtype, bint a_along_k, bint b_along_k, int64_t m, int64_t n, int64_t k,
                         int64_t batch) noexcept nogil
cdef void* unaligned_kernel(const Product* product, int split) except NULL nogil
cdef int unaligned_launch_split(const Work* work, void* kernel, int split) except -1 nogil
