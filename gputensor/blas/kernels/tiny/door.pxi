# For the tests' extension: a rule that needs no device. No other room of the library calls it.

cdef int tiny_tile(int dtype, int64_t m, int64_t n, int64_t k, int64_t batch) noexcept nogil
