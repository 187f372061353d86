# The records of a phantom GPU (phantom_recorder.h), for rooms that make calls on one.

from libc.stdint cimport uint32_t, uint64_t
from libcpp.vector cimport vector

cdef extern from "gputensor/_driver/phantom_recorder.h" namespace "gputensor" nogil:
    cdef struct LaunchRecord:
        uint32_t kind
        uint32_t kernel
        uint32_t[3] grid
        uint32_t[3] block
        uint32_t shared_nbytes
        uint32_t most_shared_nbytes
        uint32_t first_word
        uint32_t nbytes
        uint32_t first_patch
        uint32_t patch_count

    cdef struct PhantomScratch:
        uint64_t ptr
        uint64_t nbytes

    cdef cppclass PhantomRecords:
        vector[LaunchRecord] records
        vector[uint64_t] functions
        vector[uint64_t] words
        vector[PhantomScratch] scratch
        int refused

    cdef cppclass PhantomRecorder:
        void keep()
        PhantomRecords take()
        bint gave(uint64_t address)
        int product(const void* described, size_t nbytes)
