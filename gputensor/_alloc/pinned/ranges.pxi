"""The pinned memory that programs hold by name (ranges.h)."""

cdef extern from "gputensor/_alloc/pinned/ranges.h" namespace "gputensor" nogil:
    cdef cppclass PinnedRanges:
        void add(uint64_t ptr, size_t nbytes, void* block)
        void remove(uint64_t ptr)
        bint find(uint64_t ptr, size_t nbytes, void** block)
        void renew()

cdef PinnedRanges pinned_ranges


cdef bint pinned_holds(uint64_t ptr, size_t nbytes, Block** block) noexcept nogil:
    return pinned_ranges.find(ptr, nbytes, <void**>block)
