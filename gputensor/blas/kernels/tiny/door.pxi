# For the tests' extension: rules that need no device, and what its tests force. No other room of
# the library calls these or changes what is forced.

cdef int tiny_tile(int dtype, int64_t m, int64_t n, int64_t k, int64_t batch) noexcept nogil
